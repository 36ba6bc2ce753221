"""Text of `scratchpad.yaml`, as a person reads and edits it. No I/O.

Its last lines are comments with the ID and checksum of each rendered entry, and a checksum of the whole text. They show
which entries a person changed. An editor may move them.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import hashlib
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from agent_memory.errors import ValidationError
from agent_memory.models import is_memory_id, to_text, visible

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agent_memory.models import Memory

# Dumped entries never begin a line with '#', so the last such line is ours, wherever a person wrote on. Files of
# earlier versions have the entries in the same line.
_FOOTER: Final = re.compile(r"^# rendered ([0-9a-f]{16})((?: mem-[0-9a-f]{12}:[0-9a-f]{8})*)[ \t\r]*$", re.MULTILINE)
_INDEX: Final = re.compile(r"^#:((?: [A-Za-z0-9_-]{12})+)[ \t\r]*$", re.MULTILINE)
_A_LINE: Final = 7
_ID_BYTES: Final = 6
_HASH_DIGITS: Final = 6
"""Of an entry's checksum: one edit in 16 million would pass for none."""
# Line breaks to YAML that its dumper in pure Python does not quote well enough to read them back.
_ODD_BREAKS: Final = re.compile("[\x85\u2028\u2029]")
_ENTRY: Final = re.compile(r"^(?=- )", re.MULTILINE)  # all other lines of an entry are indented, or empty
_PRIVATE_USE: Final = range(0xE000, 0xF900)
_EDITABLE: Final = ("content", "category", "tags", "pinned")
_HEADER: Final = """\
# What {agent_id} sees at the start of a session, rendered from memories.yaml.
# You may edit it: change a text, add an entry (only "content" is needed), or take an entry out. An entry taken out
# leaves the scratchpad but is not forgotten. Changes are taken over when the agent next looks here.
"""


@dataclass(frozen=True, slots=True)
class PadEdits:
    """Edits of a person."""

    changed: dict[str, dict[str, Any]] = field(default_factory=dict)
    added: list[dict[str, Any]] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.changed or self.added or self.removed)


@dataclass(frozen=True, slots=True)
class RenderedEntry:
    """Entry of the file: fields, lines, and word in the index."""

    item: dict[str, Any]
    text: str
    packed: str


def render_file(entries: Sequence[Memory], agent_id: str, known: dict[str, RenderedEntry] | None = None) -> str:
    """Return the whole file for `entries`.

    Args:
        entries: Entries in their order.
        agent_id: Name of the agent.
        known: Rendered entries of the last call by ID, which are used again; updated by this call.
    """
    known = {} if known is None else known
    items = [_build_item(entry) for entry in entries]
    new = [item for item in items if (rendered := known.get(item["id"])) is None or rendered.item != item]
    known |= {item["id"]: RenderedEntry(item, text, _pack(item)) for item, text in zip(new, _dump(new), strict=True)}
    shown = [known[item["id"]] for item in items]
    for removed_id in known.keys() - {item["id"] for item in items}:
        del known[removed_id]
    body = _HEADER.format(agent_id=agent_id) + ("".join(entry.text for entry in shown) or "[]\n")
    body += "".join(f"#:{line}\n" for line in _build_index(shown))
    return f"{body}# rendered {_hash_text(body)}\n"


def read_edits(text: str) -> PadEdits:
    """Return what a person changed since `text` was rendered.

    Without its last line, missing entries do not count as removed.

    Raises:
        ValidationError: It is not a YAML list of entries, or it ends in the middle of one.
    """
    footer = next(reversed(list(_FOOTER.finditer(text))), None)
    if footer and _hash_text(text[: footer.start()]) == footer[1] and not text[footer.end() :].strip():
        return PadEdits()
    rendered = _read_index(text, footer) if footer else {}
    edits, seen = PadEdits(), set()
    items = parse_entries(text)
    if footer is None and items and items[-1].get("id") is not None and "stored" not in items[-1]:
        # The file is rendered without a sync. What a power cut left of a text must not replace the text.
        raise ValidationError("scratchpad.yaml ends in the middle of an entry.")
    for item in items:
        memory_id = item.get("id")
        if memory_id is None or memory_id in seen:  # a copied entry is a new one
            edits.added.append(_pick_editable(item))
            continue
        seen.add(memory_id)
        if not _hash_item(item).startswith(rendered.get(memory_id, "none")):
            # Fields that a person deleted are removed, too.
            edits.changed[memory_id] = {"tags": [], "pinned": False, **_pick_editable(item)}
    edits.removed.extend(memory_id for memory_id in rendered if memory_id not in seen)
    return edits


def parse_entries(text: str) -> list[dict[str, Any]]:
    """Return the entries of a scratchpad file.

    Raises:
        ValidationError: It is not a YAML list of entries.
    """
    import yaml  # 10 ms that most sessions need not spend at their start

    from agent_memory.files.yaml_loader import load_yaml

    try:
        items = load_yaml(text)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        # The error's own message may quote the file, and this one goes into an event.
        mark = getattr(error, "problem_mark", None)
        where = f"; see line {mark.line + 1}" if mark else ""
        raise ValidationError(f"scratchpad.yaml is no YAML any more{where}.") from None
    items = items or []
    if not isinstance(items, list) or not all(isinstance(item, dict) and "content" in item for item in items):
        raise ValidationError("scratchpad.yaml is no list of entries with a content any more.")
    for number, item in enumerate(items, start=1):
        if item.get("id") is not None and not is_memory_id(item["id"]):
            raise ValidationError(f"scratchpad.yaml has something that is no id as the id of entry {number}.")
    return items


def _pick_editable(item: dict[str, Any]) -> dict[str, Any]:
    return {key: item[key] for key in _EDITABLE if key in item}


def _build_item(entry: Memory) -> dict[str, Any]:
    item: dict[str, Any] = {"id": entry.id, "content": entry.content, "category": entry.category}
    if entry.tags:
        item["tags"] = list(entry.tags)
    if entry.pinned:
        item["pinned"] = True
    return {**item, "stored": to_text(entry.timestamp)}


def _dump(items: list[dict[str, Any]]) -> list[str]:
    """Return the lines of each entry."""
    if not items:
        return []
    import yaml

    class Dumper(getattr(yaml, "CSafeDumper", yaml.SafeDumper)):  # type: ignore[misc]
        pass

    stands_for = _choose_stand_ins(items)
    encode = str.maketrans(stands_for)
    decode = str.maketrans({ord(stand_in): emoji for emoji, stand_in in stands_for.items()})

    def represent_text(dumper: Any, text: str) -> Any:
        style = '"' if _ODD_BREAKS.search(text) else None
        return dumper.represent_scalar("tag:yaml.org,2002:str", text.translate(encode), style=style)

    Dumper.add_representer(str, represent_text)
    text = str(yaml.dump(items, Dumper=Dumper, allow_unicode=True, sort_keys=False, width=100)).translate(decode)
    return _ENTRY.split(text)[1:]


def _choose_stand_ins(items: list[dict[str, Any]]) -> dict[str, str]:
    """Return an unused private-use character for each emoji, which libyaml would escape."""
    texts = [text for item in items for text in (item["content"], *item.get("tags", ()))]
    used = set().union(*texts)
    emoji = sorted(character for character in used if character > "\uffff" and visible(character))
    unused = (character for character in map(chr, _PRIVATE_USE) if character not in used)
    return dict(zip(emoji, unused, strict=False))


def _pack(item: dict[str, Any]) -> str:
    packed = bytes.fromhex(item["id"].removeprefix("mem-") + _hash_item(item)[:_HASH_DIGITS])
    return base64.urlsafe_b64encode(packed).decode()


def _build_index(shown: list[RenderedEntry]) -> list[str]:
    """Return the lines of the index without their first characters."""
    words = [f" {entry.packed}" for entry in shown]
    return ["".join(words[start : start + _A_LINE]) for start in range(0, len(words), _A_LINE)]


def _read_index(text: str, footer: re.Match[str]) -> dict[str, str]:
    """Return the beginning of each rendered entry's checksum by ID."""
    known = dict(pair.split(":") for pair in footer[2].split())
    for line in _INDEX.findall(text):
        for word in line.split():
            with contextlib.suppress(binascii.Error):
                digits = base64.urlsafe_b64decode(word).hex()
                known[f"mem-{digits[: 2 * _ID_BYTES]}"] = digits[2 * _ID_BYTES :]
    return known


def _hash_item(item: dict[str, Any]) -> str:
    shown = repr([item.get("content"), item.get("category"), item.get("tags") or [], item.get("pinned") or False])
    return hashlib.sha256(shown.encode("utf-8", "backslashreplace")).hexdigest()


def _hash_text(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()[:16]
