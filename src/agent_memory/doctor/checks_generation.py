"""Examine whether the journals are those that `agent.yaml` names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_memory.errors import StorageError
from agent_memory.files.concerns import Concern
from agent_memory.files.names import JOURNAL
from agent_memory.files.wording import counted
from agent_memory.journal.agent_file import header_at, read_states
from agent_memory.journal.presence import check_present
from agent_memory.journal.purge_filter import is_returned

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agent_memory.doctor.context import Case


def examine_generation(case: Case) -> Iterator[Concern]:
    """Report a journal that was not last in use, and missing ones."""
    states = read_states(case.folder.path) or {}
    reader, state = case.journal.file.reader, states.get(case.name)
    on_disk = header_at(case.path)  # read after the states: a compaction replaces the journal first
    if reader.header is None or on_disk is None or on_disk.generation != reader.header.generation:
        return
    if is_returned(case.path) or (state and not state.follows(on_disk, case.journal.file.last_seq)):
        lines = counted(reader.withheld, "line with purged text is", "lines with purged text are")
        purged = f" {lines} left out." if reader.withheld else ""
        yield Concern(
            "journal_returned",
            f"{case.name} is not the file that was last in use: it was put back, copied, or written by another "
            f"version.{purged}",
            "`agent-memory compact` rewrites it. Look for memories that were stored since it was copied.",
            case.journal.file.size,
        )


def examine_presence(case: Case) -> Iterator[Concern]:
    """Report journals besides that of memories that were there and are missing."""
    for name in sorted((read_states(case.folder.path) or {}).keys() - {JOURNAL}):
        try:
            check_present(case.folder.path / name)
        except StorageError as error:
            yield Concern("journal_missing", f"{error.message[0].upper()}{error.message[1:]}.", error.recovery)
