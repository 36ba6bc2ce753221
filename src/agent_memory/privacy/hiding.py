"""`Hiding`: what of a text must not be read any more once some records are purged."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from agent_memory.knowledge.topics.withdrawing import without_items
from agent_memory.privacy.wording import Wording

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable


_ENTRY: Final = re.compile(r"^- .*\n?(?:(?![-#]).*\n?)*?(?=^[-#]|\Z)", re.MULTILINE)
"""An entry of a scratchpad, with all of its lines."""
_ID: Final = re.compile(r"^(?:- |  )id: *['\"]?([\w-]+)", re.MULTILINE)


class _Everything(frozenset[str]):
    """Claims of a page, whoever worded them."""

    def __contains__(self, _: object) -> bool:
        return True


class Hiding:
    """Takes out of texts what was purged.

    Args:
        texts: Words, which are made unreadable wherever they stand.
        record_ids: Of the records: pages lose their footnotes, and the claims that have no others.

    Attributes:
        wording: Finds these words.
        ids: Of the records.
    """

    def __init__(self, texts: Iterable[str], record_ids: Collection[str]) -> None:
        self.wording, self.ids = Wording(texts), frozenset(record_ids)

    def hidden(self, text: str) -> str:
        """Return a text without it."""
        if "[^" in text:
            text = without_items(text, self.ids, _Everything())
        return self.wording.hidden(text)

    def without_entries(self, pad: str) -> str:
        """Return the text of a scratchpad without the entries of these records, however short their words are."""
        return _ENTRY.sub(lambda found: "" if self.ids.intersection(_ID.findall(found[0])) else found[0], pad)
