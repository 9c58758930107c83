"""One call of a tool: its record checks the arguments and gives an answer."""
