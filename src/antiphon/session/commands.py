"""What a client's messages ask for beyond the state table: settings, another conversation, a sample of a voice."""

from typing import TYPE_CHECKING, Final

from antiphon.protocol import client_messages as c
from antiphon.protocol import server_messages as s
from antiphon.session import events as e
from antiphon.session.models import NO_MODEL
from antiphon.session.voice import VoiceStart
from antiphon.tools.spec import Mode

if TYPE_CHECKING:
    from antiphon.session.runner import Runner

UNKNOWN_CONVERSATION: Final = s.Error("You have no such conversation.", "unknown_conversation")


async def carry_out(runner: "Runner", message: c.ClientMessage) -> None:
    """Does what a message of the client asks for. What concerns the state is left to the machine."""
    match message:
        case c.StopListening():
            runner.voice.cancel_start()
            await runner.step(e.ListeningStopped(runner.microphone.has_heard_speech))
        case c.PlaybackDone():
            # What must be made again has not been sent, so it cannot have been played.
            if not runner.outbox.unspoken:
                await runner.step(message)
        case c.Settings():
            runner.outbox.send(runner.preferences.change(message))
            note_voice(runner)
            await runner.save()
        case c.ClearConversation():
            await _clear(runner, message)
        case c.StartVoice(pending_request=pending):
            await _start_voice(runner, (pending or "").strip())
        case c.EndVoice():
            await runner.voice.end("user_request")
        case c.LoadConversation():
            await _load(runner, message)
        case c.Confirm(confirmation_token=token, approved=approved):
            await runner.outcomes.confirm(token, approved)
        case c.Record(on=on):
            await runner.calls.recording.switch(on)
            await runner.save()
        case c.TestAudio(voice=voice):
            _sample(runner, voice)
        case c.Ping(t=t):
            runner.outbox.send(s.Pong(t), once=True)
        case c.Hello():
            runner.outbox.send(s.Error("hello must be the first message.", "hello_late"))
        case c.StartListening():
            await runner.step(message)
            runner.open_microphone()
        case _:
            await runner.step(message)


def note_voice(runner: "Runner") -> None:
    """Has models and tools know the voice, its speed and the volume."""
    preferences, state = runner.preferences, runner.tools.state
    runner.models.set_voice(preferences.voice, preferences.speed)
    state.voice_speed, state.volume = preferences.voice_speed, preferences.volume


async def take_settings(runner: "Runner") -> None:
    """Applies the settings that a tool has changed, before its result is spoken."""
    state = runner.tools.state
    if state.has_new_settings:
        state.has_new_settings = False
        await carry_out(runner, c.Settings(voice_speed=state.voice_speed, volume=state.volume))


async def _start_voice(runner: "Runner", pending_request: str) -> None:
    pending, runner.tools.state.pending_message = runner.tools.state.pending_message or "", None
    greets = runner.preferences.greeting and not runner.writer.transcript.messages
    greeting = runner.composer.assistant.greeting if greets else ""
    await runner.voice.start(VoiceStart(pending_request or pending, greeting, answers_last=True))


async def _clear(runner: "Runner", message: c.ClearConversation) -> None:
    """An answer under way belongs to the conversation that is to be forgotten."""
    await runner.step(message)
    runner.outbox.drop_all()
    await runner.writer.clear()
    await runner.calls.recording.clear(runner.tools.user, runner.conversation_id)
    runner.begin_conversation()


def _sample(runner: "Runner", voice: str | None) -> None:
    if runner.sampler is None:
        runner.voice.refuse(NO_MODEL[Mode.VOICE])
    else:
        runner.sampler.start(voice or runner.preferences.voice, runner.preferences.speed)


async def _load(runner: "Runner", message: c.LoadConversation) -> None:
    if not await runner.writer.has(message.conversation_id):
        runner.outbox.send(UNKNOWN_CONVERSATION)
        return
    await runner.step(message)
    runner.outbox.drop_speech()
    await runner.calls.end()
    runner.calls.recording.forget_choice()
    await runner.writer.load(message.conversation_id)
    runner.begin_conversation()
    runner.tell_history()
