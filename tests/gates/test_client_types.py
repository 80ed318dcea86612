"""The types of the embeddable client, as they are served, fit a program that uses them."""

import subprocess
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
WEB: Final = ROOT / "web"
PROGRAM: Final = WEB / "test" / "types" / "use.ts"
OPTIONS: Final = "--noEmit --strict --target es2022 --module esnext --moduleResolution bundler --lib ES2022,DOM"


def compile_program(program: Path) -> tuple[int, str]:
    compiler = WEB / "node_modules" / ".bin" / "tsc"
    assert compiler.exists(), "The types are checked with the packages of web/, which are not here. Run `make check`."
    done = subprocess.run(
        [compiler, "--ignoreConfig", *OPTIONS.split(), str(program)],
        cwd=WEB,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


def test_a_program_that_uses_the_client_compiles_against_the_served_types() -> None:
    assert compile_program(PROGRAM) == (0, "")


def test_a_program_that_misuses_the_client_does_not_compile(tmp_path: Path) -> None:
    wrong = PROGRAM.read_text().replace("../../../src", str(ROOT / "src")).replace('"response"', '"answer"', 1)
    (tmp_path / "wrong.ts").write_text(wrong)
    code, told = compile_program(tmp_path / "wrong.ts")
    assert code != 0
    assert '"answer"' in told
