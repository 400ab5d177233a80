"""Lines of text to hypotheses: translators and their engines, sentence splitting, output checks, word alignment."""
