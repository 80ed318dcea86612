from collections.abc import Callable

import pytest

from antiphon.authoring.problems import Problem, Severity
from tests.fakes.toolbox import HANDLER, PREVIEW

Lint = Callable[..., tuple[Problem, ...]]

EXECUTE = "async def execute(args, context): ...\n"


def of_handler(lint: Lint, code: str) -> list[tuple[str, str]]:
    problems = lint(files={"handler.py": code})
    assert {problem.file for problem in problems} <= {"handler.py"}
    return [(problem.field, problem.message) for problem in problems]


def test_execute_must_exist(lint: Lint) -> None:
    assert of_handler(lint, "async def run(args, context): ...\n") == [
        ("execute", "there is no `async def execute(args, context)` at the top level")
    ]


def test_execute_must_be_async(lint: Lint) -> None:
    assert of_handler(lint, "def execute(args, context): ...\n") == [("execute", "must be async (line 1)")]


@pytest.mark.parametrize(
    "parameters",
    ["", "args", "args, context, more", "*args", "args, **rest", "args, context, *, more", "args, *, context"],
)
def test_execute_takes_exactly_two_arguments(lint: Lint, parameters: str) -> None:
    assert of_handler(lint, f"async def execute({parameters}): ...\n") == [
        ("execute", "must take exactly (args, context) (line 1)")
    ]


def test_the_names_of_the_arguments_are_free(lint: Lint) -> None:
    assert of_handler(lint, "async def execute(_args, ctx, /): ...\n") == []


@pytest.mark.parametrize(
    ("code", "field", "message"),
    [
        ("async def preview(args): ...", "preview", "must not be async (line 2)"),
        ("async def warm(): ...", "warm", "must not be async (line 2)"),
        ("def warm(context): ...", "warm", "must take exactly () (line 2)"),
        ("def preview(args, context): ...", "preview", "must take exactly (args) (line 2)"),
        (
            "async def needs_confirmation(args, untrusted): ...\ndef preview(args): ...",
            "needs_confirmation",
            "must not be async (line 2)",
        ),
        (
            "def needs_confirmation(args): ...\ndef preview(args): ...",
            "needs_confirmation",
            "must take exactly (args, untrusted) (line 2)",
        ),
        (
            "def is_asked_for(args): ...\ndef preview(args): ...",
            "is_asked_for",
            "must take exactly (args, heard) (line 2)",
        ),
    ],
)
def test_the_other_functions_have_a_shape_too(lint: Lint, code: str, field: str, message: str) -> None:
    assert of_handler(lint, f"{EXECUTE}{code}\n") == [(field, message)]


def test_a_syntax_error_is_reported_with_its_line(lint: Lint) -> None:
    assert of_handler(lint, f"{EXECUTE}\ndef broken(:\n") == [("line 3", "is not Python: invalid syntax")]


def test_errors_found_only_by_the_compiler_are_reported_too(lint: Lint) -> None:
    assert of_handler(lint, f"{EXECUTE}return 1\n") == [("line 2", "is not Python: 'return' outside function")]


def test_siblings_are_parsed_as_well(lint: Lint) -> None:
    [problem] = lint(files={"jokes.py": "x = ("})
    assert (problem.file, problem.field) == ("jokes.py", "line 1")


def test_a_file_with_a_nul_byte_is_not_python(lint: Lint) -> None:
    [(_, message)] = of_handler(lint, "x = '\0'\n")
    assert message.startswith("is not Python: ")


@pytest.mark.parametrize("line", ["from ..other import x", "from .. import other", "from ...tools import x"])
def test_a_relative_import_may_not_leave_the_directory(lint: Lint, line: str) -> None:
    [(field, message)] = of_handler(
        lint, f"{EXECUTE}def late():\n    try:\n        pass\n    finally:\n        {line}\n"
    )
    assert field == "line 6"
    assert "leaves the tool's directory" in message


def test_a_relative_import_must_find_its_file(lint: Lint) -> None:
    assert of_handler(lint, f"from .jokez import JOKES\n{EXECUTE}") == [
        ("line 1", "`from .jokez import …` finds no such file in the tool's directory")
    ]


def test_relative_imports_of_siblings_are_fine(lint: Lint) -> None:
    files = {
        "handler.py": f"from .jokes import JOKES\nfrom .deep.more import X\nfrom . import jokes\n{EXECUTE}",
        "jokes.py": "from .deep import more\nJOKES = []\n",
        "deep/more.py": "from ..jokes import JOKES\nX = 1\n",
    }
    assert lint(files=files) == ()


def test_the_build_imports_no_handler(lint: Lint) -> None:
    assert of_handler(lint, f"raise RuntimeError('imported')\n{EXECUTE}") == []


def test_confirmation_needs_a_preview(lint: Lint) -> None:
    [problem] = lint(category="action", sideEffects="writes", requiresConfirmation=True)
    assert (problem.file, problem.field, problem.severity) == ("handler.py", "preview", Severity.ERROR)


def test_confirmation_by_policy_needs_a_preview(lint: Lint) -> None:
    [(field, _)] = of_handler(lint, f"{EXECUTE}def needs_confirmation(args, untrusted): ...\n")
    assert field == "preview"


def test_an_action_that_asks_before_it_writes_is_fine(lint: Lint) -> None:
    files = {"handler.py": HANDLER + PREVIEW}
    assert lint(category="action", sideEffects="writes", requiresConfirmation=True, files=files) == ()


def test_an_action_that_writes_without_asking_is_a_warning(lint: Lint) -> None:
    [problem] = lint(category="action", sideEffects="writes")
    assert (problem.file, problem.field, problem.severity) == ("schema.json", "requiresConfirmation", Severity.WARNING)


def test_a_policy_counts_as_asking(lint: Lint) -> None:
    policy = f"{HANDLER}{PREVIEW}\n\ndef needs_confirmation(args, untrusted):\n    return untrusted\n"
    assert lint(category="action", sideEffects="writes", files={"handler.py": policy}) == ()
