"""The sections of the settings, and what each value must be."""

from ipaddress import ip_network
from typing import Annotated, Final, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

MAX_INSTRUCTIONS_CHARS: Final = 20_000
"""A model reads them with every message. Longer texts belong in a tool that searches them."""
MAX_GREETING_CHARS: Final = 300


def _check_network(text: str) -> str:
    ip_network(text)
    return text


# A description completes the sentence "it must be …". Lists are not strict, since strict refuses a list for a tuple.
Switch = Annotated[bool, Field(description="true or false")]
Environment = Annotated[Literal["production", "development"], Field(description='"production" or "development"')]
Host = Annotated[str, Field(min_length=1, description='a host name or address, such as "127.0.0.1"')]
Port = Annotated[int, Field(ge=0, le=65535, description="a number from 0 to 65535; 0 means any free port")]
Origins = Annotated[
    tuple[str, ...], Field(strict=False, description='a list of page addresses, such as ["https://example.org"]')
]
Proxies = Annotated[
    tuple[Annotated[str, AfterValidator(_check_network)], ...],
    Field(strict=False, description='a list of IP addresses or networks, such as ["127.0.0.1", "10.0.0.0/8"]'),
]
CertificateFile = Annotated[
    str, Field(description='the path of a certificate in PEM format, such as "tls/fullchain.pem"; "" means no TLS')
]
KeyFile = Annotated[
    str,
    Field(description='the path of the certificate\'s key in PEM format, such as "tls/privkey.pem"; "" means no TLS'),
]
LogLevel = Annotated[
    Literal["debug", "info", "warning", "error"], Field(description='"debug", "info", "warning" or "error"')
]
Auth = Annotated[Literal["auto", "required", "off"], Field(description='"auto", "required" or "off"')]
ModelName = Annotated[
    str, Field(min_length=1, description='a model, such as "builtin", "openai:gpt-5" or "ollama:qwen3"')
]
_LIVE_MODEL: Final = "(gemini-live|openai-realtime|azure-realtime):.+"
VoiceName = Annotated[
    str,
    Field(
        pattern=rf"^(cascade|none|{_LIVE_MODEL})$",
        description='"cascade", "gemini-live:NAME", "openai-realtime:NAME", "azure-realtime:URL#DEPLOYMENT" or "none"',
    ),
]
VoiceRung = Annotated[
    str,
    Field(
        pattern=rf"^(|cascade|{_LIVE_MODEL})$",
        description='"cascade", "gemini-live:NAME", "openai-realtime:NAME" or "azure-realtime:URL#DEPLOYMENT"; '
        '"" means the default',
    ),
]
SummaryModel = Annotated[
    str, Field(description='a model, such as "openai:gpt-5-mini" or "ollama:qwen3"; "" means the text model')
]
Summarize = Annotated[Literal["always", "auto"], Field(description='"always" or "auto"')]
Hours = Annotated[int, Field(ge=1, le=720, description="a number of hours from 1 to 720")]
TextRung = Annotated[
    str, Field(description='a model, such as "builtin", "openai:gpt-5" or "ollama:qwen3"; "" means the default')
]
ImageModel = Annotated[
    str,
    Field(
        pattern=r"^(|openai:.+|gemini:.+)$",
        description='a model that makes images, such as "openai:gpt-image-2.5-flare", "openai:URL#NAME" or '
        '"gemini:gemini-3.1-flash-image"; "" means none',
    ),
]
When = Annotated[Literal["auto", "always", "never"], Field(description='"auto", "always" or "never"')]
Transcription = Annotated[
    str, Field(description='a model that transcribes, such as "gpt-transcribe"; on Azure, the name of its deployment')
]
TurnDetection = Annotated[Literal["server_vad", "semantic_vad"], Field(description='"server_vad" or "semantic_vad"')]
ReasoningEffort = Annotated[
    Literal["", "minimal", "low", "medium", "high", "xhigh"],
    Field(description='"minimal", "low", "medium", "high" or "xhigh"; "" means the model\'s own'),
]
SttReference = Annotated[
    str,
    Field(
        pattern=r"^(moonshine|wyoming:.+|openai:.+)$",
        description='"moonshine", "wyoming:tcp://HOST:PORT", "openai:MODEL" or "openai:URL#MODEL"',
    ),
]
TtsReference = Annotated[
    str,
    Field(
        pattern=r"^(hibari|piper|kokoro|none|wyoming:.+|openai:.+)$",
        description=(
            '"hibari", "piper", "kokoro", "wyoming:tcp://HOST:PORT", "openai:MODEL", "openai:URL#MODEL" or "none"'
        ),
    ),
]
KeepAlive = Annotated[
    str,
    Field(
        pattern=r"^-?(\d+(\.\d+)?(ms|s|m|h))+$",
        description='a duration, such as "30m" or "24h"; "-1m" keeps the model loaded',
    ),
]
ContextTokens = Annotated[int, Field(ge=2_048, le=1_048_576, description="a number of tokens from 2048 to 1048576")]
VoiceId = Annotated[str, Field(min_length=1, description='a voice of the engine, such as "heart"')]
Silence = Annotated[int, Field(ge=100, le=5_000, description="a number of milliseconds from 100 to 5000")]
Days = Annotated[int, Field(ge=0, le=36_500, description="a number of days; 0 keeps everything")]
RecordedCalls = Annotated[Literal["off", "ask", "always"], Field(description='"off", "ask" or "always"')]
Folders = Annotated[tuple[str, ...], Field(strict=False, description='a list of folders, such as ["tools"]')]
ToolCount = Annotated[int, Field(ge=0, le=128, description="a number of tools from 0 to 128; 0 means all of them")]
ToolIds = Annotated[tuple[str, ...], Field(strict=False, description='a list of tool ids, such as ["open_url"]')]
ExpectedWords = Annotated[
    tuple[str, ...], Field(strict=False, description='a list of names that people say, such as ["Roomba", "Aunt Ilse"]')
]
UserNames = Annotated[tuple[str, ...], Field(strict=False, description='a list of user names, such as ["ada", "bob"]')]
Capabilities = Annotated[
    dict[
        Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,63}$")],
        Annotated[str, Field(pattern=r"^[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*$")],
    ],
    Field(description='a table from names to "module:attribute", such as { crm = "mycompany.crm:offer" }'),
]
HookReference = Annotated[
    str,
    Field(
        pattern=r"^([A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*)?$",
        description='a function as "module:attribute", such as "mycompany.hooks:store_turn"; "" means none',
    ),
]
StorageUrl = Annotated[
    str,
    Field(
        pattern=(
            r"^(sqlite|memory|sqlite:///[^:?][^?]*|"
            r"postgres(ql)?://([^\s@/?#:]+(:[^\s@/?#]*)?@)?([A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])?(:\d{1,5})?/"
            r"[^\s@/?#]+(\?[^\s#]+)?)$"
        ),
        description=(
            '"sqlite", "memory", "sqlite:///" followed by the path of a file, or the address of a Postgres database, '
            'such as "postgresql://user:password@host:5432/name", with special characters of the password as %XX'
        ),
    ),
]


ServerUrl = Annotated[
    str,
    Field(
        pattern=r"^https?://([A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(:\d{1,5})?(/[^\s?#@]*)?$",
        description='the address of a server, such as "https://example.org", without a user or a query',
    ),
]
OwnServerUrl = Annotated[
    str,
    Field(
        pattern=r"^(https?://([A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(:\d{1,5})?(/[^\s?#@]*)?)?$",
        description='the address of a server, such as "http://192.168.1.5:8123", without a user; "" means none',
    ),
]
PlaceName = Annotated[
    str,
    Field(pattern=r"^[^\x00-\x1f\x7f]{0,100}$", description='a place, such as "Oslo" or "Paris, Texas"; "" means none'),
]
UnitSystem = Annotated[Literal["metric", "imperial"], Field(description='"metric" or "imperial"')]
AssistantName = Annotated[
    str, Field(pattern=r"^[^\x00-\x1f\x7f]{1,60}$", description="a name of 1 to 60 characters, on one line")
]
Instructions = Annotated[
    str,
    Field(max_length=MAX_INSTRUCTIONS_CHARS, description=f"a text of at most {MAX_INSTRUCTIONS_CHARS:,} characters"),
]
FileName = Annotated[str, Field(description='the path of a file, such as "assistant.md"')]
Greeting = Annotated[
    str,
    Field(
        max_length=MAX_GREETING_CHARS,
        description=f'a text of at most {MAX_GREETING_CHARS} characters; "" means no greeting',
    ),
]


CalendarProvider = Annotated[Literal["local", "caldav", "google"], Field(description='"local", "caldav" or "google"')]
WebAddress = Annotated[
    str,
    Field(
        pattern=r"^(|https?://[^\s@]+)$",
        description='an address that begins with https:// or http://, without a password, or ""',
    ),
]
JitsiServer = Annotated[
    str, Field(pattern=r"^https?://[^\s@]+$", description='an address, such as "https://meet.jit.si"')
]
AccountName = Annotated[str, Field(description="the name of an account, or an empty text")]
CalendarNames = Annotated[
    tuple[str, ...], Field(strict=False, description='a list of calendars, such as ["Personal", "Work"]')
]
AccountUsers = Annotated[
    tuple[str, ...], Field(strict=False, description='a list of users, such as ["local", "ann"], or ["*"]')
]


class Section(BaseModel):
    """A table of the file."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Server(Section):
    host: Host = "127.0.0.1"
    port: Port = 8000
    origins: Origins = ()
    proxies: Proxies = ()
    auth: Auth = "auto"
    tls_cert: CertificateFile = ""
    tls_key: KeyFile = ""
    environment: Environment = "production"
    log_level: LogLevel = "info"
    """The least level of the lines that `serve` logs."""


class Assistant(Section):
    """The persona of the assistant, which is in the prompt of every model."""

    name: AssistantName = "Antiphon"
    instructions: Instructions = ""
    """What the assistant should know and follow on this server. `load` reads it if it is in a file."""
    instructions_file: FileName = ""
    greeting: Greeting = "Hello! What can I do for you?"


class Model(Section):
    text: ModelName = "builtin"
    voice: VoiceName = "cascade"
    think_ahead: When = "auto"
    local_first: Switch = True
    """Whether requests that the offline assistant knows for certain are not sent to another text model."""
    tools_per_turn: ToolCount = 0
    """How many tools the text model is given for a request; 0 means all of them."""
    transcription: Transcription = ""
    """What writes down what the user says to OpenAI or Azure Realtime. Empty for OpenAI's own, or on Azure none."""
    turn_detection: TurnDetection = "server_vad"
    """How OpenAI or Azure Realtime decides that the user has finished: by silence, or by what was said."""
    reasoning_effort: ReasoningEffort = ""
    """How much a realtime model that reasons thinks before it answers."""


class VoiceLadder(Section):
    """The models for calls, by energy level. By default, level 3 has `model.voice`, level 2 the model of level 3, and
    level 1 the local voice."""

    level_3: VoiceRung = Field(default="", alias="3")
    level_2: VoiceRung = Field(default="", alias="2")
    level_1: VoiceRung = Field(default="", alias="1")


class TextLadder(Section):
    """The models for text, by energy level. By default, level 2 has `model.text`, and level 1 the offline assistant."""

    level_2: TextRung = Field(default="", alias="2")
    level_1: TextRung = Field(default="", alias="1")


class Ladder(Section):
    voice: VoiceLadder = VoiceLadder()
    text: TextLadder = TextLadder()


class Continuity(Section):
    """How a conversation outlives its connections and models."""

    summarize: Summarize = "always"
    """Whether a fallback model is always given a summary of the conversation, or only if it cannot read all of it."""
    summary_model: SummaryModel = ""
    """The model that writes summaries; a small one will do. If it is empty, the text model does, unless that is the
    offline assistant: then a summary is made from the transcript's own words."""
    resume_hours: Hours = 2
    """How long after its last use a session can be resumed."""


class Ollama(Section):
    """What is asked of Ollama with every message."""

    keep_alive: KeepAlive = "30m"
    """How long the model stays in memory after an answer. Ollama's own default is 5 minutes, after which the next
    answer waits until the model is loaded again."""
    num_ctx: ContextTokens = 16_384
    """The length of the context in tokens. Ollama's own default may be 4,096, and it drops what does not fit without a
    word: prompt and tools alone take more than that."""
    think: Switch = False
    """Whether the model thinks before it answers. Thoughts are never spoken, so thinking is silence."""


class Speech(Section):
    stt: SttReference = "moonshine"
    tts: TtsReference = "hibari"
    voice: VoiceId = "heart"
    interim_captions: When = "auto"
    short_silence_ms: Silence = 160
    middle_silence_ms: Silence = 770
    long_silence_ms: Silence = 900
    unfinished_silence_ms: Silence = 2_000
    words: ExpectedWords = ()
    """Names that the local recogniser should expect, besides those of the home's devices and rooms."""

    @property
    def silences_ms(self) -> tuple[int, int, int, int]:
        """The silences after a complete request, after a likely end, after anything else, and after a word that needs
        another one."""
        return self.short_silence_ms, self.middle_silence_ms, self.long_silence_ms, self.unfinished_silence_ms


class Images(Section):
    model: ImageModel = ""
    """What makes images. Its key comes from the same environment variable as that of the provider's text models."""


class Recording(Section):
    calls: RecordedCalls = "off"
    """Which calls are recorded: none, those that the user wants to have recorded, or all of them."""


class Tools(Section):
    paths: Folders = ("tools",)
    disable: ToolIds = ()
    build: Switch = True
    capabilities: Capabilities = {}
    """What the project's own code offers to tools that list it in `uses`."""


class Hooks(Section):
    """The project's own async functions that are told what happens in sessions."""

    session_started: HookReference = ""
    session_ended: HookReference = ""
    turn_ended: HookReference = ""
    tool_called: HookReference = ""


class Knowledge(Section):
    """The knowledge base."""

    embeddings: Switch = True
    """Whether records are also found by their meaning, if the embedding model is there."""
    studio_readers: UserNames = ()
    """Who may read the namespace "studio". If it is empty, every user may."""


class Storage(Section):
    url: StorageUrl = "sqlite"
    """A password belongs into the variable ANTIPHON_STORAGE__URL, or into PGPASSWORD."""
    retention_days: Days = 0


class Audit(Section):
    arguments: Switch = False


class Calendar(Section):
    """Where the users' events are. Passwords and tokens come from the environment; docs/calendar.md names them."""

    provider: CalendarProvider = "local"
    url: WebAddress = ""
    """The address of the CalDAV server."""
    username: AccountName = ""
    """The account on the CalDAV server."""
    calendars: CalendarNames = ()
    """The own calendars of an account, the one for new events first. Empty means all of a CalDAV account, or the
    primary one of Google."""
    others: CalendarNames = ()
    """Calendars of other people, of which only the busy times are told."""
    users: AccountUsers = ("local",)
    """The users of this server to whom a CalDAV or Google account belongs."""
    jitsi: JitsiServer = "https://meet.jit.si"
    """The Jitsi server of meeting links, if Zoom is not configured."""


class Web(Section):
    """Where searches and short answers come from."""

    searxng: OwnServerUrl = ""
    """A SearXNG to search with. Without one, DuckDuckGo is searched."""
    duckduckgo: ServerUrl = "https://api.duckduckgo.com"
    wikipedia: ServerUrl = "https://en.wikipedia.org"


class Weather(Section):
    location: PlaceName = ""
    """The place that is meant if the user names none."""
    units: UnitSystem = "metric"
    forecast_url: ServerUrl = "https://api.open-meteo.com"
    geocoding_url: ServerUrl = "https://geocoding-api.open-meteo.com"


class Home(Section):
    """A Home Assistant. Its access token is in the environment, never in the file."""

    url: OwnServerUrl = ""
