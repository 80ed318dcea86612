"""Antiphon inside a FastAPI application, with hooks that keep the turns of all conversations.

Run `pip install fastapi`, then:

    python examples/fastapi_app/main.py --port 8000

Open http://127.0.0.1:8000/voice/ to talk, and http://127.0.0.1:8000/turns to see what was said.
"""

import argparse
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import uvicorn
from fastapi import FastAPI

from antiphon.asgi import Hooks, ToolCalled, TurnEnded, create_app

turns: deque[dict[str, Any]] = deque(maxlen=100)
calls: deque[dict[str, Any]] = deque(maxlen=100)


async def keep_turn(turn: TurnEnded) -> None:
    turns.append({"user": turn.user, "question": turn.question, "answer": turn.answer, "tools": turn.tools})


async def keep_call(call: ToolCalled) -> None:
    calls.append({"tool": call.tool, "outcome": call.outcome, "ms": call.duration_ms})


antiphon = create_app(
    {
        # Everybody who can reach this application may talk to it. Without this line, clients need a token.
        "server": {"auth": "off"},
        # Text only. Without this line, the local voice is loaded, if `antiphon models pull` was run.
        "model": {"voice": "none"},
    },
    hooks=Hooks(turn_ended=keep_turn, tool_called=keep_call),
)


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    # FastAPI does not start the applications that it mounts.
    async with antiphon.running():
        yield


app = FastAPI(lifespan=lifespan)
app.mount("/voice", antiphon)


@app.get("/turns")
async def show_turns() -> dict[str, Any]:
    return {"turns": list(turns), "calls": list(calls)}


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, default=8000)
    uvicorn.run(app, host="127.0.0.1", port=parser.parse_args().port)
