"""Export to and import from the formats of other programs."""
