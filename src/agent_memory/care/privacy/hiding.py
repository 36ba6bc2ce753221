"""`Hiding`: what of a text must not be read any more once some records are purged."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from agent_memory.care.backups.admitting import without_records
from agent_memory.care.privacy.wording import Wording
from agent_memory.files.blobs import with_new_names
from agent_memory.journal.stretches import Stretches

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable


_ENTRY: Final = re.compile(r"^- .*\n?(?:(?![-#]).*\n?)*?(?=^[-#]|\Z)", re.MULTILINE)
"""An entry of a scratchpad, with all of its lines."""
_ID: Final = re.compile(r"^(?:- |  )id: *['\"]?([\w-]+)", re.MULTILINE)


class Hiding:
    """Takes out of texts what was purged.

    Args:
        texts: Words, which are made unreadable wherever they stand.
        record_ids: Of the records: pages lose their footnotes, and the claims that have no others.
        stretches: Finds the same words with other signs between them, also where the texts are not known any more.

    Attributes:
        wording: Finds these words.
        ids: Of the records.
        renamed: By their names, the names of the long texts that lost some.
    """

    def __init__(self, texts: Iterable[str], record_ids: Collection[str], stretches: Stretches | None = None) -> None:
        self.wording, self.ids = Wording(texts), frozenset(record_ids)
        self._stretches = stretches or Stretches()
        self.renamed: dict[str, str] = {}

    def hidden(self, text: str) -> str:
        """Return a text without it."""
        text = with_new_names(without_records(text, self.ids), self.renamed)
        return self._stretches.hidden(self.wording.hidden(text))

    def without_entries(self, pad: str) -> str:
        """Return the text of a scratchpad without the entries of these records, however short their words are."""
        return _ENTRY.sub(lambda found: "" if self.ids.intersection(_ID.findall(found[0])) else found[0], pad)
