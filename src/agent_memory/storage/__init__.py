"""Names of `store`, `files`, `care` and `engines` at their earlier import path."""

from typing import TYPE_CHECKING

from agent_memory.late import offer as _offer

if TYPE_CHECKING:
    from agent_memory.care.agents import (
        AgentSummary,
        delete_agent,
        find_reset_files,
        new_folder,
        rename_agent,
        reset_agent,
        summary_of,
        sweep_agents,
        unfinished_agents,
    )
    from agent_memory.care.backups.restoration import copy_agent
    from agent_memory.engines.vector_storage import MigratableStorage, VectorStorage
    from agent_memory.files.layout import AgentFolder, folder_of
    from agent_memory.settings import PAYS_FROM
    from agent_memory.store.memory_storage import (
        FileStorage,
        MemoryStorage,
        detect_storage,
        rollback_migration,
        should_migrate,
    )
    from agent_memory.store.protocols import MigrationProgress, Trouble

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
    "find_reset_files",
    "folder_of",
    "new_folder",
    "rename_agent",
    "reset_agent",
    "rollback_migration",
    "should_migrate",
    "summary_of",
    "sweep_agents",
    "unfinished_agents",
]

if not TYPE_CHECKING:  # a type checker would take it for every name there is
    __getattr__, __dir__ = _offer(__name__)
