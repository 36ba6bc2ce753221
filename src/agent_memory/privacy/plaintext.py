"""Where texts of records stand in plain: every byte of every file of an agent is looked at. Changes nothing.

For thousands of texts at once: their first characters are looked up in a set, at every place of a file. What a text is
compared as is told in `agent_memory.journal.comparing`.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final

from agent_memory.journal.comparing import compared
from agent_memory.privacy.searching import Found, contents_of, texts_of
from agent_memory.privacy.wording import stretches

if TYPE_CHECKING:
    from collections.abc import Iterable

    from agent_memory.files.layout import AgentFolder

_BEGIN: Final = 10
"""Characters that are looked up."""


def standing(folder: AgentFolder, texts: Iterable[str]) -> list[Found]:
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
            found.append(Found(path, member, count))
    return found


def _count(text: str, known: dict[str, set[str]]) -> int:
    begins = known.keys()
    places = [at for at in range(len(text) - _BEGIN + 1) if text[at : at + _BEGIN] in begins]
    return sum(any(text.startswith(one, at) for one in known[text[at : at + _BEGIN]]) for at in places)
