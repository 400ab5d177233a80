"""The HTTP APIs of the server."""
