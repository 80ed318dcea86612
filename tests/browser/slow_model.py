"""A model on a local port that answers when a test lets it, or fails."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final

PATIENCE_S: Final = 30.0


class SlowModel:
    """Speaks the chat-completions protocol. Its answer repeats the question."""

    def __init__(self) -> None:
        self.may_answer = threading.Event()
        """Once it is set, questions are answered, including those that wait."""
        self.fails = False
        """Whether it refuses what it is asked."""
        self.asked: list[str] = []

    def answer(self, messages: list[dict[str, Any]]) -> list[str]:
        """Returns the words of the answer, or nothing if it fails."""
        question = next(each["content"] for each in reversed(messages) if each["role"] == "user")
        self.asked.append(question)
        if self.fails:
            return []
        assert self.may_answer.wait(PATIENCE_S)
        return [f"{word} " for word in f"You asked: {question}".split()]


def _chunk(finish_reason: str | None = None, **fields: Any) -> bytes:
    choice = {"index": 0, "delta": fields, "finish_reason": finish_reason}
    chunk = {"id": "1", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}
    return f"data: {json.dumps(chunk)}\n\n".encode()


@contextmanager
def serve_slow_model() -> Iterator[tuple[SlowModel, str]]:
    """Runs the model, and gives it with its name for a server's settings."""
    model = SlowModel()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            words = model.answer(body["messages"])
            self.send_response(200 if words else 400)
            self.send_header("content-type", "text/event-stream")
            self.end_headers()
            for word in words:
                self.wfile.write(_chunk(content=word))
            if words:
                self.wfile.write(_chunk("stop") + b"data: [DONE]\n\n")

        def log_message(self, format: str, *args: Any) -> None:
            """Says nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield model, f"openai:http://127.0.0.1:{server.server_port}/v1#slow"
    finally:
        model.may_answer.set()
        server.shutdown()
        thread.join()
        server.server_close()
