"""An MCP server for tests without the SDK, so that it starts at once, and misbehaves on command.

It speaks the older generation of the protocol over stdio. The argument is a folder, which has `description`, the
description of the tool `echo`; the server writes `pid`, `cancelled` and `notes` into it.
"""

import json
import os
import sys
import threading
import time
from pathlib import Path
from typing import Any

FOLDER = Path(sys.argv[1])
LOCK = threading.Lock()


def send(**message: Any) -> None:
    with LOCK:
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        sys.stdout.flush()


def tool(name: str, description: str = "Does it.", reads: bool = True, **properties: str) -> dict[str, Any]:
    schema = {"type": "object", "properties": {key: {"type": kind} for key, kind in properties.items()}}
    listed = {"name": name, "description": description, "inputSchema": schema}
    return {**listed, "annotations": {"readOnlyHint": True}} if reads else listed


def list_tools() -> list[dict[str, Any]]:
    return [
        tool("echo", (FOLDER / "description").read_text(), text="string"),
        tool("note", "Writes a note.", reads=False, text="string"),
        tool("slow", seconds="number"),
        tool("huge", bytes="integer"),
        tool("Change It!", description="Changes the description of echo.", to="string"),
        *(tool(name) for name in ("broken", "refused", "picture", "escapes", "die", "noise", "nested", "odd", "asks")),
        {**tool("shapeless"), "inputSchema": {"type": "object", "properties": {"a": {"type": 5}}}},
        tool("wordy", description="x" * 5_000),
    ]


def text(said: str, **more: Any) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": said}], **more}


def run(name: str, args: dict[str, Any]) -> dict[str, Any]:
    match name:
        case "echo":
            return text(args["text"])
        case "note":
            with (FOLDER / "notes").open("a") as notes:
                notes.write(f"{args['text']}\n")
            return text("Noted.")
        case "slow":
            time.sleep(args["seconds"])
        case "huge":
            return text("x" * args["bytes"])
        case "broken":
            return text("It is broken.", isError=True)
        case "refused":
            raise ValueError
        case "picture":
            return {"content": [{"type": "image", "data": "aGVsbG8=", "mimeType": "image/png"}]}
        case "escapes":
            return text("red \x1b[31malert\x07 \u202e done")
        case "nested":
            deep: Any = "bottom"
            for _ in range(300):
                deep = {"a": deep}
            return text("", structuredContent=deep)
        case "noise":
            with LOCK:
                os.write(1, b"this is not a message\n\x00\xff\n{}\n")
            os.write(2, b"complaint\n" * 1_000)
        case "odd":
            return {"content": "not a list"}
        case "asks":
            send(id="q1", method="sampling/createMessage", params={"messages": [], "maxTokens": 1})
        case "die":
            os._exit(1)
        case "Change It!":
            (FOLDER / "description").write_text(args["to"])
            send(method="notifications/tools/list_changed")
    return text("Done.")


def answer(id: Any, method: str, params: dict[str, Any]) -> None:
    try:
        if method == "initialize":
            info = {"name": "plain", "version": "1"}
            capabilities = {"tools": {"listChanged": True}}
            send(id=id, result={"protocolVersion": "2025-11-25", "capabilities": capabilities, "serverInfo": info})
        elif method == "tools/list":
            send(id=id, result={"tools": list_tools()})
        elif method == "tools/call":
            send(id=id, result=run(params["name"], params.get("arguments") or {}))
        else:
            send(id=id, error={"code": -32601, "message": "Method not found"})
    except ValueError:
        send(id=id, error={"code": -32602, "message": "Wrong arguments."})


(FOLDER / "pid").write_text(str(os.getpid()))
for line in sys.stdin:
    message = json.loads(line)
    if message.get("method") == "notifications/cancelled":
        (FOLDER / "cancelled").touch()
    if "id" in message and "method" in message:
        arguments = (message["id"], message["method"], message.get("params") or {})
        threading.Thread(target=answer, args=arguments, daemon=True).start()
