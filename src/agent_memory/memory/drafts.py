"""Fields of a memory before a write: size, form, expiry, links."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pydantic

from agent_memory.errors import UnknownIdError, ValidationError
from agent_memory.memory.caller import Caller, check_seen
from agent_memory.models import (
    MAX_CONTENT_CHARS,
    MAX_REASON_CHARS,
    MAX_TAGS,
    check_text,
    content_mark,
    is_memory_id,
    is_told,
    rests_on,
)
from agent_memory.models.clock import UtcDatetime
from agent_memory.redaction import quoted

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from agent_memory.models import Link, Observation
    from agent_memory.store.memory_storage import MemoryStorage
    from agent_memory.store.record_redaction import Aim


def get_observed_fields(observation: Observation) -> dict[str, Any]:
    """Return the fields of the memory that an observation would become."""
    return observation.model_dump(exclude={"rule", "cue", "session_id"}, exclude_none=True)


def stamp_fields(
    values: Mapping[str, Any] | str, now: datetime, session_id: str, project: str
) -> Mapping[str, Any] | str:
    """Return the fields of a new memory with its defaults.

    A preference belongs to no project unless the values name one: it is about a person.

    Args:
        values: Fields of the memory, or its content alone.
        now: Time of the memory.
        session_id: Session that stores it.
        project: Project of the session; empty for none.

    Raises:
        ValidationError: The values are neither a text nor a mapping.
    """
    if isinstance(values, str):
        values = {"content": values}
    if not isinstance(values, Mapping):
        raise ValidationError(
            f"Nothing was stored: a memory is a text or a mapping of its fields, got {type(values).__name__}.",
            recovery="Give it as 'Maria likes tea.' or {'content': 'Maria likes tea.', 'tags': ['drinks']}.",
        )
    stamp: dict[str, Any] = {"timestamp": now, "created_by_session": session_id}
    if project and values.get("category") != "preference":
        stamp["project"] = project
    return {**stamp, **values}


def normalize_fields(values: Mapping[str, Any] | str, aim: Aim) -> dict[str, Any]:
    """Return fields of a memory in their normal form.

    Raises:
        ValidationError: The values are not a mapping, too long or too many.
    """
    if not isinstance(values, Mapping):
        raise ValidationError(
            f"Nothing was {aim}: the fields of a memory are a mapping, got {type(values).__name__}.",
            recovery="Give them as in {'content': 'Maria likes tea.'}.",
        )
    normal = dict(values)
    _check_size(normal, aim)
    if isinstance(normal.get("content"), str):
        normal["content"] = normal["content"].replace("\r\n", "\n").strip()
    if isinstance(normal.get("category"), str):
        normal["category"] = normal["category"].strip().lower()
    return normal


def _check_size(values: Mapping[str, Any], aim: Aim) -> None:
    """Refuse too much content or too many tags, before anything costs time."""
    content, tags = values.get("content"), values.get("tags")
    if isinstance(content, str) and len(content) > MAX_CONTENT_CHARS:
        raise ValidationError(
            f"Nothing was {aim}: content has {len(content)} characters, at most {MAX_CONTENT_CHARS} are kept.",
            code="too_long",
            recovery="Store the essence, or several memories.",
        )
    if isinstance(tags, list) and len(tags) > MAX_TAGS:
        raise ValidationError(f"Nothing was {aim}: {len(tags)} tags, at most {MAX_TAGS} are kept.", code="too_many")


def check_expiry(expires_at: object, now: datetime, aim: Aim) -> None:
    """Refuse a time of expiry that has passed.

    Raises:
        ValidationError: It has passed. A value that is not a time is refused with the other fields.
    """
    if expires_at is None:
        return
    try:
        moment = pydantic.TypeAdapter(UtcDatetime).validate_python(expires_at)
    except pydantic.ValidationError:
        return
    if moment <= now:
        raise ValidationError(
            f"Nothing was {aim}: expires_at, {moment:%Y-%m-%d %H:%M} UTC, has passed, so no search would find it.",
            recovery="Give a future date, or leave it out. To remove a memory, forget it.",
        )


def check_reason(reason: str) -> str:
    """Return a reason for forgetting in its normal form.

    Raises:
        ValidationError: It is not a text, or longer than 200 characters.
    """
    if not isinstance(reason, str) or len(reason.strip()) > MAX_REASON_CHARS:
        raise ValidationError(
            f"A reason is a text of at most {MAX_REASON_CHARS} characters; nothing was forgotten.",
            code="invalid_reason",
        )
    try:
        return check_text(" ".join(reason.split()), "the reason")
    except ValueError as error:
        raise ValidationError(f"{error}; nothing was forgotten.", code="invalid_reason") from None


async def check_referred(storage: MemoryStorage, caller: Caller, values: object, aim: Aim) -> None:
    """Refuse fields of a memory that name one of another group.

    Raises:
        UnknownIdError: `supersedes` or a link names one.
    """
    if caller.group is None or not isinstance(values, Mapping):
        return
    await check_seen(storage, caller, [values.get("supersedes")], f" to supersede; nothing was {aim}")
    links = values.get("links")
    ends = [_get_text(link, "id") for link in links] if isinstance(links, list) else []
    await check_seen(storage, caller, ends, f" to link to; nothing was {aim}")


async def mark_links(
    storage: MemoryStorage, values: Mapping[str, Any], aim: Aim, before: Sequence[Link] = ()
) -> Mapping[str, Any]:
    """Return fields whose links have checksums of their sources.

    New content counts as derived from the present texts of the sources, also if the links are unchanged.

    Args:
        storage: Storage of the linked memories.
        values: Fields of a memory; links that are not a list are refused with the other fields.
        aim: "stored" or "changed", for messages.
        before: Links of the memory before the change.

    Raises:
        UnknownIdError: A new link names an unknown memory.
        ValidationError: A new link has a relation that only a comparison or a decision may give.
    """
    links = values.get("links", list(before) if "content" in values else None)
    if not isinstance(links, list) or not links:
        return values
    _check_relations(links, before, aim)
    ends = [_get_text(link, "id") for link in links]
    texts = await storage.texts_of([end for end in ends if is_memory_id(end)])
    allowed = {*texts, *(link.id for link in before)}
    if unknown := [end for end in ends if is_memory_id(end) and end not in allowed]:
        raise UnknownIdError(f"No memory {quoted(unknown[0])} to link to; nothing was {aim}.")
    return {**values, "links": [_mark_link(link, texts) for link in links]}


def keep_own_links(links: Sequence[Any], before: Sequence[Link]) -> list[Any]:
    """Return links with those of comparisons and decisions."""
    named = {_get_text(link, "id") for link in links if not is_told(_get_text(link, "rel"))}
    return [*links, *(link for link in before if not is_told(link.rel) and link.id not in named)]


def _check_relations(links: Sequence[Any], before: Sequence[Link], aim: Aim) -> None:
    existing = {(link.rel, link.id) for link in before}
    for link in links:
        rel = _get_text(link, "rel")
        if rel and not is_told(rel) and (rel, _get_text(link, "id")) not in existing:
            raise ValidationError(
                f"No link can be called {quoted(rel)}: such names are reserved; nothing was {aim}.",
                code="reserved_link",
                recovery="Name the link without a leading `_`.",
            )


def _mark_link(link: Any, texts: Mapping[str, str]) -> Any:
    text = texts.get(_get_text(link, "id"))
    if text is None or not rests_on(_get_text(link, "rel")):
        return link
    return {"rel": _get_text(link, "rel"), "id": _get_text(link, "id"), "said": content_mark(text)}


def _get_text(link: Any, name: str) -> str:
    """Return a text field of a link; empty for other types."""
    value = link.get(name) if isinstance(link, Mapping) else getattr(link, name, None)
    return value if isinstance(value, str) else ""
