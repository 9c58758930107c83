"""The list: todos, the operations on them, and the list as text. Knows no LangChain."""
