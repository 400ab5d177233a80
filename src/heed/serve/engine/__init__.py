"""The engine of the server: models, the worker that owns them, its scheduler, and the jobs of requests."""
