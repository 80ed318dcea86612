"""A tool as the gate runs it: its contract, its words, and its handler, loaded and compiled."""

from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from antiphon.telemetry.log import get_logger
from antiphon.telemetry.metrics import CallStats
from antiphon.tools.arguments import Arguments
from antiphon.tools.context import Args, Context, ToolView
from antiphon.tools.result import Prepared, ToolResult
from antiphon.tools.spec import Category, ToolSpec

if TYPE_CHECKING:
    import cel

Execute = Callable[[Args, Context], Coroutine[Any, Any, ToolResult]]

Preview = Callable[[Args], str]
"""`preview(args)` in handler.py: what the person is asked to approve, in a sentence."""

Prepare = Callable[[Args, Context], Coroutine[Any, Any, Prepared | ToolResult]]
"""`prepare(args, context)` in handler.py: makes what the person is asked to approve, if that needs more than the
arguments, such as the user's time zone or what the words refer to. It must not change anything. If the call cannot
work, it returns `fail(…)`, and nobody is asked."""

NeedsConfirmation = Callable[[Args, bool], bool]
"""`needs_confirmation(args, untrusted)` in handler.py: a policy finer than `requiresConfirmation`.

`untrusted` says whether untrusted content, such as a web page, is in this turn.
"""

IsAskedFor = Callable[[Args, Sequence[str]], bool]
"""`is_asked_for(args, heard)` in handler.py: whether the user's latest messages ask for such a call. If they do not,
the user must approve it. It is not called where nothing was said, as by the command line."""

Warm = Callable[[], None]
"""`warm()` in handler.py: loads what takes long, in a thread after the server has started."""


log = get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Tool:
    spec: ToolSpec
    digest: str
    """The hash of all files of its directory."""
    origin: str
    """The directory that it was loaded from."""
    summary: str
    documentation: str
    examples: str
    """The Examples section of its documentation, given to a model that got the arguments wrong."""
    provider_schemas: Mapping[str, Mapping[str, Any]]
    sentences: Mapping[str, Any] | None
    """sentences.yaml as it was read; `antiphon.sentences.templates` describes the format."""
    arguments: Arguments
    execute: Execute
    preview: Preview | None = None
    prepare: Prepare | None = None
    needs_confirmation: NeedsConfirmation | None = None
    warm: Warm | None = None
    is_asked_for: IsAskedFor | None = None
    availability: "cel.Program | None" = None
    stats: CallStats = field(default_factory=CallStats)

    # Derived once: the gate asks for these several times a call.
    id: str = field(init=False)
    view: ToolView = field(init=False)
    announced: bool = field(init=False)
    """Whether a run must be recorded before it starts. Reading twice is harmless, so a reader skips that write."""
    untrusted: bool = field(init=False)
    runs_to_the_end: bool = field(init=False)
    """Whether stopping the handler half-way could leave something half done."""

    def __post_init__(self) -> None:
        spec = self.spec
        announced = spec.writes or not spec.idempotent
        object.__setattr__(self, "id", spec.tool_id)
        object.__setattr__(self, "view", ToolView(spec.tool_id, spec.version, spec.idempotent, spec.secrets))
        object.__setattr__(self, "announced", announced)
        object.__setattr__(self, "untrusted", spec.untrusted)
        object.__setattr__(self, "runs_to_the_end", announced or spec.category is Category.ACTION)

    def is_available(self, facts: Mapping[str, Any]) -> bool:
        """Evaluates the tool's availability expression for this turn. An expression that fails counts as false."""
        if self.availability is None:
            return True
        try:
            return self.availability.execute(dict(facts)) is True
        except Exception as error:
            log.warning("availability_failed", tool=self.id, expression=self.spec.availability, error=str(error))
            return False


def compile_availability(expression: str) -> "cel.Program":
    """Compiles a CEL expression. Raises ValueError if it is not one."""
    # Imported late, because it takes 0.1 s that a process without such expressions can save.
    import cel

    return cel.compile(expression)
