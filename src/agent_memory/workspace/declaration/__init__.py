"""What a workspace is declared to be, read from YAML and checked."""

from agent_memory.workspace.declaration.migrating import additions
from agent_memory.workspace.declaration.model import (
    MAX_TEXT_CHARS,
    OWN_COLUMNS,
    Column,
    ColumnType,
    Declaration,
    Phase,
    PhaseAgent,
    Table,
    ToolSpec,
    canonical_json,
)
from agent_memory.workspace.declaration.reading import parse_declaration, read_declaration

__all__ = [
    "MAX_TEXT_CHARS",
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
    "parse_declaration",
    "read_declaration",
]
