"""Graphs for Harbor."""
