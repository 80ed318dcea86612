"""kill -9 during an action: a reconnecting client learns once, within seconds, that the outcome is unknown."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Final

import httpx2
import pytest

from tests.fakes.toolbox import document, write_tool
from tests.fault.servers import PATIENCE_S, Client, Served, Servers, leaving, servers_in
from tests.wire.served import Served as WholeServer
from tests.wire.served import serve

pytestmark = pytest.mark.real_time

WISH: Final = "transfer the money"
UNKNOWN: Final = "I don't know whether it worked"
SUM: Final = "2 plus 3 is 5."

HANDLER: Final = """\
import asyncio
from pathlib import Path

from antiphon.tools.context import Args, Context
from antiphon.tools.result import ToolResult, ok

HERE = Path(__file__).parent


def preview(args: Args) -> str:
    return "Transfer the money?"


async def execute(args: Args, context: Context) -> ToolResult:
    with (HERE / "ledger").open("a") as lines:
        lines.write("transferred\\n")
    while not (HERE / "done").exists():
        await asyncio.sleep(0.05)
    return ok({"transferred": True}, spoken="The money has been transferred.")
"""


class Bank:
    """A folder of servers with an action that runs until it is allowed to finish."""

    def __init__(self, folder: Path, *, asks: bool = False) -> None:
        self.home = write_tool(
            folder / "tools",
            "transfer_money",
            category="action",
            sideEffects="writes",
            idempotent=False,
            requiresConfirmation=asks,
            parameters={"type": "object", "additionalProperties": False, "properties": {}},
            files={
                "handler.py": HANDLER,
                "doc.md": document("transfer_money", "{}"),
                "sentences.yaml": f'data:\n  - sentences: ["{WISH}"]\n',
            },
        )

    async def is_transferring(self) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while not (self.home / "ledger").exists():  # noqa: ASYNC110
                await asyncio.sleep(0.02)

    @property
    def transfers(self) -> int:
        return len((self.home / "ledger").read_text().splitlines())


@pytest.fixture
async def servers(tmp_path: Path) -> AsyncIterator[Servers]:
    async with servers_in(tmp_path) as servers:
        yield servers


@pytest.fixture
def bank(tmp_path: Path) -> Bank:
    return Bank(tmp_path)


async def start(servers: Servers) -> tuple[Served, Served]:
    return await asyncio.gather(servers.start(model="builtin"), servers.start(model="builtin"))


async def transfer_and_die(servers: Servers, bank: Bank) -> tuple[Client, Served]:
    """A client whose server was killed in the middle of the action, and a server to resume on."""
    victim, heir = await start(servers)
    client = await Client().connect(victim, mode="text")
    await client.send("text_message", text=WISH)
    await client.until("tool_call")
    await bank.is_transferring()
    await victim.kill()
    await client.hear_out()
    return client, heir


def unknown_in(client: Client) -> list[str]:
    return [message["text"] for message in client.every("response") if UNKNOWN in message["text"]]


async def test_a_waiting_client_learns_at_once_that_the_outcome_is_unknown(servers: Servers, bank: Bank) -> None:
    client, heir = await transfer_and_die(servers, bank)
    async with leaving([client]):
        await client.resume(heir)
        # The lease of the run expires within three seconds. The client's timeout allows for a busy machine.
        result = await client.until("tool_result")
        assert (result["ok"], result["result"]["error"]["details"]) == (False, {"outcome": "unknown"})
        answer = (await client.until("response"))["text"]
        assert UNKNOWN in answer
        assert "transfer_money" not in answer
        await client.until("state", state="idle")
        await client.ask("what is 2 plus 3")
        assert client.shown[-1] == ("assistant", SUM)
        assert (len(unknown_in(client)), bank.transfers) == (1, 1)


async def test_a_client_that_changes_the_subject_is_told_once(servers: Servers, bank: Bank) -> None:
    client, heir = await transfer_and_die(servers, bank)
    third = await servers.start(model="builtin")
    async with leaving([client]):
        await client.resume(heir)
        await client.until("state", state="processing")
        await client.send("interrupt")
        await client.until("state", state="idle")
        await client.send("text_message", text="what is 2 plus 3")
        async with asyncio.timeout(PATIENCE_S):
            while not (unknown_in(client) and any(SUM in text for _, text in client.shown)):
                await client.until("response")
        await client.ask("what is 3 plus 4")
        assert client.shown[-1] == ("assistant", "3 plus 4 is 7.")
        client.cut()
        await client.resume(third)
        await client.ask("what is 4 plus 5")
        assert client.shown[-1] == ("assistant", "4 plus 5 is 9.")
        assert (len(unknown_in(client)), bank.transfers) == (1, 1)
        received = [turn for turn in servers.turns(client.conversation_id) if turn["role"] == "tool"]
        assert [turn["name"] for turn in received].count("transfer_money") == 1


async def test_a_client_that_returns_while_the_action_still_runs_gets_its_result(servers: Servers, bank: Bank) -> None:
    one, two = await start(servers)
    client = await Client().connect(one, mode="text")
    async with leaving([client]):
        await client.send("text_message", text=WISH)
        await bank.is_transferring()
        client.cut()
        await client.resume(two)
        await client.until("state", state="processing")
        # Longer than the lease of a run that is not renewed.
        await asyncio.sleep(4)
        (bank.home / "done").touch()
        assert (await client.until("response"))["text"].strip() == "The money has been transferred."
        assert (unknown_in(client), bank.transfers) == ([], 1)


async def test_a_client_that_approved_by_button_is_told_without_asking(servers: Servers) -> None:
    bank = Bank(servers.folder, asks=True)
    victim, heir = await start(servers)
    client = await Client().connect(victim, mode="text")
    async with leaving([client]):
        await client.ask(WISH)
        [question] = client.every("confirmation_request")
        await client.send("confirm", confirmation_token=question["confirmation_token"], approved=True)
        await bank.is_transferring()
        await victim.kill()
        await client.hear_out()
        await client.resume(heir)
        result = await client.until("tool_result")
        assert (result["id"], result["result"]["error"]["details"]) == (question["id"], {"outcome": "unknown"})
        await client.until("response")
        assert (len(unknown_in(client)), bank.transfers) == (1, 1)


async def chat(served: WholeServer, **body: Any) -> dict[str, Any]:
    async with httpx2.AsyncClient(base_url=f"http://127.0.0.1:{served.port}", timeout=PATIENCE_S) as http:
        answer = await http.post("/api/chat", json=body)
        # If the server that had the conversation has died, it is busy until the lease of the request is over.
        while answer.status_code == 409:
            await asyncio.sleep(int(answer.headers["retry-after"]))
            answer = await http.post("/api/chat", json=body)
        assert answer.status_code == 200, answer.text
        received: dict[str, Any] = answer.json()
        return received


async def test_over_http_the_next_message_reports_the_unknown_outcome(tmp_path: Path, bank: Bank) -> None:
    with serve(tmp_path) as victim, serve(tmp_path) as heir:
        id = (await chat(victim, message="what is 2 plus 3"))["conversationId"]
        lost = asyncio.create_task(chat(victim, message=WISH, conversation_id=id))
        await bank.is_transferring()
        victim.process.kill()
        with pytest.raises(httpx2.HTTPError):
            await lost
        answer = await chat(heir, message="what is 2 plus 3", conversation_id=id)
        assert UNKNOWN in answer["message"]
        assert answer["message"].endswith(SUM)
        again = await chat(heir, message="what is 2 plus 3", conversation_id=id)
        assert (again["message"], bank.transfers) == (SUM, 1)
