"""What a workspace is declared to be, read from YAML and checked."""

from agent_memory.workspace.declaration.migrating import additions
from agent_memory.workspace.declaration.model import (
    LARGEST_INTEGER,
    MAX_TEXT_CHARS,
    MAX_UNIQUE_CHARS,
    OWN_COLUMNS,
    Column,
    ColumnType,
    Declaration,
    Phase,
    PhaseAgent,
    Table,
    ToolSpec,
    canonical_json,
    is_snapshot_name,
)
from agent_memory.workspace.declaration.reading import parse_declaration, read_declaration

__all__ = [
    "LARGEST_INTEGER",
    "MAX_TEXT_CHARS",
    "MAX_UNIQUE_CHARS",
    "OWN_COLUMNS",
    "Column",
    "ColumnType",
    "Declaration",
    "Phase",
    "PhaseAgent",
    "Table",
    "ToolSpec",
    "additions",
    "canonical_json",
    "is_snapshot_name",
    "parse_declaration",
    "read_declaration",
]
