"""The tables `[mcp.servers.NAME]`: MCP servers whose tools this server uses. They are set in the file only.

The environment cannot override them: the name of a server is part of the key, and what a server may do should be
written in one place. Secrets are not in the file either: `env` and `headers` name variables.
"""

import re
from collections.abc import Mapping
from difflib import get_close_matches
from typing import Annotated, Any, Final, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, ValidationError

from antiphon.config.quoting import quote
from antiphon.config.sections import Section, Switch, When

PREFIX: Final = "mcp.servers."
MAX_NAME_CHARS: Final = 32
_NAME: Final = re.compile(rf"[a-z0-9][a-z0-9_-]{{0,{MAX_NAME_CHARS - 1}}}")
_NAME_RULE: Final = (
    f"up to {MAX_NAME_CHARS} lower-case letters, digits, _ and -, a letter or a digit first, such as [mcp.servers.time]"
)
_VARIABLE: Final = r"^[A-Za-z_][A-Za-z0-9_]*$"
_HEADER: Final = r"^[A-Za-z0-9!#$%&'*+.^_`|~-]+$"


def _check_url(text: str) -> str:
    parts = urlsplit(text)
    if text and (parts.scheme not in ("http", "https") or not parts.hostname or parts.username is not None):
        raise ValueError("not an address")
    return text


Modes = Annotated[
    tuple[Literal["text", "voice"], ...],
    Field(strict=False, min_length=1, description='a list of modes: ["text"], ["voice"] or ["text", "voice"]'),
]
Category = Annotated[
    Literal["auto", "retrieval", "action", "utility"],
    Field(description='"auto", "retrieval", "action" or "utility"'),
]
BudgetMs = Annotated[int, Field(ge=50, le=60_000, description="a number of milliseconds from 50 to 60000")]
TimeoutMs = Annotated[int, Field(ge=100, le=600_000, description="a number of milliseconds from 100 to 600000")]
Command = Annotated[str, Field(description='a program, such as "uvx" or "mcp-server-time"')]
Arguments = Annotated[
    tuple[str, ...], Field(strict=False, description='a list of arguments, such as ["--local-timezone", "Europe/Oslo"]')
]
Variables = Annotated[
    tuple[Annotated[str, Field(pattern=_VARIABLE)], ...],
    Field(strict=False, description='a list of names of environment variables, such as ["GITHUB_TOKEN"]'),
]
Url = Annotated[
    str,
    AfterValidator(_check_url),
    Field(description='an address without a user name, such as "https://example.org/mcp"'),
]
Headers = Annotated[
    dict[Annotated[str, Field(pattern=_HEADER)], Annotated[str, Field(pattern=_VARIABLE)]],
    Field(
        description="a table of headers and the environment variables that have their values, such as "
        '{ Authorization = "EXAMPLE_AUTHORIZATION" }'
    ),
]
ToolNames = Annotated[
    tuple[str, ...], Field(strict=False, description='a list of names of tools of this server, such as ["delete_file"]')
]


class ToolPolicy(Section):
    """What one tool of a server may do. What is not set is as for the whole server."""

    modes: Modes | None = None
    category: Category | None = None
    confirmation: When | None = None
    budget_ms: BudgetMs | None = None
    timeout_ms: TimeoutMs | None = None
    enabled: Switch = True


class McpServer(Section):
    """An MCP server, and what its tools may do."""

    command: Command = ""
    """The program to start. Either this or `url` is set."""
    args: Arguments = ()
    env: Variables = ()
    """The variables that the program gets, besides a few such as PATH and HOME."""
    url: Url = ""
    headers: Headers = Field(default_factory=dict)
    modes: Modes = ("text",)
    category: Category = "auto"
    confirmation: When = "auto"
    """Whether a person must approve calls. "auto" means those of tools that do not say that they only read."""
    budget_ms: BudgetMs = 5_000
    """How long a look-up may take in voice; in text, twice as long."""
    timeout_ms: TimeoutMs = 30_000
    """How long an action may take."""
    enabled: Switch = True
    disable: ToolNames = ()
    tools: dict[str, ToolPolicy] = Field(default_factory=dict)
    """Exceptions for single tools, by the server's names for them."""

    def policy(self, tool: str) -> "McpServer":
        """Returns the settings that hold for a tool."""
        own = self.tools.get(tool)
        changes = {} if own is None else {k: v for k, v in own if v is not None}
        made = self.model_copy(update=changes)
        return made.model_copy(update={"enabled": False}) if tool in self.disable else made


_SERVER_KEYS: Final = tuple(name for name in McpServer.model_fields if name != "tools")
_TOOL_KEYS: Final = tuple(ToolPolicy.model_fields)


def read_servers(table: Any, file: str, problems: list[str]) -> dict[str, McpServer]:
    """Reads the table `mcp` of the file, and adds a problem for each mistake."""
    if not isinstance(table, dict):
        problems.append(f"{file}: mcp is {quote(table)}; it must be a table, which has [mcp.servers.NAME].")
        return {}
    problems += [
        f"{file}: there is no setting mcp.{key}. The nearest is mcp.servers." for key in table if key != "servers"
    ]
    servers = table.get("servers", {})
    if not isinstance(servers, dict):
        problems.append(f"{file}: mcp.servers is {quote(servers)}; it must be a table, which has [mcp.servers.NAME].")
        return {}
    found = {name: _read_server(name, each, file, problems) for name, each in servers.items()}
    return {name: server for name, server in found.items() if server is not None}


def keys_of(servers: Mapping[str, McpServer]) -> list[str]:
    """Lists the keys of all servers, and of those tools that have settings of their own."""
    keys = []
    for name, server in servers.items():
        keys += [f"{PREFIX}{name}.{key}" for key in _SERVER_KEYS]
        for tool, policy in server.tools.items():
            keys += [f"{PREFIX}{name}.tools.{tool}.{key}" for key in _TOOL_KEYS if key in policy.model_fields_set]
    return keys


def given_keys(servers: Mapping[str, McpServer]) -> list[str]:
    return [key for key in keys_of(servers) if _is_given(servers, key)]


def value_of(servers: Mapping[str, McpServer], key: str) -> Any:
    holder, bare = _holder(servers, key)
    return holder.model_dump()[bare]


def _is_given(servers: Mapping[str, McpServer], key: str) -> bool:
    holder, bare = _holder(servers, key)
    return bare in holder.model_fields_set


def _holder(servers: Mapping[str, McpServer], key: str) -> tuple[Section, str]:
    name, _, rest = key.removeprefix(PREFIX).partition(".")
    table, _, bare = rest.rpartition(".")
    tool = table.removeprefix("tools.")
    return (servers[name].tools[tool] if table else servers[name]), bare


def _read_server(name: str, table: Any, file: str, problems: list[str]) -> McpServer | None:
    dotted = f"{PREFIX}{name}"
    if _NAME.fullmatch(name) is None:
        problems.append(f"{file}: {name!r} is not a name of an MCP server. Use {_NAME_RULE}.")
        return None
    if not isinstance(table, dict):
        problems.append(f"{file}: {dotted} is {quote(table)}; it must be a table, which starts with [{dotted}].")
        return None
    before = len(problems)
    policies = table.get("tools", {})
    if not isinstance(policies, dict):
        problems.append(
            f"{file}: {dotted}.tools is {quote(policies)}; it must be a table, which has [{dotted}.tools.TOOL]."
        )
        policies = {}
    tools = {
        tool: _validate(ToolPolicy, f"{dotted}.tools.{tool}", each, file, problems) for tool, each in policies.items()
    }
    own = {key: value for key, value in table.items() if key != "tools"}
    server = _validate(McpServer, dotted, own, file, problems)
    if server is not None:
        problems += _contradictions(server, dotted, file)
    if server is None or len(problems) > before:
        return None
    read: McpServer = server.model_copy(update={"tools": {k: v for k, v in tools.items() if v is not None}})
    return read


def _validate(kind: type[Any], dotted: str, table: Any, file: str, problems: list[str]) -> Any:
    if not isinstance(table, dict):
        problems.append(f"{file}: {dotted} is {quote(table)}; it must be a table, which starts with [{dotted}].")
        return None
    known = [key for key in kind.model_fields if key != "tools"]
    unknown = [key for key in table if key not in known]
    for key in unknown:
        near = get_close_matches(key, known, n=1, cutoff=0.0)[0]
        problems.append(f"{file}: there is no setting {dotted}.{key}. The nearest is {dotted}.{near}.")
    try:
        return kind.model_validate({key: value for key, value in table.items() if key in known})
    except ValidationError as error:
        for key in dict.fromkeys(str(each["loc"][0]) for each in error.errors()):
            problems.append(f"{file}: {dotted}.{key} is {quote(table[key])}; it must be {_description(key)}.")
        return None


def _description(key: str) -> str:
    # Those of `ToolPolicy` are the same, but pydantic does not find them behind `| None`.
    return str(McpServer.model_fields[key].description)


def _contradictions(server: McpServer, dotted: str, file: str) -> list[str]:
    if bool(server.command) == bool(server.url):
        both = "both command and url" if server.url else "neither command nor url"
        return [f"{file}: {dotted} has {both}. Set `command` for a program, or `url` for a server that runs already."]
    wrong = ("headers",) if server.command else ("args", "env")
    right, used = ("command", "url") if server.command else ("url", "command")
    return [
        f"{file}: {dotted}.{key} has no effect with {right}; it is for servers with {used}. Remove it."
        for key in wrong
        if getattr(server, key)
    ]
