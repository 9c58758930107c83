"""The app of the served graphs: what every request passes before it reaches LangGraph's server."""

from starlette.applications import Starlette
from starlette.middleware import Middleware

from graphs.access import CheckAccess
from graphs.writes import CheckWrites

CHECKS = [Middleware(CheckAccess), Middleware(CheckWrites)]
app = Starlette(middleware=CHECKS)
