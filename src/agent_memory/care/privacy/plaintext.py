"""Where texts of records stand in plain: every byte of every file of an agent is looked at. Changes nothing.

For thousands of texts at once: their first characters are looked up in a set, at every place of a file. What a text is
compared as is told in `agent_memory.journal.comparing`.
"""

from __future__ import annotations

import re
from collections import defaultdict
from typing import TYPE_CHECKING, Any, Final

from agent_memory.care.privacy.searching import FileWithWords, contents_of, texts_of
from agent_memory.care.privacy.wording import stretches
from agent_memory.journal.comparing import can_be_told, compared
from agent_memory.journal.reader import JournalReader
from agent_memory.memory.events import read_audit

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from agent_memory.files.layout import AgentFolder

_BEGIN: Final = 10
"""Characters that are looked up."""
_LABELS: Final = (
    *("title", "name", "description", "aliases", "attributes", "speaker", "event_type"),
    *("tags", "metadata", "project", "topic", "group", "source"),
)
"""The fields that say something of a record, beside its text."""
_READABLE: Final = re.compile(r"[a-z]{2,16}-[0-9a-f]{12,}|\d{4}-\d\d-\d\dT[\d:.]+(?:Z|[+-]\d\d:\d\d)")
"""Ids and times, which stay readable."""


def labels_in(folder: AgentFolder) -> set[str]:
    """Return what records are called and labelled with, if it can be told: titles, names, tags, metadata and its keys.

    Without what stays readable in files that are encrypted: ids, times, names of sessions and of the agent.

    Raises:
        StorageError: A journal cannot be read.
    """
    readable = {folder.agent_id, *(str(event.get("session_id")) for event in read_audit(folder.audit))}
    found = {
        label
        for journal in folder.journals()
        for entry in JournalReader(journal).poll().entries
        for change in entry.changes
        if change.op != "delete"
        for name in _LABELS
        for label in _strings(change.data.get(name))
    }
    return {one for one in found if can_be_told(one) and one not in readable and not _READABLE.fullmatch(one)}


def _strings(value: Any) -> Iterator[str]:
    """Yield every text in a value of JSON, keys too."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for one in value:
            yield from _strings(one)
    elif isinstance(value, dict):
        for key, one in value.items():
            yield key
            yield from _strings(one)


def standing(folder: AgentFolder, texts: Iterable[str]) -> list[FileWithWords]:
    """Return the files of an agent, and of our backups of it, in which one of these texts stands in plain.

    Args:
        folder: The agent's.
        texts: What is looked for; those too short to be told from others are not.

    Raises:
        OSError: A file cannot be read.
    """
    known: defaultdict[str, set[str]] = defaultdict(set)
    for text in texts:
        for stretch in stretches(text):
            known[stretch[:_BEGIN]].add(stretch)
    if not known:
        return []
    found = []
    for path, member, content in contents_of(folder):
        count = sum(_count(compared(text), known) for text in texts_of(content))
        if count:
            found.append(FileWithWords(path, member, count))
    return found


def _count(text: str, known: dict[str, set[str]]) -> int:
    begins = known.keys()
    places = [at for at in range(len(text) - _BEGIN + 1) if text[at : at + _BEGIN] in begins]
    return sum(any(text.startswith(one, at) for one in known[text[at : at + _BEGIN]]) for at in places)
