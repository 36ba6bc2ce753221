"""Examine the texts that lie in files of their own: whether each that a record names is there, and sound."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_memory.encryption import AgentBlobs, is_encrypted
from agent_memory.errors import StorageError
from agent_memory.files.blobs import Blobs, named_in
from agent_memory.files.concerns import Concern
from agent_memory.files.wording import counted, few
from agent_memory.storage.blobs import files_naming

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agent_memory.doctor.context import Case


def examine_blobs(case: Case) -> Iterator[Concern]:
    """Look at the texts that the records of one journal name and, with the first, at those that nobody names."""
    blobs = AgentBlobs(case.folder)
    there, named = blobs.names(), case.survey.blobs
    present = {name for name in named if blobs.place_of(name) in there}
    missing = [record_id for name, record_id in named.items() if name not in present]
    damaged = [record_id for name, record_id in named.items() if name in present and _is_damaged(blobs, name)]
    for code, what, found in (("missing", "gone", missing), ("damaged", "not what was stored", damaged)):
        if found:
            yield Concern(
                f"blobs_{code}",
                f"{counted(len(found), 'long text')} that {case.name} names: {what}. The first 8,192 characters of "
                "each are in the journal, and are found.",
                "Bring the files in blobs/ back from a backup, or take the texts in again.",
                details=few(found),
            )
    if named and not (missing or damaged):
        yield Concern(
            "blobs",
            f"All {counted(len(named), 'long text')} of {case.name} are there.",
            size=sum(there[blobs.place_of(name)] for name in named),
        )
    if case.is_first and there and not is_encrypted(case.folder.path):  # else files do not name them
        unused = there.keys() - {name for file in files_naming(case.folder) for name in named_in(file)}
        if unused:
            yield Concern(
                "blobs_unused",
                f"{counted(len(unused), 'long text')} in blobs/ belong to no record, as after forgetting one or a "
                "crash; those that are older than 30 days are removed after the next background work.",
                size=sum(there[name] for name in unused),
            )


def _is_damaged(blobs: Blobs, name: str) -> bool:
    try:
        blobs.read(name)
    except StorageError:
        return True
    return False
