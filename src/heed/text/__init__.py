"""Text comes in, is examined, and becomes ids: readers, doctor, tokenizers, the built-in corpus."""
