"""Greedy, beam, sampling and forced scoring, for any model behind the contract."""
