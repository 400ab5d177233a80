"""Phrase-based translation (Koehn, Och & Marcu 2003): phrase pairs, their features, the search, and tuned weights."""
