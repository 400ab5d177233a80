"""How good is it? Every score carries how it was computed (its signature) and how sure it is (its interval)."""
