"""The language modelling task."""
