"""What the agents of this folder work with: a shell, files, background tasks."""
