"""`python -m bench.outages.antiphon_call ORDER`: a client of our server, over its WebSocket."""

import asyncio
import time
from contextlib import suppress

from antiphon.client import Mode, Session, connect
from antiphon.client.events import Disconnected
from antiphon.protocol import client_messages as c
from antiphon.protocol import server_messages as s
from antiphon.protocol.limits import SPEECH_HZ
from bench.outages.call import Call


class Client:
    """Plays what the server says, and reports what has been played."""

    def __init__(self, call: Call, session: Session) -> None:
        self._call = call
        self._session = session
        self._reports: set[asyncio.Task[None]] = set()

    async def hear(self, pcm: bytes) -> None:
        is_playing = self._call.speaker.ends_s > time.monotonic()
        await self._session.send_audio(pcm, playing=is_playing)

    async def read(self) -> None:
        async for incoming in self._session.messages():
            match incoming:
                case s.SpeechFrame(pcm=pcm):
                    self._call.speaker.play(pcm, SPEECH_HZ)
                case s.GenerationComplete(turn=turn):
                    report = asyncio.create_task(self._report(turn))
                    self._reports.add(report)
                    report.add_done_callback(self._reports.discard)
                case s.StateChanged(state=s.State.INTERRUPTED):
                    self._call.speaker.clear()
                case s.Error(message=text) | s.Notice(text=text):
                    self._call.problems.append(text)

    async def _report(self, turn: int) -> None:
        await asyncio.sleep(max(0.0, self._call.speaker.ends_s - time.monotonic()))
        with suppress(Disconnected):
            await self._session.send(c.PlaybackDone(turn))


async def main() -> None:
    call = Call.from_order()
    async with connect(call.url, mode=Mode.TEXT, hello=c.Hello(audio=c.AudioForm.BINARY, client="bench")) as session:
        client = Client(call, session)
        reading = asyncio.create_task(client.read())
        await session.send(c.StartVoice())
        await call.hold(client.hear)
        call.report("antiphon")
        reading.cancel()
        await asyncio.gather(reading, return_exceptions=True)


if __name__ == "__main__":
    asyncio.run(main())
