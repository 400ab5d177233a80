"""The task of word vectors."""
