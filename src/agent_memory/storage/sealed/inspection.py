"""Whether segments can be used, and say what the journal says. Changes nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agent_memory.errors import StorageError
from agent_memory.files.concerns import Concern
from agent_memory.files.entries import size_of
from agent_memory.files.wording import counted
from agent_memory.journal import Journal
from agent_memory.segments import list_segments, listed, open_chain
from agent_memory.storage.sealed.opening import chain_of, remove_unused
from agent_memory.storage.sealed.records import SealedRecords
from agent_memory.storage.state import State

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agent_memory.files.layout import AgentFolder

_ANEW = "The next session reads the whole journal, and has them made anew."
_REPAIR = "`agent-memory doctor --repair` removes them."


def of_segments(folder: AgentFolder, replayed: State[Any]) -> Iterator[Concern]:
    """Report how the segments of one kind stand; nothing where there are none.

    Args:
        folder: The agent's.
        replayed: What the journal says, read as a whole.
    """
    kind = replayed.kind
    place = folder.segments(kind.name)
    if not listed(place)[0]:
        return
    try:
        chain = open_chain(place, kind.name)
    except StorageError as error:
        yield Concern(
            "segments_broken", f"The segments cannot be used: {error.message} {_ANEW}", _REPAIR, size_of(place)
        )
        return
    journal = Journal(folder.path / kind.journal, {kind.name})
    if not chain_of(place, kind, journal).segments:
        what = "The journal does not have the place where the segments end: it was put back, or compacted since."
        yield Concern("segments_stale", f"{what} {_ANEW}", size=size_of(place))
        return
    state = State(kind, folder.agent_id, SealedRecords(kind, folder.agent_id, chain))
    state.absorb(journal.poll())
    differing = sum(replayed.get(one) != state.get(one) for one in {*state.records, *replayed.records})
    if differing and journal.watermark[1] == max(replayed.changed_at.values(), default=0):
        what = f"The segments differ from the journal in {counted(differing, kind.name, f'{kind.name}s')}."
        yield Concern("segments_untrue", f"{what} The journal is right.", _REPAIR, size_of(place))
        return
    sealed = counted(len(chain), "record")
    yield Concern(
        "segments",
        f"{sealed} up to change {chain.last_seq:,} are sealed in {counted(len(chain.segments), 'segment')}.",
        size=size_of(place),
    )


def remove_segments(folder: AgentFolder, kind: str) -> None:
    """Remove the segments of one kind; a process that maps them goes on with them."""
    list_segments(folder.segments(kind), [], {})
    remove_unused(folder.segments(kind))
