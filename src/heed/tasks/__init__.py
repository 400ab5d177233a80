"""What is read, what is minimised, what is measured: one file for each task."""
