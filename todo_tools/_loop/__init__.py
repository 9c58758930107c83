"""Whether the agent goes on, and what carries that out."""
