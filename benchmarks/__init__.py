"""What a todo list costs over no list: scripted runs, price lists, storage. Run by `make bench`."""
