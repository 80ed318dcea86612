"""Stores in a SQL database, through SQLAlchemy: SQLite, in words that Postgres knows too."""

from antiphon.storage.sql.database import Database, open_database

__all__ = ["Database", "open_database"]
