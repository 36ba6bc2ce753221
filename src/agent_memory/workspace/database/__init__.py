"""The database under a workspace: its tables, one transaction at a time, and the history of every change."""

from agent_memory.workspace.database.engine import Database, PostgresDatabase, SqliteDatabase
from agent_memory.workspace.database.history import HistoryEntry, Transaction, Writer
from agent_memory.workspace.database.schema import LOW, STEPS, Schema, State, schema_of
from agent_memory.workspace.database.words import Words

__all__ = [
    "LOW",
    "STEPS",
    "Database",
    "HistoryEntry",
    "PostgresDatabase",
    "Schema",
    "SqliteDatabase",
    "State",
    "Transaction",
    "Words",
    "Writer",
    "schema_of",
]
