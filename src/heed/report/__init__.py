"""Report of a run, `report.md`: model, data, scores, weaknesses, and how to use and reproduce it."""
