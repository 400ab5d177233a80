"""Fixture for tests of complete runs."""

from toy import without_shape_checks

__all__ = ["without_shape_checks"]
