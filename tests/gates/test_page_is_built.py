"""The committed page is the one that web/ builds. It is committed so that a checkout runs without Node.js."""

import shutil
import subprocess
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
WEB: Final = ROOT / "web"
STATIC: Final = ROOT / "src" / "antiphon" / "server" / "static"
MISSING: Final = "The page is built with Node.js and the packages of web/, and they are not here. Run `make check`."
STALE: Final = "src/antiphon/server/static is not what web/ builds: {}. Run `make web` and commit the changes."


def build(folder: Path) -> None:
    npm = shutil.which("npm")
    assert npm is not None, MISSING
    assert (WEB / "node_modules" / "vite").is_dir(), MISSING
    command = [npm, "run", "--silent", "build", "--", "--outDir", str(folder), "--emptyOutDir", "--logLevel", "warn"]
    done = subprocess.run(command, cwd=WEB, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"The page cannot be built.\n{done.stdout}{done.stderr}"


def differences(built: Path, kept: Path) -> list[str]:
    made, committed = read(built), read(kept)
    return [
        *(f"{name} is missing" for name in sorted(made.keys() - committed.keys())),
        *(f"{name} is extra" for name in sorted(committed.keys() - made.keys())),
        *(f"{name} differs" for name in sorted(made.keys() & committed.keys()) if made[name] != committed[name]),
    ]


def read(folder: Path) -> dict[str, bytes]:
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def test_the_committed_page_is_what_its_sources_build(tmp_path: Path) -> None:
    build(tmp_path / "static")
    found = differences(tmp_path / "static", STATIC)
    assert not found, STALE.format(", ".join(found))


def test_missing_extra_and_different_files_are_found(tmp_path: Path) -> None:
    built, kept = tmp_path / "built", tmp_path / "kept"
    for folder, files in (
        (built, {"same": "1", "new": "1", "other": "1"}),
        (kept, {"same": "1", "old": "1", "other": "2"}),
    ):
        folder.mkdir()
        for name, text in files.items():
            (folder / name).write_text(text)
    assert differences(built, kept) == ["new is missing", "old is extra", "other differs"]
