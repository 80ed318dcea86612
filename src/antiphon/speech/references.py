"""Parses the names of speech engines in the settings.

`moonshine`, `hibari`, `none`, `wyoming:tcp://box:10300`, `openai:gpt-4o-transcribe`, `openai:http://box:8080/v1#whisper`.
"""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from antiphon.errors import AntiphonError
from antiphon.security.addresses import OPENAI_KEY, OPENAI_URL, AddressError, leads_here, parse_place, read_key, split
from antiphon.security.origin import is_loopback
from antiphon.speech.base import SpeechError

NONE: Final = "none"
WYOMING_FORM: Final = "wyoming:tcp://HOST:PORT"
OPENAI_FORMS: Final = '"openai:MODEL" or "openai:URL#MODEL"'


class SpeechReferenceError(AntiphonError):
    """A setting that does not name a speech engine."""

    code = "speech_reference"


class Local(StrEnum):
    """An engine in this process."""

    MOONSHINE = "moonshine"
    HIBARI = "hibari"
    PIPER = "piper"
    KOKORO = "kokoro"


SPEAKERS: Final = (Local.HIBARI, Local.PIPER, Local.KOKORO)


@dataclass(frozen=True, slots=True)
class WyomingServer:
    host: str
    port: int

    @property
    def uri(self) -> str:
        return f"tcp://{f'[{self.host}]' if ':' in self.host else self.host}:{self.port}"

    def __str__(self) -> str:
        return f"wyoming:{self.uri}"


@dataclass(frozen=True, slots=True)
class OpenAIServer:
    model: str
    url: str | None = None
    """None for OpenAI's own server."""

    def __str__(self) -> str:
        return f"openai:{self.url}#{self.model}" if self.url else f"openai:{self.model}"

    @property
    def base_url(self) -> str:
        """The URL without `/audio`."""
        return self.url or OPENAI_URL

    def key(self, env: Mapping[str, str]) -> str | None:
        """Raises `SpeechError` if there is no key for OpenAI's own server. Others may work without one."""
        try:
            key = read_key(env, OPENAI_KEY)
        except AddressError as error:
            raise SpeechError(str(error)) from error
        if key is None and self.url is None:
            raise SpeechError(f"{self} needs an API key. Set {OPENAI_KEY}.")
        return key


Reference = Local | WyomingServer | OpenAIServer


def needs_network(reference: Reference) -> bool:
    """Whether the engine is on another machine, where requests may cost money."""
    match reference:
        case Local():
            return False
        case WyomingServer(host=host):
            return not is_loopback(host)
        case OpenAIServer(base_url=url):
            return not leads_here(url)


def parse_stt(text: str) -> Reference:
    """Parses speech.stt. Raises `SpeechReferenceError`."""
    with _naming("speech.stt"):
        return _parse(text, (Local.MOONSHINE,), "recognises speech", f'"{WYOMING_FORM}", {OPENAI_FORMS}')


def parse_tts(text: str) -> Reference | None:
    """Parses speech.tts; None means no speech output. Raises `SpeechReferenceError`."""
    if text == NONE:
        return None
    with _naming("speech.tts"):
        return _parse(text, SPEAKERS, "speaks", f'"{WYOMING_FORM}", {OPENAI_FORMS}, or "{NONE}"')


def parse_uri(uri: str) -> WyomingServer:
    """Parses `tcp://HOST:PORT`. Raises `SpeechReferenceError`."""
    try:
        parts = split(uri)
    except AddressError as error:
        raise SpeechReferenceError(str(error)) from error
    if "@" in parts.netloc:
        raise SpeechReferenceError('Wyoming has no user names or passwords. Write "tcp://HOST:PORT".')
    if parts.scheme != "tcp" or not parts.hostname or re.search(r"\s", uri):
        raise SpeechReferenceError(f'"{uri}" is not the address of a Wyoming server. Write "tcp://HOST:PORT".')
    if parts.port is None:
        raise SpeechReferenceError(f'"{uri}" has no port. Write "tcp://{parts.netloc.rstrip(":")}:10300", for example.')
    if parts.path.strip("/") or parts.query or parts.fragment:
        raise SpeechReferenceError(f'"{uri}" has more than a host and a port. Write "tcp://{parts.netloc}".')
    return WyomingServer(parts.hostname, parts.port)


@contextmanager
def _naming(setting: str) -> Iterator[None]:
    """Adds the name of the setting to an error."""
    try:
        yield
    except SpeechReferenceError as error:
        raise SpeechReferenceError(f"{setting}: {error}") from error


def _parse(text: str, local: tuple[Local, ...], does: str, remote_forms: str) -> Reference:
    if text in local:
        return Local(text)
    name, _, rest = text.partition(":")
    if name == "wyoming" and rest:
        return parse_uri(rest if "://" in rest else _refuse_bare(rest))
    if name == "openai":
        return _parse_openai(text, rest)
    local_forms = ", ".join(f'"{engine}"' for engine in local)
    raise SpeechReferenceError(f'there is no engine "{text}" that {does}. Write {local_forms}, {remote_forms}.')


def _refuse_bare(address: str) -> str:
    raise SpeechReferenceError(f'"wyoming:{address}" has no scheme. Write "wyoming:tcp://{address}".')


def _parse_openai(text: str, rest: str) -> OpenAIServer:
    try:
        url, model = parse_place(rest)
    except AddressError as error:
        raise SpeechReferenceError(str(error)) from error
    server = OpenAIServer(model or "MODEL", url)
    if not model:
        raise SpeechReferenceError(f'"{text}" does not say which model. Write "{server}".')
    return server
