"""Stores in a SQL database, through SQLAlchemy: SQLite, with statements that Postgres understands too."""

from antiphon.storage.sql.database import Database, open_database

__all__ = ["Database", "open_database"]
