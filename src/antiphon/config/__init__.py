"""The settings: `antiphon.toml`, overridden by the environment. All mistakes are reported at once."""

import json
import os
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, cast

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo
from pydantic_settings import BaseSettings, EnvSettingsSource, SettingsConfigDict

from antiphon.config import mcp
from antiphon.config.mcp import McpServer as McpServer
from antiphon.config.mcp import ToolPolicy as ToolPolicy
from antiphon.config.quoting import MAX_QUOTE_CHARS as MAX_QUOTE_CHARS
from antiphon.config.quoting import hide_password, quote
from antiphon.config.sections import MAX_INSTRUCTIONS_CHARS
from antiphon.config.sections import Assistant as Assistant
from antiphon.config.sections import Audit as Audit
from antiphon.config.sections import Calendar as Calendar
from antiphon.config.sections import Continuity as Continuity
from antiphon.config.sections import Home as Home
from antiphon.config.sections import Hooks as Hooks
from antiphon.config.sections import Images as Images
from antiphon.config.sections import Knowledge as Knowledge
from antiphon.config.sections import Ladder as Ladder
from antiphon.config.sections import Model as Model
from antiphon.config.sections import Ollama as Ollama
from antiphon.config.sections import Recording as Recording
from antiphon.config.sections import Section as Section
from antiphon.config.sections import Server as Server
from antiphon.config.sections import Speech as Speech
from antiphon.config.sections import Storage as Storage
from antiphon.config.sections import TextLadder as TextLadder
from antiphon.config.sections import Tools as Tools
from antiphon.config.sections import VoiceLadder as VoiceLadder
from antiphon.config.sections import Weather as Weather
from antiphon.config.sections import Web as Web
from antiphon.errors import AntiphonError

FILE_NAME: Final = "antiphon.toml"
VARIABLE_PREFIX: Final = "ANTIPHON_"
DATA_DIR_VARIABLE: Final = "ANTIPHON_DATA_DIR"
MODELS_DIR_VARIABLE: Final = "ANTIPHON_MODELS_DIR"
DEFAULT: Final = "default"
GIVEN: Final = "settings"
"""Where settings come from that a program gives itself."""
_FILE_ONLY: Final = f"MCP servers are set in {FILE_NAME} only, as [mcp.servers.NAME]. Remove the variable."
_SILENCES: Final = (
    "speech.short_silence_ms",
    "speech.middle_silence_ms",
    "speech.long_silence_ms",
    "speech.unfinished_silence_ms",
)


class ConfigError(AntiphonError):
    """The settings are invalid; `problems` has a sentence for each mistake."""

    code = "config"

    def __init__(self, problems: list[str]) -> None:
        self.problems = tuple(problems)
        several = "\n".join([f"the settings have {len(problems)} problems:", *(f"  {problem}" for problem in problems)])
        super().__init__(several if len(problems) > 1 else problems[0])


class _Document(BaseSettings):
    """The structure of all settings. Only its sections are created, one by one, so that each value has an origin."""

    model_config = SettingsConfigDict(
        case_sensitive=True, strict=True, env_prefix=VARIABLE_PREFIX.lower(), env_nested_delimiter="__"
    )

    server: Server
    assistant: Assistant
    model: Model
    ladder: Ladder
    continuity: Continuity
    ollama: Ollama
    speech: Speech
    images: Images
    recording: Recording
    tools: Tools
    hooks: Hooks
    knowledge: Knowledge
    storage: Storage
    audit: Audit
    calendar: Calendar
    web: Web
    weather: Weather
    home: Home


class _Environment(EnvSettingsSource):
    def __init__(self, values: Mapping[str, str]) -> None:
        super().__init__(_Document)
        self.env_vars = {
            _variable(key).lower(): value for key in _FIELDS if (value := values.get(_variable(key))) not in (None, "")
        }

    def decode_complex_value(self, field_name: str, field: FieldInfo, value: Any) -> Any:
        """Decodes a list: JSON, or names separated by commas; or a table in JSON. Invalid JSON fails validation."""
        if not value.startswith(("[", "{")):
            return [name.strip() for name in value.split(",")]
        try:
            return json.loads(value)
        except ValueError:
            return value


def _sections(model: type[BaseModel], prefix: str = "") -> Iterator[tuple[str, type[Section]]]:
    """Finds the tables that have settings, by their dotted names: not those that only have tables."""
    for name, info in model.model_fields.items():
        section = cast(type[Section], info.annotation)
        is_group = all(isinstance(each.annotation, type(Section)) for each in section.model_fields.values())
        if is_group:
            yield from _sections(section, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", section


_SECTIONS: Final = dict(_sections(_Document))
_GROUPS: Final = {name.partition(".")[0] for name in _SECTIONS if "." in name}
"""The tables that only have tables."""
_FIELDS: Final = {
    f"{name}.{info.alias or key}": info
    for name, section in _SECTIONS.items()
    for key, info in section.model_fields.items()
}


_FOLDERS: Final = {"data_dir": DATA_DIR_VARIABLE, "models_dir": MODELS_DIR_VARIABLE}


@dataclass(frozen=True, slots=True)
class Settings:
    project_dir: Path
    """The base of relative paths in the settings: the folder of the settings file, or the current folder."""
    data_dir: Path
    config_path: Path | None = None
    shared_models_dir: Path | None = None
    server: Server = field(default_factory=Server)
    assistant: Assistant = field(default_factory=Assistant)
    model: Model = field(default_factory=Model)
    ladder: Ladder = field(default_factory=Ladder)
    continuity: Continuity = field(default_factory=Continuity)
    ollama: Ollama = field(default_factory=Ollama)
    speech: Speech = field(default_factory=Speech)
    images: Images = field(default_factory=Images)
    recording: Recording = field(default_factory=Recording)
    tools: Tools = field(default_factory=Tools)
    hooks: Hooks = field(default_factory=Hooks)
    knowledge: Knowledge = field(default_factory=Knowledge)
    storage: Storage = field(default_factory=Storage)
    audit: Audit = field(default_factory=Audit)
    calendar: Calendar = field(default_factory=Calendar)
    web: Web = field(default_factory=Web)
    weather: Weather = field(default_factory=Weather)
    home: Home = field(default_factory=Home)
    mcp_servers: Mapping[str, McpServer] = field(default_factory=dict)
    """The tables `[mcp.servers.NAME]`, by name."""
    given: Mapping[str, str] = field(default_factory=dict)
    """The keys that were set, and where."""

    @property
    def models_dir(self) -> Path:
        """The folder of the model files: in the data folder, or shared by all users and projects of a machine."""
        return self.shared_models_dir or self.data_dir / "models"

    @property
    def recordings_dir(self) -> Path | None:
        """The folder of the recordings of calls; None if nothing is kept, as with a database in memory."""
        return self.data_dir / "recordings" if self.keeps_data else None

    @property
    def artifact_path(self) -> Path:
        """The tool registry: in the project's folder, so that projects do not share it, or else in the data folder."""
        is_project = self.config_path is not None or (self.project_dir / "tools").is_dir()
        return (self.project_dir if is_project else self.data_dir) / "tool_registry.json"

    @property
    def tool_paths(self) -> tuple[Path, ...]:
        return tuple(self.project_dir / Path(path).expanduser() for path in self.tools.paths)

    @property
    def keeps_data(self) -> bool:
        """Whether the data outlives the process: not if the database is in memory."""
        return self.storage.url != "memory"

    @property
    def database(self) -> Path | str | None:
        """The SQLite file, or the address of the Postgres database; None if the data is in memory."""
        return self.storage.url if self.storage.url.startswith("postgres") else self.database_path

    @property
    def database_name(self) -> str:
        """How messages call the database. It has no password."""
        return "memory only" if not self.keeps_data else hide_password(str(self.database))

    @property
    def database_path(self) -> Path | None:
        """The SQLite file; None if the data is in memory or in Postgres."""
        if self.storage.url == "memory" or self.storage.url.startswith("postgres"):
            return None
        _, _, path = self.storage.url.partition("sqlite:///")
        return self.project_dir / Path(path).expanduser() if path else self.data_dir / "antiphon.db"

    @property
    def tls_paths(self) -> tuple[Path, Path] | None:
        """The certificate and its key; None without TLS."""
        if not self.server.tls_cert:
            return None
        certificate, key = (Path(each).expanduser() for each in (self.server.tls_cert, self.server.tls_key))
        return self.project_dir / certificate, self.project_dir / key

    def value(self, key: str) -> Any:
        """Returns the value of one of the keys of `origins`."""
        if key.startswith(mcp.PREFIX):
            return mcp.value_of(self.mcp_servers, key)
        name, _, bare = key.rpartition(".")
        section: Any = self
        for each in name.split(".") if name else ():
            section = getattr(section, each)
        return getattr(section, bare) if not name else section.model_dump(by_alias=True)[bare]

    def origins(self) -> Mapping[str, str]:
        """Returns where the value of each key came from: "default", the file, or the variable."""
        keys = (*_FIELDS, *mcp.keys_of(self.mcp_servers), *_FOLDERS)
        return {key: self.given.get(key, DEFAULT) for key in keys}


def load_tables(tables: Mapping[str, Any], env: Mapping[str, str] | None = None) -> Settings:
    """Loads the settings from tables like those of the file: `{"server": {"auth": "off"}}`. The environment overrides
    them, as it does the file.

    `project_dir`, `data_dir` and `models_dir` may be given beside the tables. Raises `ConfigError`.
    """
    env, document = os.environ if env is None else env, dict(tables)
    problems = [
        f"{GIVEN}: {key} is {quote(document[key])}; it must be the path of a folder."
        for key in ("project_dir", *_FOLDERS)
        if not isinstance(document.get(key, ""), str | os.PathLike)
    ]
    if problems:
        raise ConfigError(problems)
    cwd = Path.cwd() / Path(document.pop("project_dir", "")).expanduser()
    folders = {variable: os.fspath(document.pop(key)) for key, variable in _FOLDERS.items() if key in document}
    return _load(document, GIVEN, {**folders, **env}, cwd, None, [])


def load(config_path: Path | None, env: Mapping[str, str] | None = None, cwd: Path | None = None) -> Settings:
    """Loads the settings. Without `config_path`, `antiphon.toml` is read if it is in the current folder.

    An empty variable counts as not set. Raises `ConfigError` with every mistake in the file and the environment.
    """
    env = os.environ if env is None else env
    cwd = Path.cwd() if cwd is None else cwd.absolute()
    path = _find(config_path, cwd)
    problems: list[str] = []
    document = {} if path is None else _read(path, problems)
    return _load(document, "" if path is None else path.name, env, cwd, path, problems)


def _load(
    document: dict[str, Any], file: str, env: Mapping[str, str], cwd: Path, path: Path | None, problems: list[str]
) -> Settings:
    problems = [*_unknown_variables(env), *problems]
    servers = mcp.read_servers(document.pop("mcp", {}), file, problems)
    tables = _known_tables(document, file, problems)
    given = {f"{name}.{key}": file for name, table in tables.items() for key in table}
    given |= dict.fromkeys(mcp.given_keys(servers), file)
    for name, table in _tables(_Environment(env)()):
        tables.setdefault(name, {}).update(table)
        given |= {f"{name}.{key}": _variable(f"{name}.{key}") for key in table}
    sections = {name: _validate(name, tables.get(name, {}), given, problems) for name in _SECTIONS}
    problems += _contradictions(sections["speech"], given)
    problems += _halves_of_tls(sections["server"], given)
    project_dir = path.parent if path else cwd
    if sections["assistant"] is not None:
        sections["assistant"] = _with_instructions(sections["assistant"], project_dir, given, problems)
    if problems:
        raise ConfigError(problems)
    sections["speech"] = _between(sections["speech"], given)
    sections["ladder"] = Ladder(voice=sections.pop("ladder.voice"), text=sections.pop("ladder.text"))

    folders = {key: cwd / Path(env[name]).expanduser() for key, name in _FOLDERS.items() if env.get(name)}
    given |= {key: _FOLDERS[key] for key in folders}
    return Settings(
        project_dir=project_dir,
        data_dir=folders.get("data_dir") or _user_data_dir(),
        shared_models_dir=folders.get("models_dir"),
        config_path=path,
        mcp_servers=servers,
        given=given,
        **sections,
    )


def _find(config_path: Path | None, cwd: Path) -> Path | None:
    path = cwd / (config_path.expanduser() if config_path else FILE_NAME)
    if path.is_file():
        return path
    if config_path is None:
        return None
    raise ConfigError([f"there is no settings file {path}. Give --config the path of an {FILE_NAME}, or omit it."])


def _read(path: Path, problems: list[str]) -> dict[str, Any]:
    """Reads the file. Returns an empty document, and adds a problem, if that is not possible."""
    try:
        text = path.read_text("utf-8-sig")  # Windows editors may begin a file with a byte order mark
        return tomllib.loads(text)
    except OSError as error:
        problems.append(f"{path} cannot be read: {error.strerror}.")
    except UnicodeDecodeError:
        problems.append(f"{path} is not UTF-8 text. Save it as UTF-8.")
    except tomllib.TOMLDecodeError as error:
        what, _, place = str(error).rpartition(" (at ")
        at = re.match(r"line (\d+)", place)
        line = int(at[1]) if at else len(text.splitlines())
        problems.append(f"{path.name}, line {line}: this is not valid TOML ({what}).")
    return {}


def _known_tables(document: Mapping[str, Any], file: str, problems: list[str]) -> dict[str, dict[str, Any]]:
    tables: dict[str, dict[str, Any]] = {}
    for name, table in _tables(document):
        if name in _GROUPS:
            inner = " and ".join(f"[{each}]" for each in _SECTIONS if each.startswith(f"{name}."))
            problems.append(f"{file}: {name} is {quote(table)}; it must be a table, which has {inner}.")
        elif name not in _SECTIONS:
            problems.append(_unknown(file, name, isinstance(table, dict)))
        elif not isinstance(table, dict):
            problems.append(f"{file}: {name} is {quote(table)}; it must be a table, which starts with [{name}].")
        else:
            tables[name] = {key: value for key, value in table.items() if f"{name}.{key}" in _FIELDS}
            problems += [_unknown(file, f"{name}.{key}") for key in table if key not in tables[name]]
    return tables


def _tables(document: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Gives the tables of a document by their dotted names."""
    for name, table in document.items():
        if name in _GROUPS and isinstance(table, dict):
            yield from ((f"{name}.{key}", value) for key, value in table.items())
        else:
            yield name, table


def _unknown(file: str, name: str, is_section: bool = False) -> str:
    if is_section:
        return f"{file}: there is no section [{name}]. The nearest is [{_nearest(name, list(_SECTIONS))}]."
    return f"{file}: there is no setting {name}. The nearest is {_nearest(name, list(_FIELDS))}."


def _unknown_variables(env: Mapping[str, str]) -> list[str]:
    known = {_variable(key): key for key in _FIELDS} | {name: key for key, name in _FOLDERS.items()}
    return [
        f"{name}: {_FILE_ONLY}"
        if name.startswith(_variable(mcp.PREFIX))
        else f"{name}: there is no such setting. The nearest is {_nearest(name, list(known))}."
        for name in sorted(env)
        if name.startswith(VARIABLE_PREFIX) and name not in known
    ]


def _validate(name: str, table: Mapping[str, Any], given: Mapping[str, str], problems: list[str]) -> Any:
    try:
        return _SECTIONS[name].model_validate(table)
    except ValidationError as error:
        # pydantic reports an error for each invalid item of a list, but a list is one setting.
        for key in dict.fromkeys(str(each["loc"][0]) for each in error.errors()):
            dotted = f"{name}.{key}"
            problems.append(
                f"{_place(dotted, given)} is {quote(table[key])}; it must be {_FIELDS[dotted].description}."
            )
        return None


def _contradictions(speech: Speech | None, given: Mapping[str, str]) -> list[str]:
    """Finds values that are valid alone but contradict each other."""
    if speech is None:
        return []
    # The silences that were not set adapt to the others, except for the two that these are measured by.
    settled = {_SILENCES[0], _SILENCES[2], *given}
    silences = [each for each in zip(_SILENCES, speech.silences_ms, strict=True) if each[0] in settled]
    for (shorter, ms), (longer, longer_ms) in pairwise(silences):
        if ms > longer_ms and shorter in given:
            return [f"{_place(shorter, given)} is {ms}; it must be at most {longer}, which is {longer_ms}."]
        if ms > longer_ms:
            return [f"{_place(longer, given)} is {longer_ms}; it must be at least {shorter}, which is {ms}."]
    return []


def _halves_of_tls(server: Server | None, given: Mapping[str, str]) -> list[str]:
    """Finds a certificate without a key, and the other way round."""
    if server is None or bool(server.tls_cert) == bool(server.tls_key):
        return []
    there, missing = ("tls_cert", "tls_key") if server.tls_cert else ("tls_key", "tls_cert")
    return [f"{_place(f'server.{there}', given)} is set and server.{missing} is not. TLS needs both."]


def _between(speech: Speech, given: Mapping[str, str]) -> Speech:
    """Fits the middle silence between its neighbours, and the one after an unfinished request above them, unless they
    were set."""
    short_ms, middle_ms, long_ms, unfinished_ms = speech.silences_ms
    fitting = middle_ms if _SILENCES[1] in given else min(max(short_ms, middle_ms), long_ms)
    longest = unfinished_ms if _SILENCES[3] in given else max(long_ms, unfinished_ms)
    return speech.model_copy(update={"middle_silence_ms": fitting, "unfinished_silence_ms": longest})


def _with_instructions(
    assistant: Assistant, project_dir: Path, given: dict[str, str], problems: list[str]
) -> Assistant:
    """Returns the section with the text of its instructions file, if it has one."""
    if not assistant.instructions_file:
        return assistant
    key = "assistant.instructions_file"
    if assistant.instructions:
        problems.append(f"{_place(key, given)} and assistant.instructions are both set. Use one of them.")
        return assistant
    path = project_dir / Path(assistant.instructions_file).expanduser()
    try:
        text = path.read_text("utf-8-sig").strip()
    except OSError as error:
        problems.append(f"{_place(key, given)} names {path}, which cannot be read: {error.strerror}.")
    except UnicodeDecodeError:
        problems.append(f"{_place(key, given)} names {path}, which is not UTF-8 text. Save it as UTF-8.")
    else:
        if len(text) <= MAX_INSTRUCTIONS_CHARS:
            given["assistant.instructions"] = path.name
            return assistant.model_copy(update={"instructions": text})
        problems.append(
            f"{_place(key, given)} names {path}, which has {len(text):,} characters; "
            f"it must have at most {MAX_INSTRUCTIONS_CHARS:,}."
        )
    return assistant


def _place(key: str, given: Mapping[str, str]) -> str:
    """Returns where a key was set, and its name there."""
    origin = given[key]
    return origin if origin.startswith(VARIABLE_PREFIX) else f"{origin}: {key}"


def _nearest(name: str, known: list[str]) -> str:
    """Finds the nearest known name. A key of the same name in another section comes first, unless it is a number."""
    bare = re.split(r"\.|__", name)[-1]
    if bare.isdecimal():
        return get_close_matches(name, known, n=1, cutoff=0.0)[0]
    misplaced = [key for key in known if re.split(r"\.|__", key)[-1] == bare and key != bare]
    return misplaced[0] if misplaced else get_close_matches(name, known, n=1, cutoff=0.0)[0]


def _variable(key: str) -> str:
    return VARIABLE_PREFIX + key.upper().replace(".", "__")


def _user_data_dir() -> Path:
    # Imported here, since it takes 15 ms, and most servers set the folder.
    from platformdirs import user_data_path

    return user_data_path("antiphon", appauthor=False)
