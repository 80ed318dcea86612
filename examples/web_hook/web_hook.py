"""Sends every turn as JSON to an address of yours, such as the one of a chat room or of a database.

Run the server in this folder, whose antiphon.toml names the hook:

    cd examples/web_hook
    WEB_HOOK_URL=https://example.org/turns antiphon serve
"""

import asyncio
import json
import os
from urllib.request import Request, urlopen

from antiphon.session.hooks import TurnEnded

URL = os.environ["WEB_HOOK_URL"]


async def send_turn(turn: TurnEnded) -> None:
    told = {
        "conversation": turn.conversation_id,
        "user": turn.user,
        "question": turn.question,
        "answer": turn.answer,
        "interrupted": turn.interrupted,
    }
    # urllib blocks, so it is called in a thread. What it raises is one line of the server's log.
    await asyncio.to_thread(_post, json.dumps(told).encode())


def _post(body: bytes) -> None:
    with urlopen(Request(URL, body, {"content-type": "application/json"}), timeout=5):
        pass
