"""Documents by path, ID and text: front matter, versions, copies, missing files."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from agent_memory.knowledge.passages.sections import find_body
from agent_memory.models import RESOURCE, as_utc, derived_id
from agent_memory.models.record import MAX_TAG_CHARS, MAX_TAGS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from agent_memory.models import Resource

_MOST_CHARS: Final = 16_384
"""Characters of front matter that are parsed: a longer one is not read."""
_MOST_VALUE: Final = 300
_DATES: Final = ("date", "created")
PATH: Final = "path"
"""Key of the metadata that has the absolute path of a document, of a resource and its passages."""
PATH_ID: Final = "path_id"
"""Key of the metadata that has a checksum of the path."""
PATH_PARTS: Final = "path_parts"
"""Key of the metadata that has the names in the path: the redactor may take two names with `/` for a password."""
DOCUMENT_ID: Final = "document_id"
PROJECT: Final = "project"
COPY_OF: Final = "copy_of"
"""Key of the metadata that has the resource with the same text, if its file also exists."""
MAYBE_VERSION_OF: Final = "maybe_version_of"
"""Key of the metadata that has a resource with the same front-matter id, or with the same file name and no path."""
MISSING_SINCE: Final = "missing_since"
"""Key of the metadata that has the time at which the file of a document was first missing."""
_LEAST_SHARED: Final = 0.5
"""Share of the lines of a file that a resource without a path has, before the file may be its new version."""


@dataclass(frozen=True, slots=True)
class AlikeDocument:
    """A current document that a file resembles and does not replace.

    Attributes:
        key: `COPY_OF` or `MAYBE_VERSION_OF`.
        resource_id: ID of the document.
    """

    key: str
    resource_id: str


@dataclass(frozen=True, slots=True)
class FrontMatter:
    """Front matter of a document.

    Attributes:
        document_id: `id`, which names the document wherever its file is.
        written_at: `date`, else `created`.
        tags, aliases: Words and other names of the document.
        document_type: Value of `type`.
    """

    document_id: str = ""
    written_at: datetime | None = None
    tags: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    document_type: str = ""

    @property
    def metadata(self) -> dict[str, Any]:
        """Metadata for a resource."""
        values: dict[str, Any] = {
            "document_id": self.document_id,
            "aliases": list(self.aliases),
            "type": self.document_type,
        }
        return {name: value for name, value in values.items() if value}


def read_front_matter(text: str) -> FrontMatter:
    """Return the front matter of a text, empty if missing or unreadable."""
    text = text[: _MOST_CHARS + 8].replace("\r\n", "\n").removeprefix("\ufeff")
    end = find_body(text)
    values = _load(text[4:end].rstrip().removesuffix("---")) if end else {}
    moments = (_read_moment(values.get(name)) for name in _DATES)
    return FrontMatter(
        next(_read_texts(values.get("id")), ""),
        next((moment for moment in moments if moment is not None), None),
        tuple(tag[:MAX_TAG_CHARS] for tag in _read_texts(values.get("tags") or values.get("tag")))[:MAX_TAGS],
        tuple(_read_texts(values.get("aliases") or values.get("alias")))[:MAX_TAGS],
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
    """Yield the words of a list or of a text with commas."""
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


class DocumentIndex:
    """Current documents by path, front-matter id and text.

    Args:
        resources: Current resources of an agent.
    """

    def __init__(self, resources: Iterable[Resource]) -> None:
        self._by_id: dict[tuple[str, ...], dict[str, Resource]] = {}
        self._by_path: dict[tuple[str, ...], Resource] = {}
        self._by_text: dict[tuple[str, ...], dict[str, Resource]] = {}
        self._unplaced: dict[tuple[str, ...], dict[str, Resource]] = {}
        self._known: dict[str, Resource] = {}
        for resource in resources:
            self.add(resource)

    def add(self, resource: Resource) -> None:
        """Add a current resource, or replace it by its present state."""
        self.drop(resource)
        self._known[resource.id] = resource
        area = _get_area(resource)
        self._by_text.setdefault(_get_text_key(resource), {})[resource.id] = resource
        self._by_id.setdefault((*area, _get_document_id(resource)), {})[resource.id] = resource
        if path_id := get_path_id(resource):
            self._by_path[(*area, path_id)] = resource
        elif resource.source.kind == "import" and resource.resource_type != "conversation":
            self._unplaced.setdefault((*area, resource.source.detail), {})[resource.id] = resource

    def drop(self, resource: Resource) -> None:
        """Remove a resource that is not current any more."""
        current = self._known.pop(resource.id, None)
        if current is None:
            return
        area = _get_area(current)
        self._by_text[_get_text_key(current)].pop(current.id, None)
        self._by_id[(*area, _get_document_id(current))].pop(current.id, None)
        self._unplaced.get((*area, current.source.detail), {}).pop(current.id, None)
        path_key = (*area, get_path_id(current))
        if path_key in self._by_path and self._by_path[path_key].id == current.id:
            del self._by_path[path_key]

    def find(self, draft: Resource) -> Resource | None:
        """Return the current resource at the path of a draft, or None.

        A file with another front-matter id is another document.
        """
        current = self._by_path.get((*_get_area(draft), get_path_id(draft)))
        document_ids = set() if current is None else {_get_document_id(current), _get_document_id(draft)} - {""}
        return None if len(document_ids) > 1 else current

    def list_same_id(self, draft: Resource) -> list[Resource]:
        """Return the current resources with the front-matter id of a draft."""
        document_id = _get_document_id(draft)
        return list(self._by_id.get((*_get_area(draft), document_id), {}).values()) if document_id else []

    def list_same_text(self, draft: Resource) -> list[Resource]:
        """Return the current resources with the text of a draft."""
        return list(self._by_text.get(_get_text_key(draft), {}).values())

    def find_unplaced(self, draft: Resource) -> Resource | None:
        """Return a resource without a path that a file resembles, or None.

        It has the name of the file, no other has, and at least half of the file's lines are in it.
        """
        candidates = list(self._unplaced.get((*_get_area(draft), draft.source.detail), {}).values())
        if len(candidates) != 1:
            return None
        lines, older = _get_lines(draft.content), set(_get_lines(candidates[0].content))
        return candidates[0] if sum(line in older for line in lines) >= _LEAST_SHARED * len(lines) else None


def describe_path(path: str) -> dict[str, Any]:
    """Return metadata of a file; its path begins with `~` at home."""
    shown = Path(path)
    with contextlib.suppress(ValueError, RuntimeError):  # it is elsewhere, or no home folder is known
        shown = Path("~", shown.relative_to(Path.home().resolve()))
    return {PATH: str(shown), PATH_ID: derived_id("pth-", path), PATH_PARTS: list(shown.parts)}


def get_path(resource: Resource) -> str:
    """Return the redacted path of a resource's file, or ""."""
    path = resource.metadata.get(PATH)
    return path if isinstance(path, str) else ""


def get_path_id(resource: Resource) -> str:
    """Return the checksum of a resource's path, or ""."""
    path_id = resource.metadata.get(PATH_ID)
    return path_id if isinstance(path_id, str) else ""


def is_at(resource: Resource, path: str) -> bool:
    """Return True if the file of a resource has this absolute path."""
    return resource.metadata.get(PATH_ID) == derived_id("pth-", path)


def has_same_text(resource: Resource, draft: Resource) -> bool:
    """Return True if two resources have the same whole text."""
    return (RESOURCE.text_of(resource), resource.blob) == (RESOURCE.text_of(draft), draft.blob)


def is_placed(resource: Resource) -> bool:
    """Return True if the file of a resource exists or is unknown."""
    path = get_real_path(resource)
    return bool(get_path(resource)) and (path is None or path.exists())


def get_real_path(resource: Resource) -> Path | None:
    """Return the path of the file of a resource, None if unknown."""
    parts = resource.metadata.get(PATH_PARTS)
    if not isinstance(parts, list) or not parts:
        return None
    path = Path(*map(str, parts))
    with contextlib.suppress(ValueError, RuntimeError):
        path = Path(Path.home().resolve(), path.relative_to("~"))
    return path if is_at(resource, str(path)) else None


def without_key(metadata: Mapping[str, Any], *keys: str) -> dict[str, Any]:
    """Return metadata without some keys."""
    return {key: value for key, value in metadata.items() if key not in keys}


def _get_document_id(resource: Resource) -> str:
    return str(resource.metadata.get(DOCUMENT_ID, ""))


def _get_area(resource: Resource) -> tuple[str, ...]:
    return resource.resource_type, resource.group, str(resource.metadata.get(PROJECT, ""))


def _get_text_key(resource: Resource) -> tuple[str, ...]:
    return *_get_area(resource), resource.blob or resource.content


def _get_lines(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.strip()]
