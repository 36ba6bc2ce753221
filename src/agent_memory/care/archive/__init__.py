"""The archive: memories kept outside of search, restored on request."""

from agent_memory.care.archive.memory_archive import Archive, ArchiveStats, Chains, archive_exists

__all__ = ["Archive", "ArchiveStats", "Chains", "archive_exists"]
