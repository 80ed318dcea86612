from collections.abc import Callable
from typing import Any

import pytest

from antiphon.authoring.lint.contract import REQUIRED
from antiphon.authoring.problems import Problem, Severity

Lint = Callable[..., tuple[Problem, ...]]


def errors(problems: tuple[Problem, ...]) -> list[tuple[str, str]]:
    """Field and message of each error in schema.json."""
    return [
        (problem.field, problem.message)
        for problem in problems
        if problem.severity is Severity.ERROR and problem.file == "schema.json"
    ]


def test_a_valid_tool_has_no_problems(lint: Lint) -> None:
    assert lint() == ()


def test_a_tool_may_use_every_optional_field(lint: Lint) -> None:
    assert (
        lint(
            title="Greet somebody",
            uses=["kb", "fetch", "secrets"],
            secrets=["ACME_API_KEY"],
            rateLimit={"calls": 3, "window_s": 0.5},
            requiresAuth=True,
            availability='mode == "voice" && user.authenticated',
            timeoutMs=100,
            tags=["greeting"],
            outputs={"type": "object"},
        )
        == ()
    )


def test_secrets_that_are_named_must_be_used(lint: Lint) -> None:
    assert errors(lint(secrets=["ACME_API_KEY"])) == [
        ("uses", 'must list "secrets", since "secrets" names ACME_API_KEY')
    ]


@pytest.mark.parametrize("names", [None, []])
def test_a_tool_that_uses_secrets_must_name_them(lint: Lint, names: list[str] | None) -> None:
    assert errors(lint(uses=["secrets"], secrets=names)) == [
        ("secrets", 'must name the environment variables, since "uses" lists "secrets"')
    ]


@pytest.mark.parametrize("name", ["acme_key", "", "1KEY", "A KEY", "$KEY"])
def test_a_secret_is_named_like_an_environment_variable(lint: Lint, name: str) -> None:
    message = 'must be the name of an environment variable, such as "ACME_API_KEY"'
    assert ("secrets.0", message) in errors(lint(uses=["secrets"], secrets=[name]))


@pytest.mark.parametrize("field", REQUIRED)
def test_a_missing_field_is_named(lint: Lint, field: str) -> None:
    assert (field, "is missing") in errors(lint(**{field: None}))


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("toolId", "Greet", "lower-case"),
        ("toolId", "1greet", "the first one a letter"),
        ("toolId", "g" * 65, "at most 64"),
        ("version", "1.0", "semantic version"),
        ("version", "01.0.0", "semantic version"),
        ("description", "  ", "must not be blank"),
        ("category", "search", 'must be one of "retrieval", "action", "utility"'),
        ("sideEffects", "some", 'must be one of "none", "read_only", "writes"'),
        ("idempotent", "yes", 'not of type "boolean"'),
        ("requiresConfirmation", 1, 'not of type "boolean"'),
        ("allowedModes", [], "less than 1 item"),
        ("allowedModes", ["text", "text"], "non-unique"),
        ("latencyBudgetMs", 0, "less than the minimum of 1"),
        ("latencyBudgetMs", 1.5, 'not of type "integer"'),
        ("latencyBudgetMs", 100.0, "Expected `int`"),
        ("parameters", [], 'not of type "object"'),
        ("requiresAuth", "no", 'not of type "boolean"'),
        ("availability", "", "must not be blank"),
        ("outputs", "text", 'not of type "object"'),
    ],
)
def test_a_wrong_value_is_reported_with_its_field(lint: Lint, field: str, value: Any, message: str) -> None:
    found = dict(errors(lint(**{field: value})))
    assert message in found[field]


@pytest.mark.parametrize(
    ("field", "value", "place"),
    [
        ("allowedModes", ["text", "video"], "allowedModes.1"),
        ("uses", ["kb", "Data base"], "uses.1"),
        ("tags", [" "], "tags.0"),
        ("rateLimit", {"calls": 0, "window_s": 1}, "rateLimit.calls"),
        ("rateLimit", {"calls": 1, "window_s": 0}, "rateLimit.window_s"),
        ("rateLimit", {"calls": 1}, "rateLimit.window_s"),
    ],
)
def test_a_wrong_value_inside_a_field_is_reported_with_its_path(lint: Lint, field: str, value: Any, place: str) -> None:
    assert [where for where, _ in errors(lint(**{field: value}))] == [place]


def test_an_unknown_field_is_reported_with_the_nearest_known_one(lint: Lint) -> None:
    assert errors(lint(latencyBudget=5)) == [
        ("latencyBudget", 'is not a field of this file. Did you mean "latencyBudgetMs"?')
    ]


def test_an_unknown_field_inside_the_rate_limit_is_reported(lint: Lint) -> None:
    found = errors(lint(rateLimit={"calls": 1, "window_s": 1, "window": 1}))
    assert found == [("rateLimit.window", 'is not a field of this file. Did you mean "window_s"?')]


def test_the_id_must_be_the_name_of_the_directory(lint: Lint) -> None:
    assert errors(lint(directory="kb-search")) == [
        ("toolId", 'is "greet", but the directory kb-search/ makes it "kb_search"')
    ]


def test_dashes_in_the_directory_are_underscores_in_the_id(lint: Lint) -> None:
    assert lint(tool_id="kb_search", directory="kb-search") == ()


def test_a_retrieval_tool_never_writes(lint: Lint) -> None:
    assert [field for field, _ in errors(lint(category="retrieval", sideEffects="writes"))] == ["sideEffects"]


def test_a_retrieval_tool_is_idempotent(lint: Lint) -> None:
    assert [field for field, _ in errors(lint(category="retrieval", idempotent=False))] == ["idempotent"]


def test_asking_for_approval_of_nothing_is_a_warning(lint: Lint) -> None:
    handler = "async def execute(args, context): ...\ndef preview(args): ...\n"
    problems = lint(requiresConfirmation=True, files={"handler.py": handler})
    assert [(problem.field, problem.severity) for problem in problems] == [("requiresConfirmation", Severity.WARNING)]


def test_the_timeout_is_not_shorter_than_the_budget(lint: Lint) -> None:
    assert errors(lint(timeoutMs=99)) == [("timeoutMs", "99 is less than the latencyBudgetMs of 100")]


def test_the_budget_is_not_longer_than_the_default_timeout(lint: Lint) -> None:
    found = errors(lint(latencyBudgetMs=30_001))
    assert found == [("timeoutMs", "30000 (the default) is less than the latencyBudgetMs of 30001")]


def test_availability_must_be_an_expression(lint: Lint) -> None:
    [(field, message)] = errors(lint(availability="mode =="))
    assert field == "availability"
    assert message.startswith("is not a CEL expression: ")
    assert "\n" not in message


def test_availability_knows_four_variables(lint: Lint) -> None:
    [(field, message)] = errors(lint(availability="weekday == 1"))
    assert (field, message) == (
        "availability",
        'there is no variable "weekday"; known variables are mode, user, session, environment',
    )


def test_availability_may_bind_variables_of_its_own(lint: Lint) -> None:
    assert lint(availability='["ada", "bob"].exists(name, name == user.id)') == ()
