"""Notes of a Markdown vault, rendered and parsed. Pure."""

from __future__ import annotations

import hashlib
import json
import re
import unicodedata
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from agent_memory.cli.formats import read_yaml, to_yaml
from agent_memory.errors import ValidationError
from agent_memory.knowledge.passages.sections import find_body
from agent_memory.models import Memory, is_memory_id, is_told
from agent_memory.models.text import remove_invisible

if TYPE_CHECKING:
    from collections.abc import Mapping

SUFFIX: Final = ".md"
EDITED_FIELDS: Final[Mapping[str, str]] = {
    "category": "category",
    "subject": "topic",
    "project": "project",
    "tags": "tags",
    "observed": "observed_at",
    "expires": "expires_at",
    "pinned": "pinned",
}
"""Fields of a note that a person may edit, by the field of a memory."""
_FIXED_FIELDS: Final[Mapping[str, str]] = {
    "created": "timestamp",
    "trust": "trust",
    "origin": "origin",
    "confidence": "confidence",
    "importance": "importance",
    "group": "group",
}
_FIXED: Final = frozenset({*_FIXED_FIELDS, "source", "supersedes", "links"})
"""Fields of a note that stay as they are in the memory."""
_METADATA: Final = "metadata"
_NAMED: Final = frozenset({"id", "kind", *EDITED_FIELDS, *_FIXED, _METADATA})
LOST_FIELDS: Final = "access counts, sessions, places in the scratchpad, undecided conflicts"
"""Parts of a memory that a note omits."""
_MAX_NAME_CHARS: Final = 60
_MAX_NAME_BYTES: Final = 140
"""Bytes of a name: encrypted file systems allow 143 with the suffix."""
_FORBIDDEN: Final = re.compile(r'[\\/:*?"<>|#^\[\]\x00-\x1f\x7f]+')
"""Characters that Windows, macOS or Obsidian refuse in names."""
_RESERVED: Final = re.compile(r"(?:con|prn|aux|nul|com[0-9¹²³]|lpt[0-9¹²³])(?:\..*)?", re.IGNORECASE)
_WIKI_LINK: Final = re.compile(r"\[\[([^\[\]|#]+)(?:[|#][^\[\]]*)?\]\]")
_LISTED_LINK: Final = re.compile(r"(?P<rel>.*?) (?P<target>\[\[[^\[\]]+\]\]|[a-z]{3}-[0-9a-f]{12})")
_ID_IN_LINK: Final = re.compile(r"[a-z]{3}-[0-9a-f]{12}")


@dataclass(frozen=True, slots=True)
class VaultNote:
    """Parsed note of a vault.

    Attributes:
        text: Text below the front matter.
        fields: Values of the front matter by name.
    """

    text: str
    fields: dict[str, Any] = field(default_factory=dict)

    @property
    def memory_id(self) -> str:
        """ID of its memory, or an empty text."""
        note_id = self.fields.get("id")
        return note_id if isinstance(note_id, str) and is_memory_id(note_id) else ""

    @property
    def metadata(self) -> dict[str, Any]:
        """Fields without a place in a memory."""
        nested = self.fields.get(_METADATA)
        personal = {name: value for name, value in self.fields.items() if name not in _NAMED}
        values = {**personal, **(nested if isinstance(nested, dict) else {})}
        plain: dict[str, Any] = json.loads(json.dumps(_name_keys(values), default=str))
        return plain

    def read_values(self) -> dict[str, Any]:
        """Return the editable values by field of a memory."""
        named = {name: self.fields.get(key) for key, name in EDITED_FIELDS.items()}
        defaults = {name: Memory.model_fields[name].get_default(call_default_factory=True) for name in named}
        values = {name: defaults[name] if value is None else value for name, value in named.items()}
        tags = values["tags"]
        words = tags.split(",") if isinstance(tags, str) else tags if isinstance(tags, list) else [tags]
        return {
            **values,
            "tags": [str(word).strip().lstrip("#") for word in words if str(word).strip()],
            "content": self.text,
            "metadata": self.metadata,
        }


def _name_keys(value: Any) -> Any:
    """Return a value of YAML with keys that JSON can have."""
    if isinstance(value, dict):
        plain = (str, int, float, bool, type(None))
        return {key if isinstance(key, plain) else str(key): _name_keys(part) for key, part in value.items()}
    return [_name_keys(part) for part in value] if isinstance(value, list) else value


def hash_note(content: bytes) -> str:
    """Return the checksum of a note's file."""
    return hashlib.sha256(content).hexdigest()


def render_note(memory: Memory, names: Mapping[str, str]) -> str:
    """Return the note of a memory.

    Args:
        memory: Memory of the note.
        names: Names of notes by ID, for links.
    """
    record = memory.to_record()
    source = ": ".join(filter(None, (memory.source.kind, memory.source.detail)))
    links = [f"{link.rel} {_render_link(link.id, names)}" for link in memory.links if is_told(link.rel)]
    metadata = {name: value for name, value in memory.metadata.items() if name not in _NAMED}
    nested = {name: value for name, value in memory.metadata.items() if name in _NAMED}
    fields: dict[str, Any] = {
        "id": memory.id,
        "kind": "memory",
        "category": memory.category,
        **{key: record[name] for key, name in EDITED_FIELDS.items() if name in record and key != "category"},
        "created": record["timestamp"],
        "trust": memory.trust,
        "source": source,
        **{
            key: record[name]
            for key, name in _FIXED_FIELDS.items()
            if name in record and name not in {"timestamp", "trust"}
        },
        **({"supersedes": _render_link(memory.supersedes, names)} if memory.supersedes else {}),
        **({"links": links} if links else {}),
        **metadata,
        **({_METADATA: nested} if nested else {}),
    }
    return f"---\n{to_yaml(fields)}---\n{memory.content}\n"


def _render_link(record_id: str, names: Mapping[str, str]) -> str:
    name = names.get(record_id)
    return f"[[{name}]]" if name is not None else record_id


def parse_note(content: bytes) -> VaultNote:
    """Parse the content of a note's file.

    Raises:
        ValidationError: It is not UTF-8 (`not_text`), or the front matter is not YAML (`damaged_part`).
    """
    try:
        text = content.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError:
        raise ValidationError("Not a text in UTF-8.", code="not_text") from None
    body = find_body(text)
    if not body:
        return VaultNote(text.removesuffix("\n"))
    try:
        fields = read_yaml(text[4:body].rstrip().removesuffix("---"))
    except ValidationError:
        fields = None
    if not isinstance(fields, dict):
        raise ValidationError("The front matter is not YAML.", code="damaged_part")
    return VaultNote(text[body:].removesuffix("\n"), {str(name): value for name, value in fields.items()})


def build_memory(note: VaultNote, memory_id: str, agent_id: str, ids: Mapping[str, str]) -> Memory:
    """Return the memory that a note states.

    Args:
        note: Note of a vault.
        memory_id: ID of the memory.
        agent_id: Agent that receives it.
        ids: IDs by the names of notes, for links.

    Raises:
        pydantic.ValidationError: A value is wrong.
    """
    named = {name: note.fields[key] for key, name in _FIXED_FIELDS.items() if note.fields.get(key) is not None}
    kind, _, detail = str(note.fields.get("source") or "import").partition(": ")
    supersedes = _resolve_link(note.fields.get("supersedes"), ids)
    listed = note.fields.get("links")
    links = [_LISTED_LINK.fullmatch(str(link)) for link in listed] if isinstance(listed, list) else []
    resolved = [(link["rel"], _resolve_link(link["target"], ids)) for link in links if link]
    return Memory.model_validate(
        {
            **note.read_values(),
            **named,
            "id": memory_id,
            "agent_id": agent_id,
            "source": {"kind": kind, "detail": detail},
            "supersedes": supersedes or None,
            "links": [{"rel": rel, "id": target} for rel, target in resolved if target],
        }
    )


def _resolve_link(value: Any, ids: Mapping[str, str]) -> str:
    """Return the ID of a link, or an empty text."""
    text = value if isinstance(value, str) else ""
    link = _WIKI_LINK.search(text)
    if link is not None:
        return ids.get(link[1].strip(), "")
    return text if _ID_IN_LINK.fullmatch(text) else ""


def list_changes(note: VaultNote, memory: Memory, agent_id: str) -> dict[str, Any]:
    """Return the edited fields of a memory with their new values.

    Raises:
        pydantic.ValidationError: A value is wrong.
    """
    values = note.read_values()
    checked = Memory.model_validate({**values, "id": memory.id, "agent_id": agent_id})
    changes = {name: getattr(checked, name) for name in values if getattr(checked, name) != getattr(memory, name)}
    if "content" in changes and changes["content"].strip() == memory.content.replace("\r\n", "\n").strip():
        del changes["content"]  # editors add and remove lines at the ends
    return changes


def list_ignored(note: VaultNote, memory: Memory, names: Mapping[str, str]) -> list[str]:
    """Return the edited fields that stay as they are in the memory."""
    rendered = parse_note(render_note(memory, names).encode()).fields
    return [name for name in sorted(_FIXED) if name in note.fields and note.fields[name] != rendered.get(name)]


def choose_name(text: str, record_id: str, taken: set[str]) -> str:
    """Choose the name of a note's file, without suffix.

    Args:
        text: Text that the name begins like.
        record_id: ID of the record, for a name that is taken.
        taken: Keys of names in the folder (`fold_name`).
    """
    first = next(filter(str.strip, text.split("\n")), "")
    name = clean_name(first)[:_MAX_NAME_CHARS].strip(" .") or "note"
    while len(name.encode()) > _MAX_NAME_BYTES:
        name = name[:-1].rstrip(" .")
    if fold_name(name) in taken:
        name = f"{name[: _MAX_NAME_CHARS - len(record_id)].rstrip(' .')} {record_id}"
    taken.add(fold_name(name))
    return name


def clean_name(text: str) -> str:
    """Return a text as a name for every file system."""
    words = " ".join(_FORBIDDEN.sub(" ", remove_invisible(text).replace("\ufffd", " ")).split()).strip(" .-_*+>~`")
    return f"{words} note" if _RESERVED.fullmatch(words) else words


def fold_name(name: str) -> str:
    """Return the form that equal names of any system share."""
    return unicodedata.normalize("NFC", name).casefold()
