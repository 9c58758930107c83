"""The three tools in a graph."""
