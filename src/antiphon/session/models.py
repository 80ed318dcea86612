"""The models of a session: the one that it talks to, and the one that takes over when it is connected."""

from collections.abc import Callable, Mapping
from typing import Final

from antiphon.continuity.upstream import UpstreamHandle, UpstreamState
from antiphon.models.base import ModelError
from antiphon.models.live import LiveContext, LiveProfile, ModelFactory
from antiphon.session.connection import FromModel, ModelConnection
from antiphon.tools.spec import Mode

NO_MODEL: Final = {
    Mode.TEXT: "This server has no model for text.",
    Mode.VOICE: "Voice is not available on this server. You can go on in text.",
}

ModelFactories = Mapping[Mode, ModelFactory]
"""The models of a server, by mode. A mode without a model is not offered."""


class SessionModels:
    def __init__(
        self,
        factories: ModelFactories,
        describe: Callable[[LiveProfile, Mode], LiveContext],
        post: Callable[[FromModel], None],
    ) -> None:
        """`describe` says what a model is connected with; `post` reaches the mailbox."""
        self.connection: ModelConnection | None = None
        """Made when it is first needed."""
        self.successor: ModelConnection | None = None
        """A model of the other mode, which takes over once it is open and no turn is under way."""
        self._factories = factories
        self._describe = describe
        self._post = post
        self._voice: tuple[str | None, float] = (None, 1.0)
        self._handles: dict[Mode, str | None] = {}
        """The newest resumption handle of each mode."""
        self._mode: Mode | None = None
        """The mode of the connection."""
        self._closing: list[ModelConnection] = []

    def connect(self, mode: Mode) -> ModelConnection:
        """The connection, which is made if there is none. Raises `ModelError` if the server has no such model."""
        if self.connection is None:
            self.connection, self._mode = self._make(mode), mode
        return self.connection

    def prepare(self, mode: Mode) -> None:
        """Connects a model of another mode beside the one in use. Raises `ModelError` if the server has none."""
        if self.successor is None:
            self.successor = self._make(mode)

    def promote(self, mode: Mode) -> None:
        """The model that was prepared takes over."""
        successor, self.successor = self.successor, None
        self.close()
        self.connection, self._mode = successor, mode

    def set_voice(self, voice: str | None, speed: float) -> None:
        """Applies to this model and to those that come after it."""
        self._voice = (voice, speed)
        for connection in (self.connection, self.successor):
            if connection is not None:
                connection.set_voice(voice, speed)

    def profile_of(self, mode: Mode) -> LiveProfile | None:
        """What the model of this mode can do; None if there is none."""
        if self.connection is not None and self._mode is mode:
            return self.connection.profile
        factory = self._factories.get(mode)
        return None if factory is None else factory.profile

    def upstream_state(self) -> UpstreamState:
        """What another process needs to go on with the upstream sessions."""
        handles = dict(self._handles)
        if self.connection is not None and self._mode is not None:
            handles[self._mode] = self.connection.resume_handle
        return UpstreamState(
            {
                mode: UpstreamHandle(handle, level=1, model=self._factories[mode].profile.name)
                for mode, handle in handles.items()
                if handle is not None
            }
        )

    def restore_upstream(self, state: UpstreamState) -> None:
        """Goes on with the upstream sessions that another process has left."""
        for mode, factory in self._factories.items():
            found = state.handles.get(mode)
            if found is not None and found.model == factory.profile.name:
                self._handles[mode] = found.handle

    def forget_handles(self) -> None:
        """The upstream sessions know a conversation that this session has left."""
        self._handles.clear()

    def close(self) -> None:
        """Gives the model up; the next one is connected when it is needed."""
        connection, self.connection = self.connection, None
        if connection is not None:
            if self._mode is not None:
                self._handles[self._mode] = connection.resume_handle
            self._give_up(connection)

    def drop_successor(self) -> None:
        successor, self.successor = self.successor, None
        if successor is not None:
            self._give_up(successor)

    async def wait_closed(self) -> None:
        """Returns when all connections that were given up are gone."""
        for connection in self._closing:
            await connection.wait_closed()

    def _make(self, mode: Mode) -> ModelConnection:
        factory = self._factories.get(mode)
        if factory is None:
            raise ModelError(NO_MODEL[mode], retryable=False)
        context = self._describe(factory.profile, mode)
        resume = self._handles.pop(mode, None)
        return ModelConnection(factory, context, self._post, resume=resume, voice=self._voice)

    def _give_up(self, connection: ModelConnection) -> None:
        connection.close()
        self._closing = [each for each in self._closing if not each.is_closed]
        self._closing.append(connection)
