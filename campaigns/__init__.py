"""Campaigns: checks of the promises under accidents, hostile inputs and random models.

Run by `make campaign`. The package imports helpers from the tests. Like the tests, it runs in
LangGraph's strict mode, which `tests/__init__.py` turns on.
"""

import tests  # noqa: F401  before LangGraph is imported
