"""The archive: memories that were put away, each whole; searched on request, and brought back as they were."""

from agent_memory.lifecycle.archive.archive import Archive
from agent_memory.lifecycle.archive.chains import Chains
from agent_memory.lifecycle.archive.reading import ArchiveStats, archive_exists

__all__ = ["Archive", "ArchiveStats", "Chains", "archive_exists"]
