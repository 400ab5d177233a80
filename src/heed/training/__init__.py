"""The training loop, learning rate schedules, averages of the weights, and checkpoints."""
