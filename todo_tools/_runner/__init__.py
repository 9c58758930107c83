"""Each item of a list as a run of its own."""
