"""The archive: memories kept outside of search, restored on request."""

from agent_memory.care.archive.memory_archive import Archive, ArchiveStats, MemoryChains, open_archive

__all__ = ["Archive", "ArchiveStats", "MemoryChains", "open_archive"]
