"""Words are words: nothing that a model, a tool, a web page or a person says becomes a part of the page."""

from typing import Final

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import Invite
from tests.browser.scenes import exchange, in_ms, question, tool_use
from tests.browser.scripted import Message, Wire
from tests.browser.visitor import Visitor

PAYLOADS: Final = (
    "<script>window.xss=1</script>",
    "<img src=x onerror=window.xss=1>",
    "<svg onload=window.xss=1><a xlink:href='javascript:window.xss=1'><text y=9>x</text></a></svg>",
    "<iframe srcdoc='<script>parent.xss=1</script>'></iframe>",
    '"><details open ontoggle=window.xss=1>',
    "<style>body{display:none}</style>",
    "[tap](javascript:window.xss=1)",
    "[tap](JaVaScRiPt&colon;window.xss=1)",
    "[tap](\x01javascript:window.xss=1)",
    '![tap](x" onerror="window.xss=1)',
    "[a](data:text/html;base64,PHNjcmlwdD5wYXJlbnQueHNzPTE8L3NjcmlwdD4=)",
    '<https://example.org/" onmouseover="window.xss=1>',
    "`</code></pre><img src=x onerror=window.xss=1>`",
    "```</code>\n<img src=x onerror=window.xss=1>\n```",
    "| <img src=x onerror=window.xss=1> |\n|---|\n| <b onclick=window.xss=1>x</b> |",
    "<a href='javascript:window.xss=1' id=composer name=querySelector>x</a>",
    "{{constructor.constructor('window.xss=1')()}}${window.xss=1}",
)
POISON: Final = "\n\n".join(PAYLOADS)
ADDRESSES: Final = (
    "javascript:window.xss=1",
    "data:text/html,<script>parent.xss=1</script>",
    "\tjavascript:window.xss=1",
)


def everything(text: str) -> list[Message]:
    """Every message that has words in it."""
    sources = [{"title": text, "url": address} for address in (*ADDRESSES, "https://example.org/")]
    return [
        *exchange(text, text),
        {"type": "response", "text": text, "citations": [{"id": text, "title": text, "url": ADDRESSES[0]}]},
        {"type": "transcript", "text": text, "is_final": False},
        *tool_use(text, {text: text, "list": [text]}, {"data": text, "sources": sources}),
        *tool_use("failing", text, {"error": {"message": text}}, ok=False, call_id="t2"),
        *({"type": "image", "url": address, "caption": text} for address in (*ADDRESSES, "/images/picture.png")),
        {"type": "flyout", "flyout_type": "code", "content": text, "language": text, "title": text},
        {"type": "flyout", "flyout_type": "terminal", "content": text, "language": None, "title": text},
        {"type": "flyout", "flyout_type": "browser", "content": text, "language": None, "title": text},
        {"type": "reminder", "id": "r1", "message": text, "due": in_ms(0), "kind": text, "missed": True},
        {"type": "notice", "kind": "info", "text": text, "code": text, "duration_ms": 60_000},
        {"type": "error", "message": text, "code": text, "retryable": True},
        {"type": "energy", "mode": "voice", "level": 1, "max": 3, "previous": 3, "reason": text, "model": text},
        {"type": "end_voice_session", "reason": text, "final_message": text},
        {"type": "go_away", "time_left_ms": 60_000, "reason": text, "resume": None},
        {
            "type": "history",
            "conversation_id": text,
            "turns": [{"role": role, "content": text, "spoken": False, "at": None} for role in ("user", "assistant")],
        },
        *exchange(text, text),
        question(tool=text, args={text: text}, preview=text),
    ]


def assert_inert(visitor: Visitor) -> None:
    visitor.page.wait_for_timeout(200)
    assert visitor.evaluate("() => window.xss") is None
    foreign = (
        "script:not([src]), style, svg a, img[src='x'], [onerror], [onclick], [ontoggle], [onload], iframe[srcdoc]"
    )
    assert visitor.evaluate("(foreign) => document.querySelectorAll(foreign).length", foreign) == 0
    links = visitor.evaluate(
        "() => [...document.querySelectorAll('a[href], iframe[src], img[src]')].map((e) => e.href || e.src)"
    )
    assert all(link.startswith(("http:", "https:", "mailto:")) for link in links), links
    assert visitor.faults == []


def test_words_in_every_field_are_inert(visitor: Visitor, wire: Wire) -> None:
    visitor.context.route("https://**", lambda route: route.abort())
    wire.tell_all(*everything(POISON))
    expect(visitor.find("alertdialog")).to_contain_text(PAYLOADS[0])
    expect(visitor.thread).to_contain_text(PAYLOADS[1])
    assert_inert(visitor)
    visitor.click("Cancel")
    expect(visitor.open_sheet("Models, latency and notices")).to_contain_text(PAYLOADS[1])
    assert_inert(visitor)


def test_words_in_panels_are_inert(visitor: Visitor, wire: Wire) -> None:
    for kind in ("code", "terminal", "browser"):
        wire.tell("flyout", flyout_type=kind, content=POISON, language=POISON, title=f"{kind} {POISON}")
        expect(visitor.find("complementary")).to_contain_text(PAYLOADS[1])
        assert_inert(visitor)


def test_words_in_the_history_are_inert(invite: Invite, wire: Wire) -> None:
    entry = {"id": POISON, "title": POISON, "created_ms": 0, "updated_ms": 0}
    turn = {"role": "user", "content": POISON, "spoken": True, "at": None}
    call = {"id": POISON, "conversation_id": "c", "started_ms": 0, "duration_ms": None, "summary": POISON}
    wire.records["/api/conversations"] = {"conversations": [entry], "next": None}
    wire.records["/api/calls"] = {"calls": [{**call, "models": [POISON], "transcript": [turn]}]}
    wire.records["/api/voices"] = {"voices": [{"id": POISON, "name": POISON, "language": POISON, "current": True}]}
    visitor = invite().open()
    wire.wait_for_page()
    sheet = visitor.open_sheet("Conversations and calls")
    sheet.get_by_text("Transcript").click()
    expect(sheet).to_contain_text(PAYLOADS[1])
    assert_inert(visitor)
    visitor.page.keyboard.press("Escape")
    expect(visitor.open_sheet("Settings").get_by_role("combobox", name="Voice")).to_contain_text(PAYLOADS[1])
    assert_inert(visitor)


def test_words_that_a_person_types_are_inert(visitor: Visitor, wire: Wire) -> None:
    visitor.composer.fill(POISON)
    visitor.composer.press("Enter")
    wire.wait_for("text_message")
    expect(visitor.said).to_contain_text(PAYLOADS[1])
    assert_inert(visitor)


def test_a_reason_for_closing_is_inert(visitor: Visitor, wire: Wire) -> None:
    wire.close(4408, PAYLOADS[1])
    expect(visitor.find("alert").filter(has_text=PAYLOADS[1])).to_be_visible()
    assert_inert(visitor)


@pytest.mark.parametrize("policy", ["script-src 'self'", "default-src 'none'", "base-uri 'none'", "form-action 'none'"])
def test_the_page_is_served_with_a_strict_policy(visitor: Visitor, policy: str) -> None:
    answer = visitor.page.reload()
    assert answer is not None
    assert policy in answer.headers["content-security-policy"]


def test_the_policy_stops_a_script_that_got_in_all_the_same(visitor: Visitor) -> None:
    visitor.evaluate("() => { document.body.innerHTML += '<img src=x onerror=window.xss=1>' }")
    visitor.page.wait_for_timeout(200)
    assert visitor.evaluate("() => window.xss") is None
    assert any("Content Security Policy" in fault for fault in visitor.faults)
    visitor.faults.clear()
