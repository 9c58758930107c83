"""Threads of older versions, and the agents that they belong to."""
