"""Words of items that are gone, taken out of a page that a person changed, and nothing else of it. Pure."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from agent_memory.knowledge.topics.escaping import fold, unfold
from agent_memory.knowledge.topics.rendering import EDITED

if TYPE_CHECKING:
    from collections.abc import Collection

_NOTE: Final = re.compile(r"\[\^(\d+)\]: .*? at \d+-\d+, (mem-[0-9a-f]{12})\)")
_REFERENCE: Final = re.compile(r"\[\^(\d+)\]")
_CLAIM: Final = re.compile(r"- (?:\(\d{4}-\d\d-\d\d\) )?(.*?)(?: (?:\[\^\d+\])+)?(?<!\s)\s*")


def without_items(text: str, gone: Collection[str], rendered: Collection[str]) -> str:
    """Return the text of a page without the footnotes of items that are gone, and the claims that had no others.

    A claim whose words are a person's stays without these footnotes: what they quote is theirs.

    Args:
        text: All of a file.
        gone: Ids of the items.
        rendered: The claims as they were rendered, in Markdown: what is none of them, a person wrote.
    """
    lines = fold(text).split("\n")
    notes = {found[1] for line in lines if (found := _NOTE.match(line)) and found[2] in gone}
    if not notes:
        return text
    kept = (_without(line, notes, rendered) for line in lines if not _is_note(line, notes))
    return unfold("\n".join(line for line in kept if line is not None))


def _is_note(line: str, notes: Collection[str]) -> bool:
    found = _NOTE.match(line)
    return found is not None and found[1] in notes


def _without(line: str, notes: Collection[str], rendered: Collection[str]) -> str | None:
    """Return a line without references to these footnotes; None where it says nothing else."""
    named = _REFERENCE.findall(line)
    if not set(named).intersection(notes):
        return line
    claim = _CLAIM.fullmatch(line)
    if claim and set(named) <= set(notes) and not line.rstrip().endswith(EDITED) and claim[1] in rendered:
        return None
    return _REFERENCE.sub(lambda found: "" if found[1] in notes else found[0], line).rstrip()
