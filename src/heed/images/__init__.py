"""Images: the files of a folder or of an archive, and their decoding into pixels of one size."""
