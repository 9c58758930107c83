"""A model server on this machine that speaks OpenAI's protocol, as many local ones do."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

CALL_ID = "call_0"
"""The id of the call in every answer: some servers count the calls of each answer from 0."""


@contextmanager
def model_server(commands: Sequence[str], tool: str = "execute") -> Iterator[dict[str, str]]:
    """Start a server whose model runs commands, one in each answer, and then says that it is done.

    Args:
        commands: The commands in order.
        tool: The tool that runs them.

    Yields:
        The environment variables with which `TODO_MODEL=openai:local` finds it.
    """
    calls = [{"name": tool, "arguments": json.dumps({"command": each})} for each in commands]

    class Handler(_Handler):
        def answer(self, request: Mapping[str, Any]) -> dict[str, Any]:
            given = sum(message["role"] == "assistant" for message in request["messages"])
            if given >= len(calls):
                return {"role": "assistant", "content": "Done."}
            made = {"index": 0, "id": CALL_ID, "type": "function", "function": calls[given]}
            return {"role": "assistant", "content": "", "tool_calls": [made]}

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_port}/v1"
        yield {"OPENAI_API_KEY": "none", "OPENAI_BASE_URL": address}
        server.shutdown()


class _Handler(BaseHTTPRequestHandler):
    def answer(self, request: Mapping[str, Any]) -> dict[str, Any]:
        raise NotImplementedError

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        message = self.answer(request)
        reason = "tool_calls" if "tool_calls" in message else "stop"
        kind = "delta" if request.get("stream") else "message"
        choice = {"index": 0, kind: message, "finish_reason": reason}
        body = {"id": "chatcmpl-0", "created": 0, "model": "local", "choices": [choice]}
        if request.get("stream"):
            chunk = json.dumps({**body, "object": "chat.completion.chunk"})
            self._send("text/event-stream", f"data: {chunk}\n\ndata: [DONE]\n\n")
        else:
            self._send("application/json", json.dumps({**body, "object": "chat.completion"}))

    def _send(self, kind: str, text: str) -> None:
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(text.encode())))
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *_: object) -> None:
        """Write nothing."""
