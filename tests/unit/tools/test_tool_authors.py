"""What the gate does for tool authors: secrets stay secret, results are checked in development, stores may fail."""

import io
from collections.abc import Iterator
from typing import Any

import pytest
import structlog

from antiphon.services.secrets import offer_secrets
from antiphon.storage.base import STORE_UNAVAILABLE, StoreUnavailable
from antiphon.telemetry import log, secrets
from antiphon.tools.context import Args, Context
from antiphon.tools.errors import ErrorType, ToolError
from antiphon.tools.messages import Notice
from antiphon.tools.result import Prepared, ToolResult, fail, ok
from tests.fakes.gates import Gate, make_action, make_tool

KEY = "sk-live-4711-secret"
ENVIRONMENT = {"ACME_API_KEY": KEY, "OTHER_KEY": "other-secret", "EMPTY_KEY": ""}


@pytest.fixture(autouse=True)
def _forgotten() -> Iterator[None]:
    yield
    secrets._known.clear()


@pytest.fixture
def logged() -> Iterator[io.StringIO]:
    stream, before = io.StringIO(), structlog.get_config()
    log.configure(json=True, level="info", stream=stream, exception_texts=True)
    yield stream
    structlog.configure(**before)


def gate_with(execute: Any, names: tuple[str, ...] = ("ACME_API_KEY",), **options: Any) -> Gate:
    tool = make_tool("acme", execute, uses=("secrets",), secrets=names, idempotent=False)
    return Gate(tool, offers={"secrets": offer_secrets(ENVIRONMENT)}, **options)


async def test_a_tool_gets_the_secret_that_its_schema_names() -> None:
    async def execute(args: Args, context: Context) -> ToolResult:
        return ok({"length": len(context.secrets.get("ACME_API_KEY"))})

    assert (await gate_with(execute).call("acme")).data == {"length": len(KEY)}


async def test_a_tool_does_not_get_a_secret_that_its_schema_does_not_name(logged: io.StringIO) -> None:
    async def execute(args: Args, context: Context) -> ToolResult:
        return ok(context.secrets.get("OTHER_KEY"))

    error = (await gate_with(execute).call("acme")).error
    assert error is not None
    assert error.type is ErrorType.INTERNAL
    assert 'does not list \\"OTHER_KEY\\" in its schema' in logged.getvalue()


async def ask_with_key(args: Args, context: Context) -> Prepared:
    return Prepared({**args}, f"Use {context.secrets.get('ACME_API_KEY')}?")


async def refuse_with_key(args: Args, context: Context) -> Prepared:
    raise ToolError(ErrorType.CONFLICT, f"{context.secrets.get('ACME_API_KEY')} is used up.")


@pytest.mark.parametrize("prepare", [ask_with_key, refuse_with_key])
async def test_a_secret_is_masked_in_what_a_preparation_tells(prepare: Any) -> None:
    fields = {"uses": ("secrets",), "secrets": ("ACME_API_KEY",), "requires_confirmation": True}
    tool = make_action("acme", prepare=prepare, **fields)
    gate = Gate(tool, offers={"secrets": offer_secrets(ENVIRONMENT)})
    error = (await gate.call("acme")).error
    assert error is not None
    told = f"{error.message} {gate.outbox.sent}"
    assert "***" in told
    assert KEY not in told


@pytest.mark.parametrize("name", ["EMPTY_KEY", "UNSET_KEY"])
async def test_a_secret_that_is_not_set_is_a_permanent_failure_that_says_what_to_set(name: str) -> None:
    async def execute(args: Args, context: Context) -> ToolResult:
        return ok(context.secrets.get(name))

    error = (await gate_with(execute, (name,)).call("acme")).error
    assert error is not None
    assert error.type is ErrorType.PERMANENT
    assert error.message == "That isn't set up on this server yet."
    assert error.suggestion == f"Whoever runs this server must set the environment variable {name}."


async def test_a_secret_is_masked_in_a_result() -> None:
    async def execute(args: Args, context: Context) -> ToolResult:
        key = context.secrets.get("ACME_API_KEY")
        return ok({"url": f"https://acme.example/?key={key}", key: [key]}, spoken=f"Your key is {key}.")

    result = await gate_with(execute).call("acme")
    assert KEY not in repr(result)
    assert result.data == {"url": "https://acme.example/?key=***", "***": ["***"]}
    assert result.spoken == "Your key is ***."


async def test_a_secret_is_masked_in_a_failure() -> None:
    async def returned(args: Args, context: Context) -> ToolResult:
        return fail(ErrorType.AUTH, f"{context.secrets.get('ACME_API_KEY')} was refused", details={"k": KEY})

    async def raised(args: Args, context: Context) -> ToolResult:
        raise ToolError(ErrorType.AUTH, f"{context.secrets.get('ACME_API_KEY')} was refused", suggestion=KEY)

    for execute in (returned, raised):
        result = await gate_with(execute).call("acme")
        assert KEY not in repr(result)
        assert result.error is not None
        assert result.error.type is ErrorType.AUTH
        assert result.error.message == "*** was refused"


async def test_a_secret_is_masked_in_the_log_of_an_exception(logged: io.StringIO) -> None:
    async def execute(args: Args, context: Context) -> ToolResult:
        raise RuntimeError(f"cannot open https://acme.example/?key={context.secrets.get('ACME_API_KEY')}")

    result = await gate_with(execute).call("acme")
    assert result.error is not None
    assert result.error.type is ErrorType.INTERNAL
    assert KEY not in logged.getvalue()
    assert "https://acme.example/?key=***" in logged.getvalue()


async def test_a_secret_is_masked_in_messages_and_in_the_audit() -> None:
    async def execute(args: Args, context: Context) -> ToolResult:
        key = context.secrets.get("ACME_API_KEY")
        await context.messaging.send(Notice(f"key {key}"))
        context.audit.log("asked", key=key)
        return ok()

    gate = gate_with(execute)
    await gate.call("acme")
    assert gate.outbox.sent == [Notice("key ***")]
    assert [line.data for line in await gate.audit() if line.event == "asked"] == [{"key": "***"}]


def test_a_very_short_secret_is_not_masked() -> None:
    secrets.conceal("abc")
    assert secrets.scrub("abcdef") == "abcdef"


OUTPUTS = {"type": "object", "required": ["count"], "properties": {"count": {"type": "integer"}}}


@pytest.mark.parametrize(("environment", "told"), [("development", True), ("production", False)])
async def test_in_development_a_result_that_does_not_fit_its_outputs_is_logged_and_used(
    logged: io.StringIO, environment: str, told: bool
) -> None:
    async def execute(args: Args, context: Context) -> ToolResult:
        return ok({"count": "three"})

    gate = Gate(make_tool("counted", execute, outputs=OUTPUTS), environment=environment)
    result = await gate.call("counted")
    assert result.data == {"count": "three"}
    assert ("outputs_mismatch" in logged.getvalue()) is told
    assert ("/count" in logged.getvalue()) is told


async def test_in_development_a_result_that_fits_is_not_logged(logged: io.StringIO) -> None:
    async def execute(args: Args, context: Context) -> ToolResult:
        return ok({"count": 3})

    await Gate(make_tool("counted", execute, outputs=OUTPUTS), environment="development").call("counted")
    assert "outputs_mismatch" not in logged.getvalue()


async def test_a_store_that_is_down_is_transient_and_not_an_unknown_outcome(logged: io.StringIO) -> None:
    async def execute(args: Args, context: Context) -> ToolResult:
        raise StoreUnavailable("The database a.db cannot be used: locked.")

    error = (await Gate(make_tool("stored", execute)).call("stored")).error
    assert error is not None
    assert error.type is ErrorType.TRANSIENT
    assert error.retryable
    assert not error.partial_side_effects
    assert error.message == STORE_UNAVAILABLE
    assert "store_unavailable" in logged.getvalue()
