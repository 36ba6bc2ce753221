"""Front matter of a document: its id, date, tags, aliases and type, as far as they can be read."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Any, Final

from agent_memory.knowledge.passages.structure import find_body
from agent_memory.models import as_utc
from agent_memory.models.record import MAX_TAG_CHARS, MAX_TAGS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_MOST_CHARS: Final = 16_384
"""Characters of front matter that are parsed: a longer one is not read."""
_MOST_VALUE: Final = 300
_DATES: Final = ("date", "created")


@dataclass(frozen=True, slots=True)
class FrontMatter:
    """What the front matter of a document says.

    Attributes:
        document_id: `id`, which names the document wherever its file is.
        written_at: `date`, else `created`.
        tags, aliases: Words and other names of the document.
        document_type: `type`.
    """

    document_id: str = ""
    written_at: datetime | None = None
    tags: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    document_type: str = ""

    @property
    def metadata(self) -> dict[str, Any]:
        """Return what the metadata of a resource says of it."""
        values: dict[str, Any] = {
            "document_id": self.document_id,
            "aliases": list(self.aliases),
            "type": self.document_type,
        }
        return {name: value for name, value in values.items() if value}


def read_front_matter(text: str) -> FrontMatter:
    """Return the front matter of a text; an empty one if there is none or it cannot be read."""
    text = text[: _MOST_CHARS + 8].replace("\r\n", "\n").removeprefix("\ufeff")
    end = find_body(text)
    values = _load(text[4:end].rstrip().removesuffix("---")) if end else {}
    moments = (_read_moment(values.get(name)) for name in _DATES)
    return FrontMatter(
        next(_read_texts(values.get("id")), ""),
        next((moment for moment in moments if moment is not None), None),
        tuple(tag[:MAX_TAG_CHARS] for tag in _read_texts(values.get("tags")))[:MAX_TAGS],
        tuple(_read_texts(values.get("aliases")))[:MAX_TAGS],
        next(_read_texts(values.get("type")), ""),
    )


def _load(text: str) -> Mapping[str, Any]:
    import yaml  # 15 ms, only for a document with front matter

    from agent_memory.files.yaml_loader import load_yaml

    try:
        values = load_yaml(text)
    except (yaml.YAMLError, ValueError, RecursionError):  # a person's file: the document counts without it
        return {}
    return values if isinstance(values, dict) else {}


def _read_texts(value: Any) -> Iterator[str]:
    """Yield the words of a value: of a list each, of a text its parts between commas."""
    for part in value if isinstance(value, list) else str(value).split(",") if isinstance(value, str) else [value]:
        if isinstance(part, str | int | float | date) and not isinstance(part, bool):
            word = " ".join(str(part).split()).strip().lstrip("#")[:_MOST_VALUE]
            if word:
                yield word


def _read_moment(value: Any) -> datetime | None:
    try:
        if isinstance(value, datetime):
            return as_utc(value if value.tzinfo else value.replace(tzinfo=UTC))
        if isinstance(value, date):
            return datetime(value.year, value.month, value.day, tzinfo=UTC)
        if isinstance(value, str) and value.strip():
            return as_utc(datetime.fromisoformat(value.strip()))
    except (ValueError, OverflowError):
        return None
    return None
