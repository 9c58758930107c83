"""Whether the agent is sent back to work, and what carries that out."""
