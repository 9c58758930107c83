"""The graphs that `langgraph.json` serves, built once, as the server imports this module.

Were it given a function, the server would call it on its event loop for every run and every look
at a thread: it may not block there, and each call would make a directory of its own.
"""

import graphs.coding_agent
import graphs.notes
import graphs.until_done

coding_agent = graphs.coding_agent.serve()
notes = graphs.notes.serve().compile()
until_done = graphs.until_done.serve().compile()
