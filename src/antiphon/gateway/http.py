"""The OpenAI-compatible HTTP endpoints. They admit callers with the same tokens and limits as every other route."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from antiphon.gateway.api_errors import ApiError, reply, too_fast
from antiphon.gateway.chat_answer import ChatAnswer, ChatDeps
from antiphon.gateway.chat_completions import CompletionStream, begin_completion, make_whole
from antiphon.gateway.chat_request import read_chat_request
from antiphon.gateway.connected import RETRY_AFTER_S, RequestWork, explain_failure, server_stopping
from antiphon.gateway.deps import GatewayDeps, address_of
from antiphon.gateway.speech import SpeechApi
from antiphon.gateway.transcription import TranscriptionApi
from antiphon.security.admission import AdmissionRefused, Caller, RefusalKind
from antiphon.security.quota import Account
from antiphon.security.tokens import bearer
from antiphon.session.tool_runner import charge_to

OWN_NAME: Final = "antiphon"
"""The name of whichever model answers."""


@dataclass(frozen=True, slots=True)
class Admitted:
    """A request whose caller is known and within the limits."""

    request: Request
    caller: Caller
    account: Account


Handle = Callable[[Admitted], Awaitable[Response]]


class HttpGateway:
    def __init__(
        self,
        deps: GatewayDeps,
        *,
        chat: ChatDeps,
        transcription: TranscriptionApi,
        speech: SpeechApi,
        stopping: asyncio.Event,
        must_end: asyncio.Event,
    ) -> None:
        """`stopping` is set when the server begins to stop: new requests are refused. `must_end` is set when the time
        for finishing answers is over."""
        self._deps = deps
        self._chat = chat
        self._transcription = transcription
        self._speech = speech
        self._stopping = stopping
        self._work = RequestWork(must_end)
        self._started_ms = deps.clock.now_ms()

    def routes(self) -> Sequence[Route]:
        table: Mapping[str, tuple[str, Handle]] = {
            "/v1/chat/completions": ("POST", self._complete_chat),
            "/v1/audio/transcriptions": ("POST", self._transcribe),
            "/v1/audio/speech": ("POST", self._speak),
            "/v1/models": ("GET", self._list_models),
            "/v1/models/{id:path}": ("GET", self._show_model),
        }
        return [Route(path, self._endpoint(handle), methods=[method]) for path, (method, handle) in table.items()]

    async def drain(self, time_left_s: float) -> None:
        """Waits for the answers under way, at most this long."""
        await self._work.finish(time_left_s)

    async def _complete_chat(self, admitted: Admitted) -> Response:
        deps, request = self._deps, read_chat_request(await admitted.request.body())
        self._check_model(request.model)
        answer = ChatAnswer(
            self._chat,
            request,
            user=admitted.caller.user,
            authenticated=admitted.caller.authenticated,
            charge=charge_to(deps.quota, admitted.account, deps.clock),
        )
        completion = begin_completion(request.model, deps.clock.now_ms())
        if request.is_streamed:
            return CompletionStream(answer, completion, self._work, includes_usage=request.includes_usage)
        return await self._work.run(make_whole(answer, completion), admitted.request.receive)

    async def _transcribe(self, admitted: Admitted) -> Response:
        upload = await self._transcription.read(admitted.request)
        work = self._transcription.transcribe(upload, admitted.account)
        return await self._work.run(work, admitted.request.receive)

    async def _speak(self, admitted: Admitted) -> Response:
        wanted = self._speech.read(await admitted.request.body())
        return self._speech.speak(wanted, admitted.account, self._work)

    async def _list_models(self, admitted: Admitted) -> Response:
        return reply({"object": "list", "data": [self._describe_model(name) for name in self._model_names()]})

    async def _show_model(self, admitted: Admitted) -> Response:
        name = admitted.request.path_params["id"]
        self._check_model(name)
        return reply(self._describe_model(name))

    def _model_names(self) -> Sequence[str]:
        return (OWN_NAME, self._deps.model_name)

    def _describe_model(self, name: str) -> dict[str, Any]:
        return {"id": name, "object": "model", "created": self._started_ms // 1000, "owned_by": OWN_NAME}

    def _check_model(self, name: str) -> None:
        if name not in self._model_names():
            known = " or ".join(f"`{each}`" for each in self._model_names())
            message = f"The model `{name[:200]}` does not exist on this server. Use {known}."
            raise ApiError(404, message, code="model_not_found", param="model")

    def _endpoint(self, handle: Handle) -> Callable[[Request], Awaitable[Response]]:
        async def endpoint(request: Request) -> Response:
            try:
                return await handle(await self._admit(request))
            except ClientDisconnect:
                return Response(status_code=204)
            except Exception as error:
                return explain_failure(error, request.scope["path"]).response()

        return endpoint

    async def _admit(self, request: Request) -> Admitted:
        deps = self._deps
        if self._stopping.is_set():
            raise server_stopping()
        address = address_of(request)
        key = bearer(request.headers.get("authorization"))
        try:
            caller = await deps.admission.admit(key, address=address, route=request.scope["path"])
        except AdmissionRefused as refused:
            raise _explain(refused) from None
        return Admitted(request, caller, Account(user=caller.user, address=address))


def _explain(refused: AdmissionRefused) -> ApiError:
    match refused.kind:
        case RefusalKind.UNAUTHENTICATED:
            return ApiError(401, str(refused), code="invalid_api_key")
        case RefusalKind.BLOCKED:
            return ApiError(403, str(refused), code="blocked", retry_after_s=refused.retry_after_s)
        case RefusalKind.WRONG_TOKENS | RefusalKind.FULL:
            return too_fast(str(refused), refused.retry_after_s or RETRY_AFTER_S)
