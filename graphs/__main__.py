"""`python -m graphs`: an agent works off a Markdown checklist until every step is finished."""

import signal
import sys

from graphs.program import main

# A supervisor's stop is handled as Ctrl-C is, so that nothing the agent started is left running.
signal.signal(signal.SIGTERM, signal.default_int_handler)
sys.exit(main(sys.argv[1:]))
