"""Connections of psycopg that do not wait forever, and that accept every text. Needs the extra `postgres`."""

from typing import Any, Final, TypeVar

import psycopg
from psycopg.abc import PQGen
from psycopg.adapt import Dumper
from psycopg.pq import TransactionStatus

TIMEOUT_S: Final = 5.0
"""How long a connection, a statement or a lock may take."""
SILENCE_S: Final = 2.0
"""How much longer than a statement may take the client waits for the server's answer. A server that is frozen, or a
network that drops everything, does not even tell that a statement took too long."""

# Those of storage.url come first. The last four let the system notice a server whose machine or network is gone.
PARAMETERS: Final[dict[str, Any]] = {
    "application_name": "antiphon",
    "client_encoding": "utf8",
    "connect_timeout": round(TIMEOUT_S),
    "tcp_user_timeout": round(TIMEOUT_S * 1000),
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
}

Result = TypeVar("Result")


class TimedConnection(psycopg.Connection[Any]):
    timeout_s: float = TIMEOUT_S + SILENCE_S
    """How long the server may be silent."""

    def wait(self, gen: PQGen[Result], interval: float = 0.1, timeout: float | None = None) -> Result:
        try:
            return super().wait(gen, interval, self.timeout_s if timeout is None else timeout)
        except psycopg.OperationalError as error:
            if self.pgconn.transaction_status != TransactionStatus.ACTIVE:
                raise
            # The answer may still come, and must not be taken for the answer of another statement.
            self.pgconn.finish()
            raise psycopg.OperationalError("the server does not answer") from error

    def set_timeout(self, timeout_s: float) -> None:
        """Sets how long a statement may take, and how long it may wait for a lock."""
        self.timeout_s = timeout_s + SILENCE_S
        limits_s = {
            "statement_timeout": timeout_s,
            # A little less, so that the error names the lock.
            "lock_timeout": timeout_s * 0.9,
            # A process that is frozen, or whose machine is gone, must not hold its locks for long.
            "idle_in_transaction_session_timeout": self.timeout_s,
        }
        self.execute("; ".join(f"SET {name} = {round(limit_s * 1000)}" for name, limit_s in limits_s.items()).encode())


class _TextDumper(Dumper):
    """Replaces the character NUL, which Postgres cannot store, as a decoder does with what it cannot read."""

    def dump(self, obj: str) -> bytes:
        return obj.replace("\0", "\ufffd").encode()


def connect(_dialect: Any, _record: Any, arguments: Any, parameters: Any) -> TimedConnection:
    """Makes a connection, as an event of SQLAlchemy."""
    connection = TimedConnection.connect(*arguments, autocommit=True, **(PARAMETERS | parameters))
    connection.adapters.register_dumper(str, _TextDumper)
    connection.set_timeout(TIMEOUT_S)
    return connection
