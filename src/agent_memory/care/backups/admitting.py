"""`Admission`: what of a backup comes back when it is restored: lines of journals, long texts, pages of topics."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Final

from agent_memory.files.blobs import with_new_names
from agent_memory.files.layout import folder_of
from agent_memory.journal import PurgeList
from agent_memory.journal.format import MalformedLineError, decode_line, encode_line, sealed
from agent_memory.registry import KNOWLEDGE

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping
    from pathlib import Path

_FOOTNOTE: Final = "[^"


class _Everything(frozenset[str]):
    """Claims of a page, whoever worded them."""

    def __contains__(self, _: object) -> bool:
        return True


@dataclass(frozen=True, slots=True)
class Admission:
    """Judges what comes back.

    Attributes:
        admit: Returns a line of a journal, another one, or nothing.
        hide: Returns a text without the words that must not be read any more; None where there are none.
        gone: Ids of the records that do not come back.
    """

    admit: Callable[[bytes], bytes]
    hide: Callable[[str], str] | None
    gone: Collection[str]

    @property
    def is_all(self) -> bool:
        """True if all comes back as it was: nothing was purged."""
        return self.hide is None and not self.gone

    def line(self, line: bytes, renamed: Mapping[str, str]) -> bytes:
        """Return a line of a journal as it comes back; empty where nothing of it does.

        Args:
            line: As it was.
            renamed: By their names, the names of the long texts that lost words.
        """
        line = self.admit(line)
        if not renamed or not any(name.encode() in line for name in renamed):
            return line
        try:
            text = json.dumps(decode_line(line))
        except MalformedLineError:
            return line
        return sealed(encode_line(json.loads(with_new_names(text, renamed))))

    def text(self, content: bytes) -> bytes:
        """Return a long text as it may be read."""
        said = content.decode("utf-8", "surrogateescape")
        hidden = said if self.hide is None else self.hide(said)
        return content if hidden == said else hidden.encode("utf-8", "surrogateescape")

    def page(self, content: bytes) -> bytes | None:
        """Return a page as it may be read; None where nothing stands on it any more."""
        text = content.decode("utf-8", "surrogateescape")
        kept = without_records(text, self.gone)
        kept = kept if self.hide is None else self.hide(kept)
        if _FOOTNOTE in text and _FOOTNOTE not in kept:
            return None
        return content if kept == text else kept.encode("utf-8", "surrogateescape")


EVERYTHING: Final = Admission(lambda line: line, None, ())


def barring(root: Path, agents: Collection[str]) -> Admission:
    """Return what leaves out what was purged from one of these agents.

    Raises:
        StorageError: A list of what was purged, or its key, cannot be read.
    """
    lists = [PurgeList(folder_of(name, root).path) for name in sorted(agents)]
    for purges in lists:
        purges.check_key()

    def admit(line: bytes) -> bytes:
        return reduce(lambda left, each: each.admitted(left) if left else left, lists, line)

    def hide(text: str) -> str:
        return reduce(lambda left, each: each.stretches().hidden(left), lists, text)

    gone = {one for each in lists for purge in each.purges() for one in purge.ids}
    return Admission(admit, hide if any(each.stretches() for each in lists) else None, gone)


def without_records(page: str, gone: Collection[str]) -> str:
    """Return a page without footnotes of deleted items, and without claims that had no others."""
    if _FOOTNOTE not in page or not KNOWLEDGE.is_installed:
        return page
    cut_edited: Callable[[str, Collection[str], Collection[str]], str] = KNOWLEDGE.load("footnotes")
    return cut_edited(page, gone, _Everything())
