"""The cost of a todo list: scripted runs, price lists, storage. Run by `make bench`."""
