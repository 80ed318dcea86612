"""The scenarios of session management, each under its own name and with its own text.

The server is whole, and a person talks to it over `/ws`. Behind it are simulated providers, which misbehave by their
control ports, and which show what a new upstream session was given.
"""

import asyncio
from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import Any, Final

import pytest

from antiphon.prompts.composer import SUMMARY_HEADING
from tests.fakes.chat_server import HANG_UP, refusal
from tests.scenarios.providers import BEST, FALLBACK, STANDARD, Providers, Said, Upstream
from tests.scenarios.stage import (
    SUMMARY,
    ChatModels,
    Person,
    call_at_level_2,
    connected,
    serve,
    spoken,
    until,
)

pytestmark = [pytest.mark.real_time, pytest.mark.timeout(60)]

SUMS: Final = ("what is 2 plus 3", "what is 17 times 6", "what is 9 minus 4")
NEXT: Final = "what is 7 times 7"
RECALL: Final = "what did I ask you before"
LIMITED: Final = refusal(429, {"error": {"message": "Rate limit reached."}}, retry_after="60")


async def ask_all(person: Person, questions: Sequence[str] = SUMS) -> list[Said]:
    """Asks the questions, and returns the conversation."""
    pairs = [(("user", question), ("assistant", await person.ask(question))) for question in questions]
    return list(chain(*pairs))


async def fall_back(person: Person, providers: Providers) -> Upstream:
    """The model of level 2 exceeds its rate limit in a call, and the next question is answered at level 1."""
    providers.gemini.add("now", "quota")
    change = await person.until_energy(1)
    assert not change["resumable"]
    assert change["model"].endswith(FALLBACK)
    assert "49" in await person.ask(NEXT)
    [upstream] = providers.openai_sessions()
    assert upstream.asked[0] == NEXT
    return upstream


async def test_fallback_to_a_non_resumable_model(tmp_path: Path, providers: Providers, chat: ChatModels) -> None:
    """Scenario: Fallback to a non-resumable model (with continuity.summarize = "auto")
    Given I am in a voice session with a resumable model
    And my energy level drops, triggering a fallback to a non-resumable model
    When the new session is established
    Then the entire transcript of the previous session is injected as context.
    """
    async with call_at_level_2(tmp_path, providers, chat, summarize="auto") as (_, person):
        said = await ask_all(person)
        assert providers.gemini_sessions()[-1].model == STANDARD
        upstream = await fall_back(person, providers)
        assert upstream.history == said


async def test_always_summarize_transcript_on_fallback_sts(
    tmp_path: Path, providers: Providers, chat: ChatModels
) -> None:
    """Scenario: Always summarize transcript on fallback (STS) (with continuity.summarize = "always")
    Given I am in a voice session
    When the session falls back to a non-resumable model
    Then the system uses the summarization service to process the transcript
    And the summarized transcript, along with the last 4 turns of the conversation (2 user, 2 assistant), is injected as
    context into the new session.
    """
    async with call_at_level_2(tmp_path, providers, chat, summarize="always") as (_, person):
        said = await ask_all(person)
        upstream = await fall_back(person, providers)
        [request] = chat.asked("summary")
        assert SUMS[0] in str(request.messages)
        assert SUMMARY in upstream.instructions.partition(SUMMARY_HEADING)[2]
        assert upstream.history == said[-4:]
        assert [role for role, _ in upstream.history] == ["user", "assistant"] * 2


def text_ladder(chat: ChatModels) -> dict[str, str]:
    return {"2": chat.name("standard"), "1": chat.name("fallback")}


async def shown_to_a_new_client(url: str, person: Person) -> list[Said]:
    """The conversation as the chat interface shows it after a reload."""
    async with connected(url, mode="text", conversation_id=person.session["conversation_id"]) as again:
        history: Any = again.every("history") or [await again.until("history")]
        return [(turn["role"], turn["content"].strip()) for turn in history[-1]["turns"]]


async def test_always_summarize_transcript_on_fallback_tts(tmp_path: Path, chat: ChatModels) -> None:
    """Scenario: Always summarize transcript on fallback (TTS) (with continuity.summarize = "always")
    Given I am in a text chat session
    When the session falls back to a non-resumable model (TTS level 2 to 1)
    Then the system uses the summarization service to process the transcript
    And the summarized transcript is injected as context into the new session
    And the full text transcript remains visible in the chat interface.
    """
    async with (
        serve(tmp_path, text=text_ladder(chat), summarize="always", summary_model=chat.name("summary")) as served,
        connected(served.url, mode="text") as person,
    ):
        said = await ask_all(person)
        chat.limited["standard"] = LIMITED
        answer = await person.ask(NEXT)
        assert answer.startswith("The fallback model")
        [request] = chat.asked("summary")
        assert SUMS[0] in str(request.messages)
        [request] = chat.asked("fallback")
        assert SUMMARY in request.messages[0]["content"]
        assert spoken(request.messages) == [*said[-4:], ("user", NEXT)]
        assert await shown_to_a_new_client(served.url, person) == [*said, ("user", NEXT), ("assistant", answer)]


async def test_conditionally_summarize_a_transcript_on_fallback(
    tmp_path: Path, providers: Providers, chat: ChatModels
) -> None:
    """Scenario: Conditionally summarize a transcript on fallback (with continuity.summarize = "auto")
    Given a tokenizer is available to measure transcript length
    And I am in a voice session
    And the session transcript is short enough to fit within the model's context window
    When the session falls back to a non-resumable model
    Then the system injects the full transcript without summarization.
    """
    async with call_at_level_2(tmp_path, providers, chat, summarize="auto") as (_, person):
        said = await ask_all(person)
        upstream = await fall_back(person, providers)
        assert upstream.history == said
        assert SUMMARY_HEADING not in upstream.instructions
        assert chat.asked("summary") == []


async def test_summarize_a_long_transcript_on_fallback(tmp_path: Path, providers: Providers, chat: ChatModels) -> None:
    """Scenario: Summarize a long transcript on fallback (with continuity.summarize = "auto")
    Given a tokenizer is available to measure transcript length
    And I am in a voice session
    And the session transcript is too long to fit within the model's context window
    When the session falls back to a non-resumable model
    Then the system uses the summarization service to shorten the transcript.
    """
    earlier = [
        {"role": role, "content": f"Part {number} of the list: " + " ".join(map(str, range(number, 1_600)))}
        for number in range(4)
        for role in ("user", "assistant")
    ]
    hello = {"initial_messages": earlier}
    async with call_at_level_2(tmp_path, providers, chat, summarize="auto", **hello) as (_, person):
        said = await ask_all(person)
        upstream = await fall_back(person, providers)
        [request] = chat.asked("summary")
        assert "Part 0 of the list" in str(request.messages)
        assert SUMMARY in upstream.instructions.partition(SUMMARY_HEADING)[2]
        assert upstream.history[-len(said) :] == said
        assert 0 < len(upstream.history) - len(said) < len(earlier)


async def test_tts_session_persists_across_reconnection(tmp_path: Path, chat: ChatModels) -> None:
    """Scenario: TTS session persists across reconnection
    Given I have an active TTS session with conversation history
    When the connection is reset due to GoAway or network issues
    Then the system automatically resumes the TTS session with the in-memory handle
    And my previous text conversation context is maintained.
    """
    async with serve(tmp_path, text=text_ladder(chat)) as served:
        async with connected(served.url, mode="text") as person:
            said = await ask_all(person)
            # The network between client and server.
            person.socket.transport.abort()
        async with connected(served.url, resume=person.session["resume"], last_n=person.last_n) as person:
            assert person.session["resumed"]
            # The network between server and model.
            chat.limited["standard"] = HANG_UP
            await person.send("text_message", text="are you there")
            await person.until("error")
            del chat.limited["standard"]
            await person.ask(NEXT)
            context = spoken(chat.asked("standard")[-1].messages)
            assert context[: len(said)] == said
            assert context[-1] == ("user", NEXT)
            served.stop()
            handle = (await person.until("go_away"))["resume"]
            person.socket.transport.abort()
    async with (
        serve(tmp_path, text=text_ladder(chat)) as served,
        connected(served.url, resume=handle, last_n=person.last_n) as person,
    ):
        assert person.session["resumed"]
        assert person.session["mode"] == "text"
        await person.ask(SUMS[0])
        assert spoken(chat.asked("standard")[-1].messages)[: len(said)] == said


async def test_tts_session_handles_energy_fallback(tmp_path: Path, chat: ChatModels) -> None:
    """Scenario: TTS session handles energy fallback (with continuity.summarize = "always")
    Given I have a TTS session at energy level 2
    When the energy drops to level 1 (non-resumable model)
    Then the system triggers handleFallback for TTS mode
    And the text transcript is summarized and re-injected
    And the full conversation remains visible in the chat interface.
    """
    async with (
        serve(tmp_path, text=text_ladder(chat), summarize="always", summary_model=chat.name("summary")) as served,
        connected(served.url, mode="text") as person,
    ):
        said = await ask_all(person)
        chat.limited["standard"] = LIMITED
        said += [("user", NEXT), ("assistant", await person.ask(NEXT))]
        [change] = person.every("energy")
        assert (change["mode"], change["previous"], change["level"]) == ("text", 2, 1)
        assert change["reason"] == "rate-limit-exceeded"
        assert change["requires_fallback"]
        assert person.codes() == ["model_switched"]
        assert person.every("error") == []
        assert len(chat.asked("summary")) == 1
        [request] = chat.asked("fallback")
        assert SUMMARY in request.messages[0]["content"]
        assert await served.said(person.session["conversation_id"]) == said
        assert await shown_to_a_new_client(served.url, person) == said


async def test_server_provides_a_resumption_token(tmp_path: Path, providers: Providers) -> None:
    """Scenario: Server provides a resumption token
    Given I have an active session with the Gemini Live API
    And the server is about to terminate the current connection
    When the server sends a message indicating the imminent disconnection
    Then the message includes a session resumption token.
    """
    async with serve(tmp_path, voice=providers.ladder) as served, connected(served.url, mode="voice") as person:
        await person.begin_call()
        await person.ask(SUMS[0])
        # Gemini gives the token in a message of its own, before it announces the end.
        providers.gemini.add("now", {"go_away": {"seconds_left": 5}})
        await until(lambda: len(providers.gemini_sessions()) == 2)
        sent = providers.gemini_sent(0)
        [announced] = [place for place, message in enumerate(sent) if "goAway" in message]
        updates = [
            message["sessionResumptionUpdate"] for message in sent[:announced] if "sessionResumptionUpdate" in message
        ]
        assert updates[-1]["resumable"]
        assert providers.gemini_sessions()[1].handle == updates[-1]["newHandle"]
        # Our own server gives it in the message itself.
        served.stop()
        told = await person.until("go_away")
        assert told["resume"]
        assert told["time_left_ms"] > 0


async def test_successfully_resume_a_session(tmp_path: Path, providers: Providers) -> None:
    """Scenario: Successfully resume a session
    Given I have received a session resumption token from the server
    And the previous connection has been terminated
    When I establish a new connection and provide the resumption token
    Then the server restores the previous session, and I can continue the conversation.
    """
    async with serve(tmp_path, voice=providers.ladder) as served, connected(served.url, mode="voice") as person:
        await person.begin_call()
        await ask_all(person)
        providers.gemini.add("now", {"close": {"code": 1011, "reason": "Internal error encountered."}})
        await until(lambda: len(providers.gemini_sessions()) == 2)
        assert SUMS[-1].removeprefix("what is ") in await person.ask(RECALL)
        first, second = providers.gemini_sessions()
        assert first.handle is None
        assert second.handle is not None
        assert second.history == [], "the provider knows the conversation"
        assert person.every("energy") == []
        assert person.every("error") == []


async def test_invalid_or_expired_token(tmp_path: Path, providers: Providers) -> None:
    """Scenario: Invalid or expired token
    Given I have a session resumption token
    When I try to resume a session with an invalid or expired token
    Then the server rejects the connection and provides a clear error message.
    """
    async with serve(tmp_path, voice=providers.ladder) as served:
        async with connected(served.url, mode="voice") as person:
            await person.begin_call()
            said = await ask_all(person)
            providers.gemini.add("resume", {"reject_handle": {"problem": "expired"}})
            providers.gemini.add("now", "reset")
            told = await person.until("notice", code="could_not_resume")
            assert told["text"] == (
                f"gemini-live:{BEST} could not resume its session. The conversation continues in a new one."
            )
            assert "49" in await person.ask(NEXT)
            refused, fresh = providers.gemini_sessions()[-2:]
            assert refused.handle is not None
            assert providers.gemini_sent(-2) == [{"close": 1008, "reason": "BidiGenerateContent session not found"}]
            assert fresh.handle is None
            assert fresh.history[: len(said)] == said
        # The handle of a client.
        async with connected(served.url, resume="not-a-handle") as person:
            assert not person.session["resumed"]
            [error] = person.every("error")
            assert error["code"] == "resume_rejected"
            assert error["message"]


async def test_start_high_energy_session_with_call_summary_context(tmp_path: Path, providers: Providers) -> None:
    """Scenario: Start high-energy session with call summary context
    Given I have a session resumption token from an energy level 1 STS session
    And I have a recent call summary in my call history
    When I attempt to start a new call session at energy level 3
    Then the system detects the incompatible handle (level 1 vs level 3 model)
    And the system clears the incompatible resumption handle
    And the system uses the latest call summary as context for the new session
    And the session starts successfully with the enriched context.
    """
    standard = providers.gemini_model(STANDARD)
    voice = {"3": providers.gemini_model(), "2": providers.gemini_model(), "1": standard}
    providers.gemini.arm("connect", {"refuse": {"status": 429, "retry_after_s": 1}}, times=2)
    async with serve(tmp_path, voice=voice) as served, connected(served.url, mode="voice") as person:
        await person.begin_call()
        assert person.every("energy")[-1]["level"] == 1
        await ask_all(person)
        await person.send("end_voice")
        await person.until("end_voice_session")
        [call] = (await served.get("/api/calls"))["calls"]
        assert call["summary"]
        await asyncio.sleep(1)

        await person.send("start_voice")
        assert (await person.until("energy"))["level"] == 3
        await person.until("state", state="listening")
        *_, level_1, level_3 = providers.gemini_sessions()
        assert (level_1.model, level_3.model) == (STANDARD, BEST)
        assert level_3.handle is None
        assert call["summary"] in level_3.instructions.partition(SUMMARY_HEADING)[2]
        assert "49" in await person.ask(NEXT)


async def test_handle_energy_triggered_model_fallback(tmp_path: Path, providers: Providers, chat: ChatModels) -> None:
    """Scenario: Handle energy-triggered model fallback (with continuity.summarize = "always")
    Given I am in an STS call session at energy level 2
    And the model supports session resumption
    When a rate limit causes energy to drop to level 1
    Then the system triggers handleFallback mechanism
    And the transcript is summarized using SummarizationService
    And the summarized context is injected into the new session.
    """
    async with call_at_level_2(tmp_path, providers, chat, summarize="always") as (_, person):
        await ask_all(person)
        [before] = person.every("energy")
        assert (before["level"], before["resumable"]) == (2, True)
        upstream = await fall_back(person, providers)
        change = person.every("energy")[-1]
        assert (change["mode"], change["previous"], change["level"]) == ("voice", 2, 1)
        assert change["reason"] == "rate-limit-exceeded"
        assert change["requires_fallback"]
        assert len(chat.asked("summary")) == 1
        assert SUMMARY in upstream.instructions.partition(SUMMARY_HEADING)[2]


async def test_receive_a_goaway_message(tmp_path: Path, providers: Providers) -> None:
    """Scenario: Receive a GoAway message
    Given I have an active session with the Gemini Live API
    When the server is about to terminate the connection
    Then the server sends a `GoAway` message with the `timeLeft` before termination.
    """
    async with serve(tmp_path, voice=providers.ladder) as served, connected(served.url, mode="voice") as person:
        await person.begin_call()
        await person.ask(SUMS[0])
        providers.gemini.add("now", {"go_away": {"seconds_left": 7.5}})
        await until(lambda: len(providers.gemini_sessions()) == 2)
        assert {"goAway": {"timeLeft": "7.5s"}} in providers.gemini_sent(0)
        assert "close" not in providers.gemini_sent(0)[-1], "the successor came before the end"
        assert "49" in await person.ask(NEXT)
        assert providers.gemini_sessions()[1].asked == [NEXT]
        assert person.every("error") == []


async def test_model_completes_its_generation(tmp_path: Path, providers: Providers) -> None:
    """Scenario: Model completes its generation
    Given the model is generating a response in an active session
    When the model finishes sending its complete response
    Then the server sends a `generationComplete` message.
    """
    async with serve(tmp_path, voice=providers.ladder) as served, connected(served.url, mode="voice") as person:
        await person.begin_call()
        await person.ask(SUMS[0])
        sent = providers.gemini_sent()
        generated = sent.index({"serverContent": {"generationComplete": True}})
        assert not any("modelTurn" in message.get("serverContent", {}) for message in sent[generated:])
        [done] = person.every("generation_complete")
        [answer] = person.every("response")
        assert done["turn"] == answer["turn"]
        of_turn = [each["type"] for each in person.received if each.get("turn") == done["turn"]]
        assert of_turn.index("generation_complete") > len(of_turn) - 1 - of_turn[::-1].index("audio")
