"""Tools for the agents of this folder: a shell, files, background tasks."""
