"""The files of deploy/ are right, by the programs that read them and by what they name."""

import os
import re
import subprocess
import tomllib
from pathlib import Path

import pytest
import yaml

from antiphon.config import DATA_DIR_VARIABLE, MODELS_DIR_VARIABLE, load
from antiphon.gateway.transcription import MAX_BODY_BYTES
from antiphon.server.serving import CLOSE_S, DRAIN_S
from tests.deploy.proxies import DEPLOY, exchange, find_program
from tests.e2e.terminal import COMMAND
from tests.fakes.tree import ROOT

UNIT = (DEPLOY / "antiphon.service").read_text()
COMPOSE = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
STOP_S = DRAIN_S + CLOSE_S
"""How long the server may take to stop."""


def check(*command: str | Path, **variables: str) -> str:
    done = subprocess.run(
        list(map(str, command)), capture_output=True, text=True, timeout=50, env={**os.environ, **variables}
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return done.stdout + done.stderr


# The programs that read them.


def test_hadolint_accepts_the_dockerfile() -> None:
    check(find_program("hadolint"), DEPLOY / "Dockerfile")


def test_the_compose_file_follows_the_schema_of_compose() -> None:
    check(find_program("check-jsonschema"), "--builtin-schema", "vendor.compose-spec", DEPLOY / "compose.yaml")


def test_caddy_accepts_its_file_with_the_variables_of_the_compose_file(tmp_path: Path) -> None:
    command = [find_program("caddy"), "validate", "--adapter", "caddyfile", "--config", str(DEPLOY / "Caddyfile")]
    check(*command, ANTIPHON_DOMAIN="talk.example.org", HOME=str(tmp_path))
    # It shows the whole file, with a sign before each line that it would change.
    formatted = subprocess.run(
        [find_program("caddy"), "fmt", "--diff", DEPLOY / "Caddyfile"], capture_output=True, text=True, timeout=50
    )
    assert not re.findall(r"^[+-].*", formatted.stdout, re.MULTILINE)


def test_systemd_accepts_the_unit_and_its_hardening(tmp_path: Path) -> None:
    unit = tmp_path / "antiphon.service"
    # It checks that the program exists, and here it is elsewhere.
    unit.write_text(exchange(UNIT, {"/opt/antiphon/bin/antiphon": COMMAND}))
    assert not re.findall(r"(?i)unknown|fail|not |error", check("systemd-analyze", "verify", unit))
    exposure = check("systemd-analyze", "security", "--offline=true", "--no-pager", unit)
    assert "Overall exposure level" in exposure


# What they name exists, and agrees with the server.


def test_both_supervisors_give_the_server_time_to_drain() -> None:
    seconds = re.search(r"^TimeoutStopSec=(\d+)s$", UNIT, re.MULTILINE)
    assert seconds is not None
    assert int(seconds[1]) > STOP_S + 5
    for node in ("node1", "node2"):
        assert int(COMPOSE["services"][node]["stop_grace_period"].removesuffix("s")) > STOP_S + 5


def test_the_environment_of_the_unit_is_one_of_settings(tmp_path: Path) -> None:
    variables = dict(re.findall(r"^Environment=(\w+)=(\S+)$", UNIT, re.MULTILINE))
    assert variables[DATA_DIR_VARIABLE].startswith("/var/lib/antiphon")
    load(None, variables, tmp_path)


def test_the_commands_of_the_unit_exist() -> None:
    for words in re.findall(r"^ExecStart(?:Pre)?=-?/opt/antiphon/bin/antiphon (.+)$", UNIT, re.MULTILINE):
        names = [word for word in words.split() if not word.startswith("--")]
        assert "Usage:" in check(COMMAND, *names, "--help")
        for option in words.split()[len(names) :]:
            assert option in check(COMMAND, *names, "--help")


def environment_of(node: str) -> dict[str, str]:
    """Returns the variables of a service, filled in as Compose would."""
    given = {"ANTIPHON_DOMAIN": "talk.example.org", "POSTGRES_PASSWORD": "f00d"}
    filled = {
        name: re.sub(r"\$\{(\w+)[^}]*\}", lambda found: given[found[1]], value)
        for name, value in COMPOSE["services"][node]["environment"].items()
    }
    assert not any("$" in value for value in filled.values())
    return filled


@pytest.mark.parametrize("node", ["node1", "node2"])
def test_the_nodes_have_valid_settings_that_fit_the_network(tmp_path: Path, node: str) -> None:
    variables = environment_of(node)
    database = variables.pop("ANTIPHON_STORAGE__URL")
    settings = load(None, variables, tmp_path)
    assert settings.server.origins == ("https://talk.example.org",)
    assert settings.server.auth == "required"
    [network] = COMPOSE["networks"]["servers"]["ipam"]["config"]
    assert settings.server.proxies == (network["subnet"],)
    user, password, name = (environment_of("postgres")[f"POSTGRES_{each}"] for each in ("USER", "PASSWORD", "DB"))
    assert database == f"postgresql://{user}:{password}@postgres:5432/{name}"
    assert "servers" in COMPOSE["services"]["caddy"]["networks"]
    assert "database" not in COMPOSE["services"]["caddy"]["networks"]


def test_volumes_and_files_of_the_compose_file_exist() -> None:
    for service in COMPOSE["services"].values():
        for source, target, *_ in (volume.split(":") for volume in service["volumes"]):
            assert source in COMPOSE["volumes"] or (DEPLOY / source).is_file()
            if service.get("image") == "antiphon":
                assert target in ("/data", "/models")
    build = COMPOSE["services"]["node1"]["build"]
    assert (DEPLOY / build["context"] / build["dockerfile"]).samefile(DEPLOY / "Dockerfile")


def test_the_proxies_let_the_longest_body_pass() -> None:
    nginx = re.search(r"client_max_body_size (\d+)m;", (DEPLOY / "nginx.conf").read_text())
    caddy = re.search(r"max_size (\d+)MiB", (DEPLOY / "Caddyfile").read_text())
    assert nginx is not None
    assert caddy is not None
    for found in (nginx, caddy):
        assert MAX_BODY_BYTES <= int(found[1]) * 1024 * 1024 < MAX_BODY_BYTES + 2 * 1024 * 1024


def test_the_settings_in_the_comments_of_the_proxies_are_valid(tmp_path: Path) -> None:
    for name in ("nginx.conf", "Caddyfile"):
        comment = re.search(r"^#   \[server\]\n(?:#   .*\n)+", (DEPLOY / name).read_text(), re.MULTILINE)
        assert comment is not None
        text = re.sub(r"^#   ", "", comment[0], flags=re.MULTILINE)
        assert tomllib.loads(text)
        (tmp_path / "antiphon.toml").write_text(text)
        assert load(None, {}, tmp_path).server.origins == ("https://talk.example.org",)


def test_models_and_data_of_the_image_are_in_its_volumes() -> None:
    dockerfile = (DEPLOY / "Dockerfile").read_text()
    for variable, folder in ((DATA_DIR_VARIABLE, "/data"), (MODELS_DIR_VARIABLE, "/models")):
        assert f"{variable}={folder}" in dockerfile
        assert f'"{folder}"' in (re.search(r"^VOLUME (.+)$", dockerfile, re.MULTILINE) or [""])[0]
    assert ROOT.joinpath(".dockerignore").read_text().splitlines()[1] == "*"
