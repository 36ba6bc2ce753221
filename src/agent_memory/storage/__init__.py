"""Names of `store`, `files`, `care` and `engines` at their earlier import path."""

from typing import TYPE_CHECKING

from agent_memory.late import offer as _offer

if TYPE_CHECKING:
    from agent_memory.care.agents import AgentSummary as AgentSummary
    from agent_memory.care.agents import delete_agent as delete_agent
    from agent_memory.care.agents import find_reset_files as find_reset_files
    from agent_memory.care.agents import new_folder as new_folder
    from agent_memory.care.agents import rename_agent as rename_agent
    from agent_memory.care.agents import reset_agent as reset_agent
    from agent_memory.care.agents import summary_of as summary_of
    from agent_memory.care.agents import sweep_agents as sweep_agents
    from agent_memory.care.agents import unfinished_agents as unfinished_agents
    from agent_memory.care.backups.restoration import copy_agent as copy_agent
    from agent_memory.engines.vector_storage import MigratableStorage as MigratableStorage
    from agent_memory.engines.vector_storage import VectorStorage as VectorStorage
    from agent_memory.files.layout import AgentFolder as AgentFolder
    from agent_memory.files.layout import folder_of as folder_of
    from agent_memory.settings import PAYS_FROM as PAYS_FROM
    from agent_memory.store.memory_storage import FileStorage as FileStorage
    from agent_memory.store.memory_storage import MemoryStorage as MemoryStorage
    from agent_memory.store.memory_storage import detect_storage as detect_storage
    from agent_memory.store.memory_storage import rollback_migration as rollback_migration
    from agent_memory.store.memory_storage import should_migrate as should_migrate
    from agent_memory.store.protocols import MigrationProgress as MigrationProgress
    from agent_memory.store.protocols import Trouble as Trouble


if not TYPE_CHECKING:  # a type checker would take it for every name there is
    __getattr__, __dir__ = _offer(__name__)
