"""Token ids on disk, and batches of them in an order that follows from (seed, epoch, index)."""
