"""Run by alembic, on the connection of `sql/database.py`, whose transaction keeps other processes out."""

from alembic import context

from antiphon.storage.sql.tables import metadata

context.configure(connection=context.config.attributes["connection"], target_metadata=metadata, render_as_batch=True)
context.run_migrations()
