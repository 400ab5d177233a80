"""From token ids on disk to batches in an order that follows from (seed, epoch, index)."""
