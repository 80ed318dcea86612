"""Recordings of people, animals and things that no program made, from Debian packages. None of them is kept in git.

The packages are downloaded and unpacked into a folder, not installed. Their licences: Scratch's media CC-BY-SA-3.0,
Hedgewars' sounds GFDL-1.3, Lugaru's data CC-BY-SA-3.0, Orage GPL-2+, LMMS GPL-2+, XEmacs' packages GPL,
Asterisk's sounds CC-BY-SA-3.0.
"""

import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from antiphon.audio.pcm import Signal, to_signal
from antiphon.sound_format import MICROPHONE_HZ
from bench.speech.clips import MissingProgram

_SCRATCH: Final = "usr/share/scratch/Media/Sounds"
_HEDGEWARS: Final = "usr/share/games/hedgewars/Data/Sounds/voices/*"
_LUGARU: Final = "usr/share/games/lugaru/Sounds"
_LMMS: Final = "usr/share/lmms/samples"
_XEMACS: Final = "usr/share/xemacs21/xemacs-packages/etc/sounds"
_ASTERISK: Final = "usr/share/asterisk/sounds/en_US_f_Allison"

NOISES: Final = {
    "cough": (f"{_SCRATCH}/Human/Cough*", f"{_HEDGEWARS}/PoisonCough.ogg"),
    "sneeze": (f"{_SCRATCH}/Human/Sneeze*",),
    "laugh": (f"{_SCRATCH}/Human/Laugh*", f"{_HEDGEWARS}/Laugh.ogg", f"{_XEMACS}/laugh.au", f"{_XEMACS}/Snicker.au"),
    "grunt": (f"{_HEDGEWARS}/Ooff1.ogg", f"{_HEDGEWARS}/Hmm.ogg"),
    "slurp": (f"{_SCRATCH}/Human/Slurp*", f"{_LMMS}/misc/breath*"),
    "baby": (f"{_SCRATCH}/Human/BabyCry*",),
    "animal": (f"{_SCRATCH}/Animal/Dog*", f"{_LUGARU}/Bark*", f"{_SCRATCH}/Animal/[CKM][aei][tto]*"),
    "door, steps": (f"{_SCRATCH}/Effects/Door*", f"{_SCRATCH}/Human/Footsteps*", "usr/share/orage/sounds/Knock.wav"),
    "clap, snap": (f"{_SCRATCH}/Percussion/HandClap*", f"{_SCRATCH}/Human/FingerSnap*", f"{_LMMS}/drums/clap*"),
    "typing": (f"{_SCRATCH}/Effects/Typing*",),
}
SPOKEN: Final = {("Russian_pl", "Laugh")}
"""What is called a laugh, but has words."""
PACKAGES: Final = (
    *("scratch", "hedgewars-data", "lugaru-data", "orage-data", "lmms-common", "xemacs21-basesupport"),
    "asterisk-core-sounds-en-g722",
)
SENTENCES: Final = (
    *("please-try-again", "one-moment-please", "im-sorry", "call-waiting", "number-not-answering", "do-not-disturb"),
    *("vm-delete", "vm-repeat", "vm-whichbox", "vm-tocallback", "to-listen-to-it", "something-terribly-wrong"),
    *(
        "tt-somethingwrong",
        "call-forwarding",
        "queue-youarenext",
        "if-correct-press",
        "vm-pls-try-again",
        "hello-world",
    ),
)
"""Sentences of a woman from a telephone system. Nobody would say them to an assistant, but they are a person's."""
MAX_S: Final = 4


@dataclass(frozen=True, slots=True)
class Recording:
    kind: str
    name: str
    signal: Signal


def read_noises(folder: Path) -> Iterator[Recording]:
    """Downloads the packages if necessary. Raises `MissingProgram`."""
    _download(folder)
    for kind, patterns in NOISES.items():
        for path in sorted(path for pattern in patterns for path in folder.glob(pattern)):
            if (path.parent.name, path.stem) not in SPOKEN:
                yield Recording(kind, f"{path.parent.name}/{path.stem}", _decode(path))


def read_sentences(folder: Path) -> Iterator[Recording]:
    _download(folder)
    for name in SENTENCES:
        yield Recording("person", name, _decode(folder / _ASTERISK / f"{name}.g722"))


def _download(folder: Path) -> None:
    for package in PACKAGES:
        done = folder / f"{package}.done"
        if done.exists():
            continue
        folder.mkdir(parents=True, exist_ok=True)
        _run("apt-get", "download", package, cwd=folder)
        for file in folder.glob(f"{package}_*.deb"):
            _run("dpkg-deb", "-x", file.name, ".", cwd=folder)
            file.unlink()
        done.touch()


def _decode(path: Path) -> Signal:
    command = ("ffmpeg", "-v", "error", "-i", str(path), "-t", str(MAX_S), "-ac", "1", "-ar", str(MICROPHONE_HZ))
    return to_signal(_run(*command, "-f", "s16le", "-"))


def _run(*command: str, cwd: Path | None = None) -> bytes:
    try:
        return subprocess.run(command, check=True, capture_output=True, cwd=cwd).stdout
    except FileNotFoundError as error:
        raise MissingProgram(f"{command[0]} is not installed.") from error
    except subprocess.CalledProcessError as error:
        raise MissingProgram(f"{' '.join(command)} failed: {error.stderr.decode(errors='replace')[-300:]}") from error
