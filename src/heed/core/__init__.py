"""Foundations of all packages: strict configs, atomic files, progress, errors and the environment."""
