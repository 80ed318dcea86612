"""One thread for voice and text: what was said, what was done in between, and what can be done with it."""

from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.browser.scenes import CODE, LISTING, SENTENCE, exchange, tone, tool_use, wait_for_approval
from tests.browser.scripted import PICTURE, Wire
from tests.browser.visitor import Visitor


def test_what_is_typed_is_sent_and_stands_in_the_thread_once(visitor: Visitor, wire: Wire) -> None:
    visitor.write("What time is it?")
    assert wire.wait_for("text_message")["text"] == "What time is it?"
    wire.tell("transcript", text="What time is it?", is_final=True)
    expect(visitor.said).to_have_text(["What time is it?"])


def test_nothing_is_sent_without_words(visitor: Visitor, wire: Wire) -> None:
    visitor.write("   ")
    visitor.write("words")
    assert wire.wait_for("text_message")["text"] == "words"
    assert len(wire.said("text_message")) == 1


def test_what_is_being_said_is_replaced_in_its_place(visitor: Visitor, wire: Wire) -> None:
    wire.tell("transcript", text="what time", is_final=False)
    expect(visitor.said).to_have_text(["what time"])
    expect(visitor.page.locator(".bubble")).to_have_attribute("aria-busy", "true")
    wire.tell("transcript", text="what time is it in", is_final=False)
    expect(visitor.said).to_have_text(["what time is it in"])
    wire.tell("transcript", text="What time is it in Tokyo?", is_final=True)
    expect(visitor.said).to_have_text(["What time is it in Tokyo?"])
    expect(visitor.page.locator(".bubble")).to_have_attribute("aria-busy", "false")


def test_an_answer_is_finished_in_the_bubble_that_it_was_streamed_into(visitor: Visitor, wire: Wire) -> None:
    wire.tell("response_chunk", text="It is ", is_first=True)
    expect(visitor.answers).to_have_text(["It is"])
    wire.tell("response_chunk", text="ten to nine.", is_first=False)
    expect(visitor.answers).to_have_text(["It is ten to nine."])
    wire.tell("response", text="It is ten to nine.")
    wire.tell("state", state="idle")
    expect(visitor.answers).to_have_text(["It is ten to nine."])


def test_what_was_not_heard_before_an_interruption_is_marked(visitor: Visitor, wire: Wire) -> None:
    answer = SENTENCE * 6
    wire.tell("transcript", text="When does the train leave?", is_final=True)
    wire.tell("response_chunk", text=answer, is_first=True)
    wire.tell("state", state="speaking")
    for seq in range(20):
        wire.speak(1, seq, tone(1000))
    wire.tell("response", text=answer)
    wire.wait_until(
        lambda: any(each["played_ms"] > 800 for each in wire.said("playback", turn=1)),
        "the page did not say that it plays",
    )
    wire.tell("state", state="interrupted")
    wire.tell("state", state="listening")
    expect(visitor.thread).to_contain_text("was not heard")
    unheard = "".join(visitor.page.locator(".unheard").all_inner_texts())
    assert 0 < len(unheard) < len(answer)
    assert answer.strip().endswith(unheard.strip())


def test_markdown_becomes_elements(visitor: Visitor, wire: Wire) -> None:
    answer = (
        "## Trains\n\n1. **Porto**, *10:00*\n2. `Faro`\n\n| to | at |\n|---|---|\n| Porto | 10:00 |\n\n> as planned"
    )
    wire.tell_all(*exchange("Which trains?", answer))
    drawn = visitor.answers.first
    expect(drawn.get_by_role("listitem")).to_have_text(["Porto, 10:00", "Faro"])
    expect(drawn.get_by_role("heading")).to_have_text("Trains")
    expect(drawn.get_by_role("columnheader")).to_have_text(["to", "at"])
    expect(drawn.get_by_role("blockquote")).to_have_text("as planned")
    expect(drawn.get_by_role("strong")).to_have_text("Porto")


def test_code_can_be_copied(visitor: Visitor, wire: Wire) -> None:
    visitor.context.grant_permissions(["clipboard-read", "clipboard-write"])
    wire.tell_all(*exchange("Write a greeting", LISTING))
    visitor.click("Copy code")
    expect(visitor.find("button", "Copied")).to_be_visible()
    assert visitor.evaluate("() => navigator.clipboard.readText()").rstrip() == CODE.rstrip()


def test_the_whole_conversation_can_be_copied(visitor: Visitor, wire: Wire) -> None:
    visitor.context.grant_permissions(["clipboard-read", "clipboard-write"])
    wire.tell_all(*exchange("Write a greeting", LISTING))
    visitor.click("Copy conversation")
    expect(visitor.find("button", "Copied")).to_be_visible()
    copied = visitor.evaluate("() => navigator.clipboard.readText()")
    assert "**You:** Write a greeting" in copied
    assert LISTING in copied


def test_the_whole_conversation_can_be_kept_as_a_file(visitor: Visitor, wire: Wire, tmp_path: Path) -> None:
    wire.tell_all(*exchange("Write a greeting", LISTING))
    with visitor.page.expect_download() as download:
        visitor.page.get_by_text("Download").click()
    assert download.value.suggested_filename.endswith(".md")
    download.value.save_as(tmp_path / "kept.md")
    assert LISTING in (tmp_path / "kept.md").read_text()


def test_the_thread_stays_at_its_end_while_it_grows(visitor: Visitor, wire: Wire) -> None:
    for number in range(20):
        wire.tell_all(*exchange(f"Question {number}", SENTENCE * 3))
    expect(visitor.said.last).to_have_text("Question 19")
    expect(visitor.answers.last).to_be_in_viewport()


def test_a_person_who_reads_further_up_is_left_there_and_told_of_what_comes(visitor: Visitor, wire: Wire) -> None:
    for number in range(20):
        wire.tell_all(*exchange(f"Question {number}", SENTENCE * 3))
    expect(visitor.answers).to_have_count(20)
    visitor.find("region", "Conversation").hover()
    visitor.page.mouse.wheel(0, -5000)
    expect(visitor.said.first).to_be_in_viewport()
    wire.tell("response_chunk", text="And one thing more.", is_first=True)
    expect(visitor.find("button", "New messages")).to_be_visible()
    expect(visitor.said.first).to_be_in_viewport()
    visitor.find("button", "New messages").click()
    expect(visitor.answers.last).to_be_in_viewport()
    expect(visitor.find("button", "New messages")).to_have_count(0)


def test_a_tool_is_shown_while_it_runs_and_when_it_is_done(visitor: Visitor, wire: Wire) -> None:
    called, finished = tool_use(
        "get_forecast",
        {"location": "Lisbon", "days": 3},
        {"high": 21, "sources": [{"title": "The weather office", "url": "https://weather.example/"}]},
    )
    wire.tell("state", state="processing")
    wire.tell_all(called)
    expect(visitor.tools).to_contain_text("Get forecast")
    expect(visitor.tools).to_contain_text("Running")
    visitor.sees("Assistant", "Using a tool")
    wire.tell_all(finished)
    expect(visitor.tools).to_contain_text("Done · 412 ms")
    visitor.sees("Assistant", "Thinking")
    visitor.tools.locator("summary").click()
    expect(visitor.tools.get_by_role("row")).to_have_text(["locationLisbon", "days3"])
    expect(visitor.tools).to_contain_text('"high": 21')
    expect(visitor.find("link", "The weather office")).to_have_attribute("href", "https://weather.example/")


def test_a_tool_that_failed_says_why(visitor: Visitor, wire: Wire) -> None:
    error = {"error": {"code": "TIMEOUT", "message": "The search took too long."}}
    wire.tell_all(*tool_use("web_search", {"query": "trains"}, error, ok=False, duration_ms=5003))
    expect(visitor.tools).to_contain_text("Failed · 5.0 s")
    expect(visitor.tools).to_contain_text("The search took too long.")


def test_two_tools_of_one_name_are_told_apart(visitor: Visitor, wire: Wire) -> None:
    first, first_done = tool_use("get_time", {"city": "Lisbon"}, {"time": "9:00"}, call_id="a")
    second, second_done = tool_use("get_time", {"city": "Tokyo"}, {"time": "17:00"}, call_id="b")
    wire.tell_all(first, second, second_done)
    expect(visitor.tools.nth(0)).to_contain_text("Running")
    expect(visitor.tools.nth(1)).to_contain_text("Done")
    wire.tell_all(first_done)
    expect(visitor.tools.nth(0)).to_contain_text("Done")


def test_a_picture_is_shown_with_its_caption(visitor: Visitor, wire: Wire) -> None:
    wire.tell("image", url="/images/picture.png", caption="A single dot")
    picture = visitor.find("img", "A single dot")
    expect(picture).to_be_visible()
    assert picture.evaluate("(img) => img.decode().then(() => img.naturalWidth)") == 1
    expect(visitor.thread).to_contain_text("A single dot")


def test_a_picture_is_opened_in_full_size_and_saved(visitor: Visitor, wire: Wire) -> None:
    wire.tell("image", url="/images/picture.png", caption="A single dot")
    button = visitor.find("button", "Show in full size: A single dot")
    button.press("Enter")
    dialog = visitor.find("dialog", "A single dot")
    expect(dialog.get_by_role("img", name="A single dot")).to_be_visible()
    with visitor.page.expect_download() as saved:
        dialog.get_by_role("link", name="Save").click()
    assert saved.value.suggested_filename == "picture.png"
    visitor.page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    expect(button).to_be_focused()


def test_a_picture_of_another_site_is_opened_there_instead_of_saved(visitor: Visitor, wire: Wire) -> None:
    visitor.context.route(
        "https://pictures.example/**", lambda route: route.fulfill(body=PICTURE, content_type="image/png")
    )
    wire.tell("image", url="https://pictures.example/dot.png", caption="A single dot")
    visitor.find("button", "Show in full size: A single dot").click()
    link = visitor.find("dialog", "A single dot").get_by_role("link", name="Open pictures.example")
    expect(link).to_have_attribute("rel", "noopener noreferrer")


def test_a_picture_that_cannot_be_loaded_says_so_and_can_be_tried_again(visitor: Visitor, wire: Wire) -> None:
    wire.tell("image", url="/images/gone.png", caption="A single dot")
    expect(visitor.thread).to_contain_text("This picture could not be loaded.")
    visitor.context.route("**/images/gone.png", lambda route: route.fulfill(body=PICTURE, content_type="image/png"))
    visitor.click("Try again")
    expect(visitor.find("img", "A single dot")).to_be_visible()
    visitor.forgive("404")


@pytest.mark.parametrize("address", ["/api/conversations", "http://pictures.example/dot.png"])
def test_a_picture_from_anywhere_else_is_not_loaded(visitor: Visitor, wire: Wire, address: str) -> None:
    wire.tell("image", url=address, caption="A single dot")
    expect(visitor.thread).to_contain_text("its address is not safe")
    expect(visitor.thread.get_by_role("img")).to_have_count(0)


def test_a_tool_is_called_by_its_title(visitor: Visitor, wire: Wire) -> None:
    called, *rest = wait_for_approval(tool="ha_control")
    wire.tell_all(called | {"title": "Control a device"}, *rest)
    expect(visitor.find("alertdialog")).to_contain_text("This is exactly what will run: Control a device")
    visitor.click("Cancel")
    expect(visitor.tools).to_contain_text("Control a device")


def test_times_are_shown_if_they_are_wanted(visitor: Visitor, wire: Wire) -> None:
    wire.tell_all(*exchange("Hello", "Good morning."))
    expect(visitor.thread.get_by_role("time")).to_have_count(0)
    visitor.open_sheet("Settings").get_by_role("switch", name="Show timestamps").check()
    expect(visitor.thread.get_by_role("time")).to_have_count(2)
