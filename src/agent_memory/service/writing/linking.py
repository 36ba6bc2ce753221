"""Links of a memory that is written: that they lead somewhere, and what those said at that time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from agent_memory.errors import UnknownIdError, ValidationError
from agent_memory.models import Link, content_mark, is_memory_id, is_told, rests_on
from agent_memory.redaction import quoted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agent_memory.memories import MemoryStorage
    from agent_memory.storage.cleaning import Aim


async def with_marks(
    storage: MemoryStorage, values: Mapping[str, Any], aim: Aim, before: Sequence[Link] = ()
) -> Mapping[str, Any]:
    """Return fields of a memory whose links to what it is derived from are marked with what that says now.

    New words count as derived from what the sources say now, also where the links stay as they are.

    Args:
        storage: Where the others are.
        values: As given; what is no list of links is refused with the other fields.
        aim: For the error.
        before: The links it has.

    Raises:
        UnknownIdError: There is no memory that a new link names.
        ValidationError: A new link has a relation that only a comparison or a decision may give.
    """
    if not isinstance(values, Mapping):
        return values
    links = values.get("links", list(before) if "content" in values else None)
    if not isinstance(links, list) or not links:
        return values
    _check_relations(links, before, aim)
    ends = [_field(link, "id") for link in links]
    texts = await storage.texts_of([one for one in ends if is_memory_id(one)])
    known = {*texts, *(link.id for link in before)}
    if unknown := [one for one in ends if is_memory_id(one) and one not in known]:
        raise UnknownIdError(f"There is no memory {quoted(unknown[0])} to link to; nothing was {aim}.")
    return {**values, "links": [_marked(link, texts) for link in links]}


def _check_relations(links: Sequence[Any], before: Sequence[Link], aim: Aim) -> None:
    ours = {(link.rel, link.id) for link in before}
    for link in links:
        rel = _field(link, "rel")
        if rel and not is_told(rel) and (rel, _field(link, "id")) not in ours:
            raise ValidationError(
                f"No link can be called {quoted(rel)}: such names tell what is suspect or decided; nothing was {aim}.",
                code="reserved_link",
                recovery="Name the link without a leading `_`.",
            )


def _marked(link: Any, texts: Mapping[str, str]) -> Any:
    text = texts.get(_field(link, "id"))
    if text is None or not rests_on(_field(link, "rel")):
        return link
    return {"rel": _field(link, "rel"), "id": _field(link, "id"), "said": content_mark(text)}


def _field(link: Any, name: str) -> str:
    """Return a field of a link that was given as a mapping or as a `Link`; empty where it is no text."""
    value = link.get(name) if isinstance(link, Mapping) else getattr(link, name, None)
    return value if isinstance(value, str) else ""


def ours_kept(given: Sequence[Any], before: Sequence[Link]) -> list[Any]:
    """Return links as given, with those of ours before that they do not mention: who leaves them out means others."""
    mentioned = {_field(link, "id") for link in given if not is_told(_field(link, "rel"))}
    return [*given, *(link for link in before if not is_told(link.rel) and link.id not in mentioned)]
