"""Checks of `antiphon doctor` about https: the certificate, and whether browsers allow the microphone."""

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from antiphon.cli.findings import Finding, Findings

if TYPE_CHECKING:
    from antiphon.config import Settings


def check_tls(settings: "Settings") -> Findings:
    """Checks the certificate of the settings, or the one that `serve --self-signed` has made."""
    from antiphon.server.tls import (
        SELF_SIGNED_RENEWAL,
        WARNING,
        TlsError,
        TlsFiles,
        describe_end,
        load_context,
        read_facts,
        self_signed_files,
    )

    paths, now = settings.tls_paths, datetime.now(UTC)
    if paths is None:
        own = self_signed_files(settings.data_dir)
        if own.certificate.exists():
            try:
                facts = read_facts(own)
                load_context(own)
            except TlsError as error:
                yield Finding(True, f"tls: {error} The next start with --self-signed makes a new one.")
                return
            renewal = "; the next start renews it" if facts.ends - now < SELF_SIGNED_RENEWAL else ""
            yield Finding(True, f"tls: with --self-signed, {own.certificate}, valid {describe_end(facts)}{renewal}")
        return
    files = TlsFiles(*paths)
    try:
        facts = read_facts(files)
        load_context(files)
    except TlsError as error:
        yield Finding(False, f"tls: {error}")
        return
    valid = f"{files.certificate} is valid {describe_end(facts)}"
    if facts.ends - now < WARNING:
        yield Finding(False, f"tls: {valid}. Renew it; a running server loads it within a minute.")
    else:
        yield Finding(True, f"tls: {valid}")


def check_browser_microphone(settings: "Settings") -> Findings:
    """Tells where browsers allow the microphone: over https, and on the machine itself."""
    from antiphon.cli.target import find_target
    from antiphon.security.origin import is_loopback

    if settings.model.voice == "none":
        return
    secure = [origin for origin in settings.server.origins if origin.startswith("https://")]
    # A server that was started with --self-signed counts, too.
    if find_target(settings, None, None).url.startswith("wss:"):
        yield Finding(True, "page: browsers allow the microphone, since the server speaks https")
    elif secure:
        yield Finding(True, f"page: browsers allow the microphone at {', '.join(secure)}, and on this machine")
    elif is_loopback(settings.server.host):
        yield Finding(True, "page: browsers allow the microphone on this machine. From others, they require https")
    else:
        advice = (
            "Start with --self-signed, set server.tls_cert and tls_key, or put a proxy with https in front and its "
            "address into server.origins."
        )
        yield Finding(False, f"page: from other machines, browsers allow the microphone over https only. {advice}")
