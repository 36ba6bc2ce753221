"""Documents whose file no longer exists."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from agent_memory.files.layout import find_memory
from agent_memory.knowledge.intake.document_index import MISSING_SINCE, get_real_path, is_placed, without_key
from agent_memory.knowledge.intake.parsing import is_known_file
from agent_memory.models import RESOURCE, to_text
from agent_memory.store.record_redaction import redact_fields

if TYPE_CHECKING:
    from agent_memory.knowledge.records import Knowledge
    from agent_memory.models import Resource


def list_files(folder: Path, storage_root: Path) -> tuple[list[Path], list[Path], list[Path]]:
    """List files to ingest, and links and memories left out.

    A link is left out if it leads out of the folder or to a hidden file. Hidden files and folders count for nothing,
    and linked folders are not entered. The folder of an agent and the storage root are left out: what was forgotten
    is still in a journal.

    Args:
        folder: Folder that a person named.
        storage_root: Resolved folder of all agents in use.
    """
    files, links, memories, root = list[Path](), list[Path](), list[Path](), folder.resolve()
    for place, folders, names in os.walk(folder):
        real = Path(place).resolve()
        if real == storage_root or find_memory(real):
            memories.append(Path(place))
            folders.clear()
            continue
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        links += [path for name in folders if _leads_out(path := Path(place, name), root)]
        paths = [Path(place, name) for name in sorted(names) if not name.startswith(".")]
        readable = [path for path in paths if is_known_file(path) and path.is_file()]
        links += [path for path in readable if _leads_out(path, root)]
        files += [path for path in readable if not _leads_out(path, root)]
    return files, links, memories


def _leads_out(path: Path, root: Path) -> bool:
    """Return True for a link to an outside or hidden file."""
    if not path.is_symlink():
        return False
    target = path.resolve()
    return not target.is_relative_to(root) or any(name.startswith(".") for name in target.relative_to(root).parts)


async def list_below(knowledge: Knowledge, folder: Path, *, is_current: bool = True) -> list[Resource]:
    """Return documents of files below a folder, oldest first.

    Args:
        knowledge: Documents of the agent.
        folder: Resolved path; the folder may be missing.
        is_current: Whether older and withdrawn versions are left out.

    Raises:
        StorageError: They cannot be read.
    """
    resources = knowledge.resources
    records = await resources.valid() if is_current else [record async for record in resources.iter_all()]
    paths = {record.id: get_real_path(record) for record in records}
    return [record for record in records if (path := paths[record.id]) is not None and folder in path.parents]


async def note_missing(knowledge: Knowledge, root: Path) -> list[Resource]:
    """Return documents of a folder without a file; note since when.

    Args:
        knowledge: Documents of the agent.
        root: Resolved path of the folder.

    Raises:
        StorageError: Some may be noted; doing it again does the rest.
    """
    missing: list[Resource] = []
    for record in await list_below(knowledge, root):
        metadata = without_key(record.metadata, MISSING_SINCE)
        if not is_placed(record):
            metadata[MISSING_SINCE] = record.metadata.get(MISSING_SINCE) or to_text(knowledge.clock())
        if metadata != record.metadata:
            changes = redact_fields(RESOURCE, {"metadata": metadata})
            record = await knowledge.resources.update(record.id, changes)  # noqa: PLW2901 - as it is now
        if MISSING_SINCE in metadata:
            missing.append(record)
    return missing
