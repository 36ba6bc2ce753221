"""The archive: memories that were put away, each whole; searched on request, and brought back as they were."""

from agent_memory.lifecycle.archive.archive import MemoryArchive
from agent_memory.lifecycle.archive.chains import Chains
from agent_memory.lifecycle.archive.reading import ArchiveStats, archive_exists

__all__ = ["ArchiveStats", "Chains", "MemoryArchive", "archive_exists"]
