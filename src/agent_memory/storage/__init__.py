"""Storage of one agent's memories: the journal is the truth, what is searched is derived from it."""

from agent_memory.files.layout import AgentFolder, folder_of
from agent_memory.storage.agents import (
    AgentSummary,
    copy_agent,
    delete_agent,
    new_folder,
    rename_agent,
    summary_of,
    sweep_agents,
    unfinished_agents,
)
from agent_memory.storage.base import MemoryStorage
from agent_memory.storage.conditions import filters_of
from agent_memory.storage.detect import detect_storage, rollback_migration, should_migrate
from agent_memory.storage.file import FileStorage
from agent_memory.storage.trouble import Trouble
from agent_memory.storage.vector.candidates import PAYS_FROM
from agent_memory.storage.vector.migration import MigrationProgress
from agent_memory.storage.vector.storage import MigratableStorage, VectorStorage

__all__ = [
    "PAYS_FROM",
    "AgentFolder",
    "AgentSummary",
    "FileStorage",
    "MemoryStorage",
    "MigratableStorage",
    "MigrationProgress",
    "Trouble",
    "VectorStorage",
    "copy_agent",
    "delete_agent",
    "detect_storage",
    "filters_of",
    "folder_of",
    "new_folder",
    "rename_agent",
    "rollback_migration",
    "should_migrate",
    "summary_of",
    "sweep_agents",
    "unfinished_agents",
]
