"""The control port: a small HTTP API that arms faults and shows what happened, while a simulator runs."""

from collections.abc import Awaitable, Callable
from typing import Any, Final, Protocol

import msgspec
import yaml
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from antiphon.security.origin import is_loopback
from antiphon.sim.faults import ArmedFault, FaultBook
from antiphon.sim.message_log import MessageLog
from antiphon.sim.script import MAX_SCRIPT_BYTES, Fault, ScriptError, Vocabulary, parse_faults

MAX_BODY_BYTES: Final = MAX_SCRIPT_BYTES


class Controlled(Protocol):
    """The part of a fault injector that is used here."""

    faults: FaultBook
    log: MessageLog

    async def add(self, faults: list[Fault]) -> list[int]: ...

    def describe(self) -> dict[str, Any]: ...


def make_control(injector: Controlled, vocabulary: Vocabulary) -> Starlette:
    async def add_faults(request: Request) -> Response:
        body = await _read(request)
        try:
            # JSON is YAML too.
            faults = parse_faults(yaml.safe_load(body), vocabulary)
        except (yaml.YAMLError, ValueError, RecursionError) as error:
            raise ScriptError(f"the body is neither JSON nor YAML: {error}.") from None
        return JSONResponse({"ids": await injector.add(faults)}, 201)

    async def list_faults(request: Request) -> Response:
        return JSONResponse({"faults": [_describe(each, vocabulary) for each in injector.faults.armed()]})

    async def clear_faults(request: Request) -> Response:
        injector.faults.clear()
        return Response(status_code=204)

    async def remove_fault(request: Request) -> Response:
        fault_id = request.path_params["id"]
        if injector.faults.remove(fault_id):
            return Response(status_code=204)
        return _error(404, f"there is no fault {fault_id}; GET /faults lists those that are armed.")

    async def show_log(request: Request) -> Response:
        after = request.query_params.get("after", "0")
        if not after.isdecimal():
            return _error(400, 'the parameter "after" must be the number of an entry.')
        return JSONResponse({"entries": injector.log.since(int(after))})

    async def clear_log(request: Request) -> Response:
        injector.log.clear()
        return Response(status_code=204)

    async def show_sessions(request: Request) -> Response:
        return JSONResponse(injector.describe())

    return Starlette(
        routes=[
            Route("/faults", _guarded(add_faults), methods=["POST"]),
            Route("/faults", _guarded(list_faults), methods=["GET"]),
            Route("/faults", _guarded(clear_faults), methods=["DELETE"]),
            Route("/faults/{id:int}", _guarded(remove_fault), methods=["DELETE"]),
            Route("/log", _guarded(show_log), methods=["GET"]),
            Route("/log", _guarded(clear_log), methods=["DELETE"]),
            Route("/sessions", _guarded(show_sessions), methods=["GET"]),
        ]
    )


Endpoint = Callable[[Request], Awaitable[Response]]


def _guarded(endpoint: Endpoint) -> Endpoint:
    """Refuses browsers, in which any web page could otherwise use the port, and turns errors into answers."""

    async def guarded(request: Request) -> Response:
        if "origin" in request.headers or not is_loopback(request.url.hostname or ""):
            return _error(403, "the control port is for programs on this machine, not for web pages.")
        try:
            return await endpoint(request)
        except ScriptError as error:
            return _error(400, str(error))

    return guarded


async def _read(request: Request) -> bytes:
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > MAX_BODY_BYTES:
            raise ScriptError(f"the body is longer than {MAX_BODY_BYTES} bytes.")
    return body


def _error(status: int, text: str) -> JSONResponse:
    return JSONResponse({"error": text}, status)


def _describe(armed: ArmedFault, vocabulary: Vocabulary) -> dict[str, Any]:
    fault = armed.fault
    names = {action: name for name, action in vocabulary.actions.items()}
    return {
        "id": armed.id,
        "when": {str(fault.when.occasion): fault.when.value},
        "do": [{names[type(each)]: msgspec.to_builtins(each)} for each in fault.do],
        "connection": fault.connection,
        "skip": fault.skip,
        "times": "always" if fault.times is None else fault.times,
        "performed": armed.performed,
    }
