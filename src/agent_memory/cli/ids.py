"""Which memory a word on the command line means: an id, or the beginning of exactly one."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from agent_memory.cli.text import one_line
from agent_memory.errors import UnknownIdError, ValidationError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from agent_memory.service import MemoryService

_WHOLE: Final = re.compile(r"mem-[0-9a-f]{12}")
_BEGINNING: Final = re.compile(r"(?:mem-)?([0-9a-f]{1,12})")
_SHOWN: Final = 10
_TEXT_CHARS: Final = 50


async def resolved(service: MemoryService, words: Sequence[str]) -> list[str]:
    """Return the ids that `words` mean, each once, in their order. A whole id is not looked up.

    Raises:
        UnknownIdError: No id begins like this.
        ValidationError: Several do; names them.
        StorageError: The memories cannot be read.
    """
    if all(_WHOLE.fullmatch(word) for word in words):
        return list(dict.fromkeys(words))
    texts = {memory.id: memory.content for memory in await service.admin.everything()}
    return list(dict.fromkeys(one_of(word, texts) for word in words))


def one_of(word: str, texts: Mapping[str, str]) -> str:
    """Return the one id of `texts` that begins with `word`, `mem-` given or not; see `resolved`."""
    if _WHOLE.fullmatch(word):
        return word
    beginning = _BEGINNING.fullmatch(word.lower())
    found = [each for each in texts if beginning and each.startswith(f"mem-{beginning[1]}")]
    if not found:
        raise UnknownIdError(f"There is no memory {word[:40]!r}.")
    if len(found) == 1:
        return found[0]
    listed = [f"  {each}  {one_line(texts[each])[:_TEXT_CHARS]}" for each in found[:_SHOWN]]
    more = [f"  … and {len(found) - _SHOWN} more"] if len(found) > _SHOWN else []
    raise ValidationError(
        f"{len(found)} ids begin with {word!r}.",
        code="ambiguous_id",
        recovery="\n".join(["Say more of the one you mean:", *listed, *more]),
    )
