"""What a thread stores, and how its history is read."""
