import json
import re
from dataclasses import FrozenInstanceError
from pathlib import Path

import pytest
from platformdirs import user_data_path
from pydantic import ValidationError

from antiphon.config import ConfigError, Settings, load


def write(folder: Path, text: str, name: str = "antiphon.toml") -> Path:
    path = folder / name
    path.write_text(text, "utf-8")
    return path


def problems(folder: Path, toml: str = "", **env: str) -> tuple[str, ...]:
    if toml:
        write(folder, toml)
    with pytest.raises(ConfigError) as caught:
        load(None, env, folder)
    return caught.value.problems


def test_without_a_file_every_setting_has_its_default(tmp_path: Path) -> None:
    settings = load(None, {}, tmp_path)
    assert settings.server.environment == "production"
    assert settings.tools.model_dump() == {"paths": ("tools",), "disable": (), "build": True, "capabilities": {}}
    assert settings.storage.url == "sqlite"
    assert settings.audit.arguments is False


def test_the_file_of_the_current_folder_is_read(tmp_path: Path) -> None:
    write(tmp_path, '[server]\nenvironment = "development"\n[tools]\npaths = ["a", "b"]\nbuild = false')
    settings = load(None, {}, tmp_path)
    assert settings.server.environment == "development"
    assert settings.tools.paths == ("a", "b")
    assert settings.tools.build is False


def test_a_named_file_is_read_instead(tmp_path: Path) -> None:
    write(tmp_path, "[audit]\narguments = false")
    named = write(tmp_path, "[audit]\narguments = true", "other.toml")
    assert load(named, {}, tmp_path).audit.arguments is True


def test_a_missing_named_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"there is no settings file .*missing\.toml"):
        load(Path("missing.toml"), {}, tmp_path)


def test_the_environment_wins_over_the_file(tmp_path: Path) -> None:
    write(tmp_path, '[tools]\nbuild = true\ndisable = ["a"]')
    settings = load(None, {"ANTIPHON_TOOLS__BUILD": "false"}, tmp_path)
    assert settings.tools.build is False
    assert settings.tools.disable == ("a",)


@pytest.mark.parametrize("value", ["open_url, tell_joke", '["open_url", "tell_joke"]'])
def test_a_list_in_a_variable_is_json_or_has_commas(tmp_path: Path, value: str) -> None:
    assert load(None, {"ANTIPHON_TOOLS__DISABLE": value}, tmp_path).tools.disable == ("open_url", "tell_joke")


CAPABILITIES = {"crm": "mycompany.crm:offer", "mail": "mail:open_mail"}


@pytest.mark.parametrize("value", ["mycompany.hooks", "hooks:", ":store", "a b:c", "hooks:store()"])
def test_a_hook_is_named_by_its_module_and_attribute(tmp_path: Path, value: str) -> None:
    write(tmp_path, '[hooks]\nturn_ended = "mycompany.hooks:store_turn"')
    assert load(None, {}, tmp_path).hooks.turn_ended == "mycompany.hooks:store_turn"
    write(tmp_path, f'[hooks]\nturn_ended = "{value}"')
    with pytest.raises(ConfigError, match=r'hooks.turn_ended is .*; it must be a function as "module:attribute"'):
        load(None, {}, tmp_path)


def test_a_table_in_the_file_or_a_variable_names_capabilities(tmp_path: Path) -> None:
    variables = {"ANTIPHON_TOOLS__CAPABILITIES": json.dumps(CAPABILITIES)}
    assert load(None, variables, tmp_path).tools.capabilities == CAPABILITIES
    write(tmp_path, '[tools]\ncapabilities = { crm = "mycompany.crm:offer", mail = "mail:open_mail" }')
    assert load(None, {}, tmp_path).tools.capabilities == CAPABILITIES


@pytest.mark.parametrize(
    "value",
    ['{ crm = "mycompany.crm" }', '{ CRM = "mycompany:offer" }', "{ crm = 5 }", '["crm"]', '{ crm = "a.b:c d" }'],
)
def test_a_capability_that_is_not_a_module_and_an_attribute_is_refused(tmp_path: Path, value: str) -> None:
    write(tmp_path, f"[tools]\ncapabilities = {value}")
    with pytest.raises(
        ConfigError, match=r'tools.capabilities is .*; it must be a table from names to "module:attribute"'
    ):
        load(None, {}, tmp_path)


def test_an_empty_variable_counts_as_not_set(tmp_path: Path) -> None:
    settings = load(None, {"ANTIPHON_TOOLS__BUILD": "", "ANTIPHON_DATA_DIR": ""}, tmp_path)
    assert set(settings.origins().values()) == {"default"}


def test_the_process_environment_is_read_when_none_is_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTIPHON_AUDIT__ARGUMENTS", "true")
    monkeypatch.chdir(tmp_path)
    assert load(None).audit.arguments is True


def test_a_file_with_a_byte_order_mark_is_read(tmp_path: Path) -> None:
    (tmp_path / "antiphon.toml").write_bytes(b"\xef\xbb\xbf[audit]\narguments = true")
    assert load(None, {}, tmp_path).audit.arguments is True


@pytest.mark.parametrize(
    ("toml", "told"),
    [
        ("[tools]\nbild = true", "antiphon.toml: there is no setting tools.bild. The nearest is tools.build."),
        ("[toools]\nbuild = true", "antiphon.toml: there is no section [toools]. The nearest is [tools]."),
        ("[server]\npaths = []", "antiphon.toml: there is no setting server.paths. The nearest is tools.paths."),
        ("build = true", "antiphon.toml: there is no setting build. The nearest is tools.build."),
        ("[Tools]\nbuild = true", "antiphon.toml: there is no section [Tools]. The nearest is [tools]."),
        ("tools = 3", "antiphon.toml: tools is 3; it must be a table, which starts with [tools]."),
    ],
)
def test_the_error_for_an_unknown_key_names_the_nearest(tmp_path: Path, toml: str, told: str) -> None:
    assert problems(tmp_path, toml) == (told,)


@pytest.mark.parametrize(
    ("variable", "nearest"),
    [
        ("ANTIPHON_TOOLS__BILD", "ANTIPHON_TOOLS__BUILD"),
        ("ANTIPHON_TOOL__PATHS", "ANTIPHON_TOOLS__PATHS"),
        ("ANTIPHON_DATADIR", "ANTIPHON_DATA_DIR"),
        ("ANTIPHON_SERVER_ENVIRONMENT", "ANTIPHON_SERVER__ENVIRONMENT"),
    ],
)
def test_the_error_for_an_unknown_variable_names_the_nearest(tmp_path: Path, variable: str, nearest: str) -> None:
    assert problems(tmp_path, **{variable: "x"}) == (
        f"{variable}: there is no such setting. The nearest is {nearest}.",
    )


def test_variables_of_other_programs_are_ignored(tmp_path: Path) -> None:
    assert load(None, {"PATH": "/bin", "ANTIPHONAL": "1"}, tmp_path).given == {}


@pytest.mark.parametrize(
    ("toml", "told"),
    [
        ('[tools]\nbuild = "no"', 'tools.build is "no"; it must be true or false.'),
        ("[tools]\nbuild = 1", "tools.build is 1; it must be true or false."),
        ('[tools]\npaths = "t"', 'tools.paths is "t"; it must be a list of folders, such as ["tools"].'),
        ("[tools]\ndisable = [1, 2]", 'tools.disable is [1, 2]; it must be a list of tool ids, such as ["open_url"].'),
        (
            '[server]\nenvironment = "staging"',
            'server.environment is "staging"; it must be "production" or "development".',
        ),
        ('[recording]\ncalls = "sometimes"', 'recording.calls is "sometimes"; it must be "off", "ask" or "always".'),
        ("[recording]\ncalls = true", 'recording.calls is true; it must be "off", "ask" or "always".'),
        (
            '[server]\nlog_level = "loud"',
            'server.log_level is "loud"; it must be "debug", "info", "warning" or "error".',
        ),
    ],
)
def test_the_error_for_a_wrong_value_in_the_file_lists_what_is_allowed(tmp_path: Path, toml: str, told: str) -> None:
    assert problems(tmp_path, toml) == (f"antiphon.toml: {told}",)


def test_the_error_for_a_wrong_value_in_a_variable_names_it(tmp_path: Path) -> None:
    assert problems(tmp_path, "[tools]\nbuild = true", ANTIPHON_TOOLS__BUILD="maybe") == (
        'ANTIPHON_TOOLS__BUILD is "maybe"; it must be true or false.',
    )


def test_a_list_in_a_variable_that_is_broken_json_is_an_error(tmp_path: Path) -> None:
    assert problems(tmp_path, ANTIPHON_TOOLS__PATHS="[tools")[0].startswith('ANTIPHON_TOOLS__PATHS is "[tools"; ')


@pytest.mark.parametrize("url", ["mysql://h/db", "sqlite://", "sqlite:///", "sqlite:///:memory:", "sqlite:///a?b"])
def test_an_unsupported_storage_is_refused(tmp_path: Path, url: str) -> None:
    (problem,) = problems(tmp_path, f'[storage]\nurl = "{url}"')
    assert "it must be" in problem
    assert "the path of a file, or the address of a Postgres database" in problem


POSTGRES_URLS = [
    "postgresql://ann:secret@db.example:5432/antiphon",
    "postgres://h/db",
    "postgresql:///antiphon?host=/run/postgresql",
    "postgresql://ann@[::1]/antiphon?sslmode=require&password=secret",
    "postgresql://ann:se%2Fcret@h/db",
]


@pytest.mark.parametrize("url", POSTGRES_URLS)
def test_the_address_of_a_postgres_database_is_kept_and_its_password_is_not_in_its_name(
    tmp_path: Path, url: str
) -> None:
    settings = load(None, {"ANTIPHON_STORAGE__URL": url, "ANTIPHON_DATA_DIR": "data"}, tmp_path)
    assert settings.database == url
    assert settings.database_path is None
    assert settings.keeps_data
    assert settings.recordings_dir == tmp_path / "data" / "recordings"
    assert "cret" not in settings.database_name
    assert settings.database_name.startswith("postgres")


BROKEN_POSTGRES_URLS = [
    "postgresql://",
    "postgresql:///",
    "postgresql://h",
    "postgresql://h/",
    "postgresql://h:port/db",
    "postgresql://a b@h/db",
    "postgresql://u:p@ss@h/db",
    "postgresql://h/db#x",
    "postgresql+psycopg://h/db",
]


@pytest.mark.parametrize("url", BROKEN_POSTGRES_URLS)
def test_a_broken_address_of_a_postgres_database_is_refused(tmp_path: Path, url: str) -> None:
    (problem,) = problems(tmp_path, f'[storage]\nurl = "{url}"')
    assert "the address of a Postgres database, such as" in problem


def test_a_password_in_a_url_is_not_printed(tmp_path: Path) -> None:
    (problem,) = problems(tmp_path, ANTIPHON_STORAGE__URL="postgresql://me:hun/ter@2@host/db")
    assert "hun" not in problem
    assert "postgresql://…@host/db" in problem


@pytest.mark.parametrize(
    ("toml", "line"),
    [("[tools]\n\nbuild = yes", 3), ("[tools]\nbuild =\n", 2), ('[tools]\npaths = ["a",\n', 2), ("[tools", 1)],
)
def test_a_file_that_is_not_toml_is_an_error_with_its_line(tmp_path: Path, toml: str, line: int) -> None:
    (problem,) = problems(tmp_path, toml)
    assert problem.startswith(f"antiphon.toml, line {line}: this is not valid TOML (")


def test_a_file_that_is_not_utf8_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "antiphon.toml").write_bytes(b'[tools]\npaths = ["\xff"]')
    assert "is not UTF-8 text" in problems(tmp_path)[0]


def test_all_problems_are_reported_at_once(tmp_path: Path) -> None:
    toml = '[tools]\nbuild = 2\nbild = 1\n[sever]\n[storage]\nurl = "x"'
    told = problems(tmp_path, toml, ANTIPHON_AUDIT__ARGUMENTS="perhaps", ANTIPHON_X="1")
    assert [re.split(r"; |\. ", problem)[0] for problem in told] == [
        "ANTIPHON_X: there is no such setting",
        "antiphon.toml: there is no setting tools.bild",
        "antiphon.toml: there is no section [sever]",
        "antiphon.toml: tools.build is 2",
        'antiphon.toml: storage.url is "x"',
        'ANTIPHON_AUDIT__ARGUMENTS is "perhaps"',
    ]


def test_broken_toml_does_not_hide_the_mistakes_of_the_environment(tmp_path: Path) -> None:
    assert len(problems(tmp_path, "[tools", ANTIPHON_TOOLS__BUILD="perhaps")) == 2


def test_the_text_of_the_error_has_a_line_for_each_problem(tmp_path: Path) -> None:
    write(tmp_path, "[tools]\nbuild = 2\n[audit]\narguments = 2")
    with pytest.raises(ConfigError) as caught:
        load(None, {}, tmp_path)
    assert str(caught.value).splitlines() == [
        "the settings have 2 problems:",
        "  antiphon.toml: tools.build is 2; it must be true or false.",
        "  antiphon.toml: audit.arguments is 2; it must be true or false.",
    ]


def test_relative_tool_folders_start_at_the_folder_of_the_file(tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    file = write(project, '[tools]\npaths = ["tools", "/opt/tools"]')
    settings = load(file, {}, tmp_path)
    assert settings.project_dir == project
    assert settings.tool_paths == (project / "tools", Path("/opt/tools"))


def test_a_relative_config_path_starts_at_the_current_folder(tmp_path: Path) -> None:
    (tmp_path / "p").mkdir()
    write(tmp_path / "p", "")
    assert load(Path("p/antiphon.toml"), {}, tmp_path).project_dir == tmp_path / "p"


def test_without_a_file_the_project_is_the_current_folder(tmp_path: Path) -> None:
    assert load(None, {}, tmp_path).project_dir == tmp_path


def test_the_data_folder_follows_the_platform(tmp_path: Path) -> None:
    assert load(None, {}, tmp_path).data_dir == user_data_path("antiphon", appauthor=False)


def test_a_variable_changes_the_data_folder(tmp_path: Path) -> None:
    assert load(None, {"ANTIPHON_DATA_DIR": "data"}, tmp_path).data_dir == tmp_path / "data"


def test_the_artifact_of_a_project_is_beside_its_file(tmp_path: Path) -> None:
    write(tmp_path, "")
    assert load(None, {"ANTIPHON_DATA_DIR": "data"}, tmp_path).artifact_path == tmp_path / "tool_registry.json"


def test_a_tools_folder_makes_a_project_too(tmp_path: Path) -> None:
    (tmp_path / "tools").mkdir()
    assert load(None, {"ANTIPHON_DATA_DIR": "data"}, tmp_path).artifact_path == tmp_path / "tool_registry.json"


def test_without_a_project_the_artifact_is_in_the_data_folder(tmp_path: Path) -> None:
    settings = load(None, {"ANTIPHON_DATA_DIR": "data"}, tmp_path)
    assert settings.artifact_path == tmp_path / "data" / "tool_registry.json"


@pytest.mark.parametrize(
    ("url", "path"),
    [
        ("sqlite", "data/antiphon.db"),
        ("sqlite:///own.db", "own.db"),
        ("sqlite:////srv/own.db", "/srv/own.db"),
        ("memory", None),
    ],
)
def test_a_storage_url_names_a_database_file(tmp_path: Path, url: str, path: str | None) -> None:
    settings = load(None, {"ANTIPHON_STORAGE__URL": url, "ANTIPHON_DATA_DIR": "data"}, tmp_path)
    assert settings.database_path == (None if path is None else tmp_path / path)


def test_proxies_are_addresses_and_networks(tmp_path: Path) -> None:
    env = {"ANTIPHON_SERVER__PROXIES": "127.0.0.1, 10.0.0.0/8, ::1"}
    assert load(None, env, tmp_path).server.proxies == ("127.0.0.1", "10.0.0.0/8", "::1")
    for wrong in ("*", "proxy.example", "10.0.0.1/8"):
        with pytest.raises(ConfigError, match=r"ANTIPHON_SERVER__PROXIES is .*; it must be a list of IP addresses"):
            load(None, {"ANTIPHON_SERVER__PROXIES": wrong}, tmp_path)


def test_the_source_of_every_value_is_recorded(tmp_path: Path) -> None:
    write(tmp_path, '[tools]\npaths = ["tools"]\nbuild = true')
    env = {"ANTIPHON_TOOLS__BUILD": "true", "ANTIPHON_DATA_DIR": "data"}
    assert load(None, env, tmp_path).origins() == {
        "server.host": "default",
        "server.port": "default",
        "server.origins": "default",
        "server.proxies": "default",
        "server.auth": "default",
        "server.tls_cert": "default",
        "server.tls_key": "default",
        "server.environment": "default",
        "server.log_level": "default",
        "assistant.name": "default",
        "assistant.instructions": "default",
        "assistant.instructions_file": "default",
        "assistant.greeting": "default",
        "model.text": "default",
        "model.voice": "default",
        "model.think_ahead": "default",
        "model.local_first": "default",
        "model.tools_per_turn": "default",
        "model.transcription": "default",
        "model.turn_detection": "default",
        "model.reasoning_effort": "default",
        "ladder.voice.3": "default",
        "ladder.voice.2": "default",
        "ladder.voice.1": "default",
        "ladder.text.2": "default",
        "ladder.text.1": "default",
        "continuity.summarize": "default",
        "continuity.summary_model": "default",
        "continuity.resume_hours": "default",
        "ollama.keep_alive": "default",
        "ollama.num_ctx": "default",
        "ollama.think": "default",
        "speech.stt": "default",
        "speech.tts": "default",
        "speech.voice": "default",
        "speech.words": "default",
        "speech.interim_captions": "default",
        "speech.short_silence_ms": "default",
        "speech.middle_silence_ms": "default",
        "speech.long_silence_ms": "default",
        "speech.unfinished_silence_ms": "default",
        "images.model": "default",
        "recording.calls": "default",
        "tools.paths": "antiphon.toml",
        "tools.disable": "default",
        "tools.build": "ANTIPHON_TOOLS__BUILD",
        "tools.capabilities": "default",
        "hooks.session_started": "default",
        "hooks.session_ended": "default",
        "hooks.turn_ended": "default",
        "hooks.tool_called": "default",
        "knowledge.embeddings": "default",
        "knowledge.studio_readers": "default",
        "storage.url": "default",
        "storage.retention_days": "default",
        "audit.arguments": "default",
        "calendar.provider": "default",
        "calendar.url": "default",
        "calendar.username": "default",
        "calendar.calendars": "default",
        "calendar.others": "default",
        "calendar.users": "default",
        "calendar.jitsi": "default",
        "web.searxng": "default",
        "web.duckduckgo": "default",
        "web.wikipedia": "default",
        "weather.location": "default",
        "weather.units": "default",
        "weather.forecast_url": "default",
        "weather.geocoding_url": "default",
        "home.url": "default",
        "data_dir": "ANTIPHON_DATA_DIR",
        "models_dir": "default",
    }


def test_the_assistant_can_be_set_by_the_file_and_by_the_environment(tmp_path: Path) -> None:
    write(tmp_path, '[assistant]\nname = "Ada"\ninstructions = """\nBe brief.\nBe kind."""\ngreeting = ""')
    assistant = load(None, {"ANTIPHON_ASSISTANT__NAME": "Bob"}, tmp_path).assistant
    assert (assistant.name, assistant.instructions, assistant.greeting) == ("Bob", "Be brief.\nBe kind.", "")


def test_instructions_are_read_from_a_file_beside_the_settings(tmp_path: Path) -> None:
    write(tmp_path, '[assistant]\ninstructions_file = "assistant.md"')
    write(tmp_path, "Be brief.\n", "assistant.md")
    settings = load(None, {}, tmp_path)
    assert settings.assistant.instructions == "Be brief."
    assert settings.origins()["assistant.instructions"] == "assistant.md"


@pytest.mark.parametrize(
    ("toml", "problem"),
    [
        ('name = ""', 'assistant.name is ""; it must be a name of 1 to 60 characters, on one line.'),
        ('name = "a\\nb"', r'assistant.name is "a\nb"; it must be a name of 1 to 60 characters, on one line.'),
        (f'name = "{"x" * 61}"', "it must be a name of 1 to 60 characters, on one line."),
        (f'instructions = "{"x" * 20_001}"', "…; it must be a text of at most 20,000 characters."),
        (f'greeting = "{"x" * 301}"', "it must be a text of at most 300 characters;"),
        ('instructions_file = "gone.md"', "gone.md, which cannot be read: No such file or directory."),
        ('instructions_file = "long.md"', "long.md, which has 20,001 characters; it must have at most 20,000."),
        ('instructions_file = "latin.md"', "latin.md, which is not UTF-8 text. Save it as UTF-8."),
        ('instructions = "a"\ninstructions_file = "long.md"', "and assistant.instructions are both set."),
    ],
)
def test_an_invalid_assistant_is_reported_in_one_clear_sentence(tmp_path: Path, toml: str, problem: str) -> None:
    write(tmp_path, "x" * 20_001, "long.md")
    (tmp_path / "latin.md").write_bytes(b"caf\xe9")
    (told,) = problems(tmp_path, f"[assistant]\n{toml}")
    assert told.startswith("antiphon.toml: assistant.")
    assert problem in told
    assert len(told) < 500


def test_settings_cannot_be_changed(tmp_path: Path) -> None:
    settings = Settings(project_dir=tmp_path, data_dir=tmp_path)
    with pytest.raises(FrozenInstanceError):
        settings.data_dir = Path("/")  # type: ignore[misc]
    with pytest.raises(ValidationError):
        settings.tools.build = False


@pytest.mark.parametrize(
    ("text", "silences_ms"),
    [
        ("", (160, 770, 900, 2_000)),
        ("long_silence_ms = 500", (160, 500, 500, 2_000)),
        ("short_silence_ms = 800", (800, 800, 900, 2_000)),
        ("middle_silence_ms = 300", (160, 300, 900, 2_000)),
        ("long_silence_ms = 3000", (160, 770, 3_000, 3_000)),
        ("unfinished_silence_ms = 1000", (160, 770, 900, 1_000)),
    ],
)
def test_silences_that_were_not_set_adapt_to_the_others(
    tmp_path: Path, text: str, silences_ms: tuple[int, int, int, int]
) -> None:
    write(tmp_path, f"[speech]\n{text}")
    assert load(None, {}, tmp_path).speech.silences_ms == silences_ms


def test_a_ladder_has_a_model_for_each_energy_level(tmp_path: Path) -> None:
    write(tmp_path, '[ladder.voice]\n3 = "gemini-live:a"\n1 = "cascade"\n[ladder.text]\n2 = "openai:b"')
    settings = load(None, {"ANTIPHON_LADDER__VOICE__2": "openai-realtime:c"}, tmp_path)
    assert settings.ladder.voice.model_dump(by_alias=True) == {
        "3": "gemini-live:a",
        "2": "openai-realtime:c",
        "1": "cascade",
    }
    assert settings.ladder.text.model_dump(by_alias=True) == {"2": "openai:b", "1": ""}
    assert settings.origins()["ladder.voice.3"] == "antiphon.toml"
    assert settings.origins()["ladder.voice.2"] == "ANTIPHON_LADDER__VOICE__2"
    assert settings.value("ladder.voice.1") == "cascade"


TEXT_RUNG = 'a model, such as "builtin", "openai:gpt-5" or "ollama:qwen3"; "" means the default'
VOICE_RUNG = (
    '"cascade", "gemini-live:NAME", "openai-realtime:NAME" or "azure-realtime:URL#DEPLOYMENT"; "" means the default'
)


@pytest.mark.parametrize(
    ("toml", "told"),
    [
        ('[ladder.voice]\n4 = "cascade"', "there is no setting ladder.voice.4. The nearest is ladder.voice.3."),
        ('[ladder.voice]\n0 = "cascade"', "there is no setting ladder.voice.0. The nearest is ladder.voice.3."),
        ('[ladder.text]\n3 = "builtin"', "there is no setting ladder.text.3. The nearest is ladder.text.2."),
        ('[ladder.vioce]\n3 = "cascade"', "there is no section [ladder.vioce]. The nearest is [ladder.voice]."),
        ('[ladder]\n3 = "cascade"', "there is no setting ladder.3. The nearest is ladder.voice.3."),
        ("ladder = 3", "ladder is 3; it must be a table, which has [ladder.voice] and [ladder.text]."),
        (
            '[ladder]\nvoice = "cascade"',
            'ladder.voice is "cascade"; it must be a table, which starts with [ladder.voice].',
        ),
        ('[ladder.voice]\n3 = "none"', f'ladder.voice.3 is "none"; it must be {VOICE_RUNG}.'),
        ('[ladder.voice]\n3 = "gemini"', f'ladder.voice.3 is "gemini"; it must be {VOICE_RUNG}.'),
        ("[ladder.voice]\n3 = 3", f"ladder.voice.3 is 3; it must be {VOICE_RUNG}."),
        (
            '[continuity]\nsummarise = "auto"',
            "there is no setting continuity.summarise. The nearest is continuity.summarize.",
        ),
        ("[ladder.text]\n1 = 1", f"ladder.text.1 is 1; it must be {TEXT_RUNG}."),
        ('[continuity]\nsummarize = "never"', 'continuity.summarize is "never"; it must be "always" or "auto".'),
        (
            "[continuity]\nresume_hours = 0",
            "continuity.resume_hours is 0; it must be a number of hours from 1 to 720.",
        ),
    ],
)
def test_a_mistake_in_a_ladder_is_one_clear_sentence(tmp_path: Path, toml: str, told: str) -> None:
    assert problems(tmp_path, toml) == (f"antiphon.toml: {told}",)


def test_a_mistake_in_a_variable_of_a_ladder_names_the_variable(tmp_path: Path) -> None:
    assert problems(tmp_path, ANTIPHON_LADDER__VOICE__2="none", ANTIPHON_LADDER__VOICE__5="cascade") == (
        "ANTIPHON_LADDER__VOICE__5: there is no such setting. The nearest is ANTIPHON_LADDER__VOICE__3.",
        f'ANTIPHON_LADDER__VOICE__2 is "none"; it must be {VOICE_RUNG}.',
    )


def test_the_continuity_of_a_conversation_can_be_set(tmp_path: Path) -> None:
    write(tmp_path, '[continuity]\nsummarize = "auto"\nsummary_model = "ollama:qwen3"')
    settings = load(None, {"ANTIPHON_CONTINUITY__RESUME_HOURS": "24"}, tmp_path)
    assert settings.continuity.model_dump() == {
        "summarize": "auto",
        "summary_model": "ollama:qwen3",
        "resume_hours": 24,
    }


@pytest.mark.parametrize(
    ("toml", "told"),
    [
        ('[home]\nurl = "homeassistant.local:8123"\n', "antiphon.toml: home.url is"),
        ('[home]\nurl = "http://ann:pass@homeassistant.local"\n', "antiphon.toml: home.url is"),
        ('[home]\nurl = "http://homeassistant.local/?a=b"\n', "antiphon.toml: home.url is"),
        ('[home]\ntoken = "x"\n', "there is no setting home.token"),
        ('[web]\nsearxng = "ftp://searx.lan"\n', "antiphon.toml: web.searxng is"),
        ('[web]\nwikipedia = ""\n', "antiphon.toml: web.wikipedia is"),
        ('[weather]\nunits = "kelvin"\n', 'it must be "metric" or "imperial"'),
        ("[weather]\nlocation = 5\n", "antiphon.toml: weather.location is 5"),
    ],
)
def test_a_mistake_about_the_web_or_the_home_is_one_clear_sentence(tmp_path: Path, toml: str, told: str) -> None:
    [problem] = problems(tmp_path, toml)
    assert told in problem
    assert "pass" not in problem


@pytest.mark.parametrize(
    "url", ["", "http://192.168.1.5:8123", "https://home.example.org", "http://[fd00::5]:8123", "http://ha.lan/base"]
)
def test_a_home_can_be_anywhere(tmp_path: Path, url: str) -> None:
    (tmp_path / "antiphon.toml").write_text(f'[home]\nurl = "{url}"\n')
    assert load(None, {}, tmp_path).home.url == url


@pytest.mark.parametrize(
    ("toml", "says"),
    [
        ('tls_cert = "cert.pem"', "antiphon.toml: server.tls_cert is set and server.tls_key is not. TLS needs both."),
        ('tls_key = "key.pem"', "antiphon.toml: server.tls_key is set and server.tls_cert is not. TLS needs both."),
        ('tls_cert = 5\ntls_key = "key.pem"', "server.tls_cert is 5; it must be the path of a certificate in PEM"),
    ],
)
def test_a_certificate_needs_its_key(tmp_path: Path, toml: str, says: str) -> None:
    [problem] = problems(tmp_path, f"[server]\n{toml}")
    assert says in problem


def test_paths_of_tls_are_relative_to_the_settings_file(tmp_path: Path) -> None:
    write(tmp_path, '[server]\ntls_cert = "tls/cert.pem"\ntls_key = "/etc/key.pem"')
    settings = load(tmp_path / "antiphon.toml", {}, Path("/"))
    assert settings.tls_paths == (tmp_path / "tls" / "cert.pem", Path("/etc/key.pem"))
    assert load(None, {}, tmp_path / "elsewhere").tls_paths is None
