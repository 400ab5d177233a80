"""The loop and what it keeps: schedules, weights and their averages, checkpoints."""
