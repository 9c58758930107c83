"""Complete graphs and programs built on the public names of `todo_tools`."""
