"""`report.md`: what one would send to a colleague about a run."""
