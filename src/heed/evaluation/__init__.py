"""What is found out about systems on a test set, beyond their scores? What `heed evaluate` prints and logs."""
