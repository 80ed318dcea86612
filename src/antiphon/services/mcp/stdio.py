"""An MCP server that is a program on this machine: messages go over its standard input and output, one a line.

The SDK has a transport of its own. This one bounds the length of a message, logs what the program writes to standard
error, and tells when the program has ended.
"""

import asyncio
import os
import re
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Final

from antiphon.services.mcp.errors import McpServerError
from antiphon.telemetry.log import get_logger

if TYPE_CHECKING:
    from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
    from mcp.shared.message import SessionMessage

    Streams = tuple[MemoryObjectReceiveStream[SessionMessage | Exception], MemoryObjectSendStream[SessionMessage]]
    Incoming = MemoryObjectSendStream[SessionMessage | Exception]

MAX_MESSAGE_BYTES: Final = 4 * 1024 * 1024
HEAD_BYTES: Final = 512
"""Where the id of a message that cannot be read is looked for."""
GRACE_S: Final = 1.0
"""How long a program may take to end by itself, and again after SIGTERM."""
MAX_STDERR_CHARS: Final = 500
STDERR_LINES: Final = 50
"""How many lines of standard error are logged in each minute. The rest is counted."""
MINUTE_S: Final = 60.0
UNREADABLE: Final = -32050
"""The code of an answer that we could not read."""
_ID: Final = re.compile(rb'"id"\s*:\s*(?:(\d{1,15})|"([^"\\]{1,100})")')

log = get_logger(__name__)


@asynccontextmanager
async def stdio_streams(
    name: str, command: str, args: tuple[str, ...], env: Mapping[str, str]
) -> "AsyncIterator[Streams]":
    """Starts the program, and stops it and everything that it has started at the end."""
    import anyio

    process = await _start(command, args, env)
    into, incoming = anyio.create_memory_object_stream["SessionMessage | Exception"](0)
    outgoing, out_of = anyio.create_memory_object_stream["SessionMessage"](0)
    tasks = [
        asyncio.create_task(_receive(name, process, into)),
        asyncio.create_task(_send(process, out_of, into)),
        asyncio.create_task(_log_errors(name, process)),
    ]
    try:
        yield incoming, outgoing
    finally:
        stopping = asyncio.create_task(_stop(process))
        try:
            await asyncio.shield(stopping)
        finally:
            await asyncio.wait([stopping])
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            for stream in (into, incoming, outgoing, out_of):
                stream.close()


async def _start(command: str, args: tuple[str, ...], env: Mapping[str, str]) -> Process:
    from mcp.client.stdio import get_default_environment

    try:
        return await asyncio.create_subprocess_exec(
            command,
            *args,
            stdin=PIPE,
            stdout=PIPE,
            stderr=PIPE,
            env={**get_default_environment(), **env},
            limit=MAX_MESSAGE_BYTES,
            # A group of its own, so that all of it can be stopped, and Ctrl-C in our terminal does not reach it.
            start_new_session=True,
        )
    except FileNotFoundError:
        raise McpServerError(f"the program {command!r} was not found. Install it, or correct `command`.") from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise McpServerError(f"the program {command!r} cannot be started: {reason}.") from None


async def _receive(name: str, process: Process, into: "Incoming") -> None:
    import anyio
    from mcp.shared.message import SessionMessage
    from mcp_types import jsonrpc_message_adapter

    assert process.stdout is not None
    is_noisy = False
    with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
        async with into:
            async for line in _lines(process.stdout, into):
                try:
                    message = jsonrpc_message_adapter.validate_json(line, by_name=False)
                except ValueError:
                    if not is_noisy:
                        log.warning("mcp_server_noise", server=name, problem="it writes lines that are not messages")
                    is_noisy = True
                    await _fail_request(line[:HEAD_BYTES], "the answer is not valid", into)
                    continue
                await into.send(SessionMessage(message))


async def _lines(reader: asyncio.StreamReader, into: "Incoming") -> AsyncIterator[bytes]:
    """Gives the lines of a stream. One that is too long is dropped, and the request that it answers fails."""
    head = b""
    while True:
        try:
            line = await reader.readuntil(b"\n")
        except asyncio.LimitOverrunError as error:
            dropped = await reader.readexactly(error.consumed)
            head = head or dropped[:HEAD_BYTES]
            continue
        except asyncio.IncompleteReadError:
            return
        if head:
            await _fail_request(head, f"the answer is longer than {MAX_MESSAGE_BYTES} bytes", into)
            head = b""
        elif line.strip():
            yield line


async def _fail_request(head: bytes, reason: str, into: "Incoming") -> None:
    """Fails the request that an unreadable line answers, so that nobody waits for it."""
    from mcp.shared.message import SessionMessage
    from mcp_types import ErrorData, JSONRPCError

    found = _ID.search(head)
    if found is None:
        return
    id = int(found[1]) if found[1] else found[2].decode("utf-8", "replace")
    error = ErrorData(code=UNREADABLE, message=reason)
    await into.send(SessionMessage(JSONRPCError(jsonrpc="2.0", id=id, error=error)))


async def _send(process: Process, out_of: "MemoryObjectReceiveStream[SessionMessage]", into: "Incoming") -> None:
    assert process.stdin is not None
    try:
        async with out_of:
            async for item in out_of:
                process.stdin.write(item.message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n")
                await process.stdin.drain()
    except OSError:
        # It no longer reads. Ending the other direction tells the session that the connection is lost.
        await into.aclose()


async def _log_errors(name: str, process: Process) -> None:
    """Logs what the program writes to standard error, within limits. It must be read, or the program would block."""
    assert process.stderr is not None
    loop = asyncio.get_running_loop()
    since_s, lines, left_out = loop.time(), 0, 0
    rest = b""
    while chunk := await process.stderr.read(4096):
        *whole, rest = (rest + chunk).split(b"\n")
        if loop.time() - since_s > MINUTE_S:
            since_s, lines = loop.time(), 0
        for line in whole:
            text = line[: MAX_STDERR_CHARS * 4].decode("utf-8", "replace").strip()[:MAX_STDERR_CHARS]
            if text and lines < STDERR_LINES:
                lines += 1
                more = {"lines_left_out": left_out} if left_out else {}
                left_out = 0
                log.info("mcp_server_stderr", server=name, line=text, **more)
            else:
                left_out += bool(text)
        rest = rest[: MAX_STDERR_CHARS * 4]


async def _stop(process: Process) -> None:
    """Asks the program to end by closing its input, as the protocol wants it, and then ends the whole group."""
    assert process.stdin is not None
    with suppress(OSError):
        process.stdin.close()
    for how in (None, signal.SIGTERM, signal.SIGKILL):
        if how is not None:
            _signal(process, how)
        if await _has_ended(process):
            break
    # What the program has started may outlive it.
    _signal(process, signal.SIGKILL)
    transport = getattr(process, "_transport", None)
    if transport is not None:
        # Something that has left the group may still hold the pipes; nothing public closes them.
        transport.close()


async def _has_ended(process: Process) -> bool:
    """Waits for the process alone: `wait` would also wait for everything that has inherited its pipes."""
    deadline = asyncio.get_running_loop().time() + GRACE_S
    while process.returncode is None:
        if asyncio.get_running_loop().time() > deadline:
            return False
        await asyncio.sleep(0.01)
    return True


def _signal(process: Process, how: signal.Signals) -> None:
    with suppress(ProcessLookupError, PermissionError):
        if sys.platform == "win32":
            process.kill()
        else:
            os.killpg(process.pid, how)
