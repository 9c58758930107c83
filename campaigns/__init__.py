"""Campaigns: thousands of accidents, hostile inputs and random models, and what must hold in each.

Run by `make campaign`. What the package shares with the tests it imports from them; like the tests,
it runs in LangGraph's strict mode, which `tests/__init__.py` turns on.
"""

import tests  # noqa: F401  before LangGraph is imported
