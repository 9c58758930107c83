"""`python -m graphs`: an agent works off a Markdown checklist until every step is finished."""

import sys

from graphs.program import main

sys.exit(main(sys.argv[1:]))
