"""Search and forced scoring for any model: one loop, logit rules, strategies, ranking."""
