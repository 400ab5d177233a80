"""The server: HTTP APIs, the engine that runs the models, and a web page."""
