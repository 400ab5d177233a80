"""Classification of texts: one label, several labels, or a number for a text or a pair of texts."""
