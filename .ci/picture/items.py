"""Move six services, three at a time: the program in the picture of the item runner."""

import re
import time
from typing import Any

from langchain.agents import create_agent
from langchain_core.messages import AIMessage, BaseMessage
from langgraph.prebuilt import ToolRuntime

from todo_tools import create_item_runner, has_worked
from todo_tools.rendering import follow_in_terminal, show_reports
from todo_tools.testing import ScriptedChatModel, call, turn

SERVICES = {"billing": 0.5, "search": 1.2, "mail": 0.9, "login": 0.7, "shop": 1.0, "wiki": 0.6}
"""The services, and the seconds that a part of their tests takes."""


def run_tests(service: str, runtime: ToolRuntime) -> str:
    """Run the tests of a service."""
    for number in range(1, 4):
        time.sleep(SERVICES[service])
        event = {"type": "tool_output", "tool_call_id": runtime.tool_call_id}
        runtime.stream_writer({**event, "text": f"part {number} of 3 passed\n"})
    return f"{service} runs on Python 3.14, its tests pass."


def work(prompt: list[BaseMessage]) -> AIMessage | str:
    """Play the model: call the tool, and then report."""
    (service,) = re.findall(r"Do only this item: .*Move (\w+)", prompt[0].text)
    return prompt[-1].text if prompt[1:] else turn("", call("run_tests", service=service))


agent = create_agent(ScriptedChatModel(script=work), [run_tests])
graph = create_item_runner(agent, check=has_worked, at_once=3).compile()
request = {
    "messages": [("user", "Move our services to Python 3.14.")],
    "todos": [f"Move {service}" for service in SERVICES],
}
stream = graph.stream(request, stream_mode=["updates", "custom", "values"], subgraphs=True)
final: Any = {}
for path, mode, chunk in follow_in_terminal(stream):
    if mode == "values" and not path:
        final = chunk
print(show_reports(final))
