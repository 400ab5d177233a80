"""Text input: readers, the data doctor, languages, sentence splitting, tokenizers, the built-in corpus."""
