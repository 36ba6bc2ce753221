"""What is to be purged: all that the files of an agent ever said of some records, and who else says the same."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from agent_memory.journal import texts_in
from agent_memory.journal.reader import JournalReader
from agent_memory.models.text import folded_text

if TYPE_CHECKING:
    from collections.abc import Collection

    from agent_memory.files.layout import AgentFolder


@dataclass(frozen=True, slots=True)
class Gathered:
    """What was found of some records.

    Attributes:
        ids: Those that any journal names as its own.
        texts: Every text that they ever had, in the order of writing.
        journals: In which they stand.
    """

    ids: frozenset[str]
    texts: tuple[str, ...]
    journals: tuple[Path, ...]


def gather(folder: AgentFolder, record_ids: Collection[str]) -> Gathered:
    """Return all that the journals know of some records. Blocking; reads each journal whole.

    Raises:
        StorageError: One cannot be read.
    """
    wanted = set(record_ids)
    named = [one.encode("utf-8", "surrogatepass") for one in wanted]
    known, texts, journals = set[str](), dict[str, None](), list[Path]()
    for journal in folder.journals():
        changes = [change for entry in JournalReader(journal, named).poll().entries for change in entry.changes]
        own = [change for change in changes if change.id in wanted]
        if own:
            journals.append(journal)
        known |= {change.id for change in own}
        for change in own:
            texts |= dict.fromkeys(texts_in(change.data))
    return Gathered(frozenset(known), tuple(texts), tuple(journals))


def others_saying(folder: AgentFolder, texts: Collection[str], but: Collection[str]) -> set[str]:
    """Return the other records that ever said one of these texts and nothing else.

    Raises:
        StorageError: A journal cannot be read.
    """
    wanted = {folded_text(text) for text in texts}
    changes = (
        change
        for journal in folder.journals()
        for entry in JournalReader(journal).poll().entries
        for change in entry.changes
        if change.id not in but
    )
    return {each.id for each in changes if any(folded_text(text) in wanted for text in texts_in(each.data))}
