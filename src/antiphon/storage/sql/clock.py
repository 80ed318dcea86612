"""The clock of the database, which is the same for all processes that share it."""

from sqlalchemy import BigInteger, ColumnElement, literal_column


def now_ms_of(dialect: str) -> ColumnElement[int]:
    """The time of the statement, in Unix milliseconds."""
    if dialect == "postgresql":
        return literal_column("CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000 AS BIGINT)", BigInteger)
    return literal_column("CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)", BigInteger)
