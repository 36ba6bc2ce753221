"""The archive: memories that were put away, each whole; searched on request, and brought back as they were."""

from agent_memory.care.archive.archive import Archive
from agent_memory.care.archive.chains import Chains
from agent_memory.care.archive.reading import ArchiveStats, archive_exists

__all__ = ["Archive", "ArchiveStats", "Chains", "archive_exists"]
