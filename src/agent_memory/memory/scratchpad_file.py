"""Text of `scratchpad.yaml`, as a person reads and edits it. No I/O.

Its last lines are comments with the ID and checksum of each rendered entry, and a checksum of the whole text. They show
which entries a person changed. An editor may move them.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import hashlib
import os
import re
import secrets
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from agent_memory.encryption import is_encrypted, key_for
from agent_memory.errors import BusyError, ValidationError
from agent_memory.files.atomic import make_private_folder, read_signature, replace_file, translated
from agent_memory.files.concerns import Concern
from agent_memory.files.entries import get_disk_size, list_names
from agent_memory.files.exchange import put_file_in_place, read_settled, set_aside
from agent_memory.files.names import STAMP, classify_name, get_aside_path, parse_moment
from agent_memory.files.wording import counted
from agent_memory.late import compile_late
from agent_memory.models import is_memory_id, to_text, visible
from agent_memory.redaction import Redactor, SecretRedactor

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime
    from pathlib import Path

    from agent_memory.models import Clock, Memory


# Dumped entries never begin a line with '#', so the last such line is ours, wherever a person wrote on. Files of
# earlier versions have the entries in the same line.
_FOOTER: Final = compile_late(r"^# rendered ([0-9a-f]{16})((?: mem-[0-9a-f]{12}:[0-9a-f]{8})*)[ \t\r]*$", re.MULTILINE)
_INDEX: Final = compile_late(r"^#:((?: [A-Za-z0-9_-]{12})+)[ \t\r]*$", re.MULTILINE)
_A_LINE: Final = 7
_ID_BYTES: Final = 6
_HASH_DIGITS: Final = 6
"""Of an entry's checksum: one edit in 16 million would pass for none."""
# Line breaks to YAML that its dumper in pure Python does not quote well enough to read them back.
_ODD_BREAKS: Final = compile_late("[\x85\u2028\u2029]")
_ENTRY: Final = compile_late(r"^(?=- )", re.MULTILINE)  # all other lines of an entry are indented, or empty
_PRIVATE_USE: Final = range(0xE000, 0xF900)
_EDITABLE: Final = ("content", "category", "tags", "pinned")
_HEADER: Final = """\
# What {agent_id} sees at the start of a session, rendered from memories.yaml.
# You may edit it: change a text, add an entry (only "content" is needed), or take an entry out. An entry taken out
# leaves the scratchpad but is not forgotten. Changes are taken over when the agent next looks here.
"""
MAX_BYTES: Final = 4 * 1024 * 1024
"""Size of a file that is read. A hundred of the longest entries take a quarter of it."""
KEPT: Final = timedelta(days=30)
"""Time for which a copy of refused edits stays, equal to that of deleted memories in the journal."""
_REDACTED_AT_ONCE: Final = 20_000
"""Characters; shorter entries are not split."""


@dataclass(frozen=True, slots=True)
class PadEdits:
    """Edits of a person.

    Attributes:
        changed: New values of rendered entries, by ID.
        added: Values of new entries.
        removed: IDs of rendered entries that are missing.
        rendered: Beginning of each rendered entry's checksum, by ID.
    """

    changed: dict[str, dict[str, Any]] = field(default_factory=dict)
    added: list[dict[str, Any]] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    rendered: dict[str, str] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.changed or self.added or self.removed)

    def is_stale(self, memory_id: str, versions: Sequence[str]) -> bool:
        """Return True if a memory was changed after its entry was rendered.

        Not if it has the edited values already. Without the comments of the file, an entry with the values of an
        earlier version is stale.

        Args:
            memory_id: ID of a changed entry.
            versions: Checksums of the memory's versions, the current one last.
        """
        edited, base = _hash_item(self.changed[memory_id]), self.rendered.get(memory_id)
        if edited == versions[-1]:
            return False
        return edited in versions if base is None else not versions[-1].startswith(base)


@dataclass(frozen=True, slots=True)
class RenderedEntry:
    """Entry of the file: fields, lines, and word in the index."""

    item: dict[str, Any]
    text: str
    packed: str


def render_file(entries: Sequence[Memory], agent_id: str, cache: dict[str, RenderedEntry] | None = None) -> str:
    """Return the whole file for `entries`.

    Args:
        entries: Entries in their order.
        agent_id: Name of the agent.
        cache: Rendered entries of the last call by ID; updated by this call.
    """
    cache = {} if cache is None else cache
    items = [_build_item(entry) for entry in entries]
    new = [item for item in items if (rendered := cache.get(item["id"])) is None or rendered.item != item]
    cache |= {
        item["id"]: RenderedEntry(item, text, _pack(item)) for item, text in zip(new, _dump_items(new), strict=True)
    }
    shown = [cache[item["id"]] for item in items]
    for removed_id in cache.keys() - {item["id"] for item in items}:
        del cache[removed_id]
    body = _HEADER.format(agent_id=agent_id) + ("".join(entry.text for entry in shown) or "[]\n")
    body += "".join(f"#:{line}\n" for line in _build_index(shown))
    return f"{body}# rendered {_hash_text(body)}\n"


def read_edits(text: str) -> PadEdits:
    """Return the edits of a text since it was rendered.

    Without its last line, missing entries do not count as removed.

    Raises:
        ValidationError: It is not a YAML list of entries, or it ends in the middle of one.
    """
    footer = next(reversed(list(_FOOTER.finditer(text))), None)
    if footer and _hash_text(text[: footer.start()]) == footer[1] and not text[footer.end() :].strip():
        return PadEdits()
    rendered = _read_index(text, footer) if footer else {}
    edits, seen = PadEdits(rendered=rendered), set()
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
        raise ValidationError(f"scratchpad.yaml is no longer YAML{where}.") from None
    items = items or []
    if not isinstance(items, list) or not all(isinstance(item, dict) and "content" in item for item in items):
        raise ValidationError("scratchpad.yaml is no longer a list of entries with a content.")
    for number, item in enumerate(items, start=1):
        if item.get("id") is not None and not is_memory_id(item["id"]):
            raise ValidationError(f"The ID of entry {number} in scratchpad.yaml is not valid.")
    return items


def _pick_editable(item: dict[str, Any]) -> dict[str, Any]:
    return {key: item[key] for key in _EDITABLE if key in item}


def hash_memory(memory: Memory) -> str:
    """Return the checksum of what the file shows of a memory."""
    return _hash_item(_build_item(memory))


def _build_item(entry: Memory) -> dict[str, Any]:
    item: dict[str, Any] = {"id": entry.id, "content": entry.content, "category": entry.category}
    if entry.tags:
        item["tags"] = list(entry.tags)
    if entry.pinned:
        item["pinned"] = True
    item["stored"] = to_text(entry.timestamp)
    return {**item, "project": entry.project} if entry.project else item


def _dump_items(items: list[dict[str, Any]]) -> list[str]:
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
    checksums = dict(pair.split(":") for pair in footer[2].split())
    for word in " ".join(_INDEX.findall(text)).split():
        with contextlib.suppress(binascii.Error):
            digits = base64.urlsafe_b64decode(word).hex()
            checksums[f"mem-{digits[: 2 * _ID_BYTES]}"] = digits[2 * _ID_BYTES :]
    return checksums


def _hash_item(item: dict[str, Any]) -> str:
    shown = repr([item.get("content"), item.get("category"), item.get("tags") or [], item.get("pinned") or False])
    return hashlib.sha256(shown.encode("utf-8", "backslashreplace")).hexdigest()


def _hash_text(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class PadSave:
    """A file that a person saved.

    Attributes:
        path: Path of the file.
        content: Content of the file.
        changed_at: Time of the save, in seconds since 1970.
        edits: Edits since the rendering.
        problem: Why it is not a scratchpad, or None.
    """

    path: Path
    content: bytes
    changed_at: float
    edits: PadEdits
    problem: ValidationError | None = None

    @property
    def has_edits(self) -> bool:
        """True if there are edits to apply or to refuse."""
        return self.problem is not None or bool(self.edits)


@dataclass(frozen=True, slots=True)
class FolderLook:
    """Saves to apply, oldest first, and the content of the file."""

    saves: tuple[PadSave, ...] = ()
    content: bytes | None = None


class PadFile:
    """scratchpad.yaml of one agent.

    Args:
        path: Path of the file.
        clock: Source of the present, for the names of copies.
        redactor: Removes secrets from copies of refused edits; the built-in one if omitted.
        patience: Seconds to wait for a program that is writing the file.

    Attributes:
        rendered: Signature of the file as this object rendered it last; None before.
    """

    def __init__(self, path: Path, clock: Clock, redactor: Redactor | None = None, *, patience: float = 0.5) -> None:
        self.path = path
        self._clock = clock
        self._redactor = redactor or SecretRedactor()
        self._patience = patience
        self.rendered: tuple[int, int, int] | None = None

    def look(self, *, patience: float | None = None, remove: bool = False) -> FolderLook:
        """Return saves with edits that were not applied.

        Args:
            patience: Seconds to wait for a program that is writing; that of the object if omitted.
            remove: True to delete replaced files without edits, and expired copies. The caller must hold the lock: a
                new rendering has such a name, too.

        Raises:
            BusyError: A program is writing the file at this moment.
            StorageError: The file is there but cannot be read.
        """
        saves: list[PadSave] = []
        if remove:
            self.remove_expired()
        with translated(self.path, "read"):
            for old in self._list_replaced():
                # Another process is faster, or one still writes.
                with contextlib.suppress(FileNotFoundError, BusyError):
                    save = self._read(old, patience)
                    if save.has_edits:
                        saves.append(save)
                    elif remove:
                        old.unlink()
            try:
                current = self._read(self.path, patience)
            except FileNotFoundError:
                return FolderLook(tuple(saves))
        return FolderLook((*saves, current) if current.has_edits else tuple(saves), current.content)

    def replace(self, text: str, absorbed: bytes | None) -> bool:
        """Replace known content with a new text.

        Args:
            text: New text of the file.
            absorbed: Content whose edits were applied; None if the file is missing.

        Returns:
            False if the file had other content: apply its edits, and render again.

        Raises:
            StorageError: It could not be written; the old file is in its place.
        """
        if is_encrypted(self.path.parent):  # plain text is not written
            if absorbed is not None:
                self.withdraw(absorbed)
            return True
        content = text.encode()
        make_private_folder(self.path.parent)
        with translated(self.path, "write"):
            before = read_signature(self.path)
            try:
                current, _ = self._read_settled(self.path)
            except FileNotFoundError:
                current = None
            if current == content:
                self.rendered = before
                return True
            if current != absorbed:
                return False
            new = self._choose_free_path()
            replace_file(new, content, durable=False)
            rendered = read_signature(new)  # taken before others can write to the file
            try:
                put_file_in_place(new, self.path, self._choose_free_path)
            except BaseException:
                new.unlink(missing_ok=True)
                raise
            if not self._delete_replaced(absorbed):
                return False
            self.rendered = rendered
            return True

    def _delete_replaced(self, absorbed: bytes | None) -> bool:
        """Delete replaced files with known content; return False if others remain."""
        is_all_known = True
        for old in self._list_replaced():
            try:
                is_known = self._read_settled(old)[0] == absorbed
            except FileNotFoundError:
                continue
            except BusyError:
                is_known = False
            if is_known:
                old.unlink(missing_ok=True)
            is_all_known = is_all_known and is_known
        return is_all_known

    def withdraw(self, absorbed: bytes) -> None:
        """Remove a file with applied edits that was not rendered again.

        Otherwise its edits would be applied twice, and restore memories that were forgotten since. A save at this
        moment gets a hidden name, for the next look.

        Raises:
            StorageError: It is still in its place.
        """
        with translated(self.path, "remove"), contextlib.suppress(FileNotFoundError):
            if self._read_settled(self.path)[0] == absorbed:
                self.path.rename(self._choose_free_path())
                self._delete_replaced(absorbed)

    def discard(self, save: PadSave) -> None:
        """Delete a replaced file whose edits were applied; the file itself stays."""
        if save.path != self.path:
            with translated(save.path, "remove"):
                save.path.unlink(missing_ok=True)

    def take_out(self) -> PadSave:
        """Move the file to a hidden name; return it.

        Raises:
            StorageError: No file, or it cannot be moved.
        """
        old = self._choose_free_path()
        with translated(self.path, "set aside"):
            self.path.rename(old)
            return self._read(old)

    def keep_aside(self, content: bytes) -> str:
        """Write a synced copy of refused edits without secrets; return its name.

        Raises:
            StorageError: It could not be written.
        """
        parts = _split_parts(content.decode("utf-8", "surrogateescape"))
        copy = "".join(self._redactor.redact(part).text for part in parts).encode("utf-8", "surrogateescape")
        aside, key = get_aside_path(self.path, "broken", f"{self._clock():{STAMP}}"), key_for(self.path.parent)
        with translated(self.path, "set aside"):
            return set_aside(self.path, aside, copy if key is None else key.encrypt_file(aside.name, copy)).name

    def remove_expired(self) -> None:
        """Delete copies older than 30 days, as their words may be forgotten."""
        now = self._clock()
        with contextlib.suppress(OSError):  # the next call tries again
            for name in list_names(self.path.parent, "broken_pad"):
                if (moment := parse_moment(name)) and moment < now - KEPT:
                    self.path.with_name(name).unlink()

    def _read(self, path: Path, patience: float | None = None) -> PadSave:
        content, changed_at = self._read_settled(path, patience)
        text = content.decode("utf-8", "surrogateescape")
        text = text.replace("\r\n", "\n").replace("\r", "\n")  # as Windows and old Macs end lines
        try:
            return PadSave(path, content, changed_at, read_edits(text))
        except ValidationError as error:
            return PadSave(path, content, changed_at, PadEdits(), error)

    def _read_settled(self, path: Path, patience: float | None = None) -> tuple[bytes, float]:
        """Return the content and modification time of a file.

        Raises:
            BusyError: A program has it open for writing all the time.
            StorageError: It is too large.
        """
        return read_settled(path, self._patience if patience is None else patience, MAX_BYTES)

    def _list_replaced(self) -> list[Path]:
        """Return the replaced files, oldest first."""
        replaced, prefix = [], f".{self.path.name}."
        with contextlib.suppress(FileNotFoundError), os.scandir(self.path.parent) as entries:
            for entry in entries:
                if entry.name.startswith(prefix) and classify_name(entry.name) == "taken_out":
                    with contextlib.suppress(FileNotFoundError):
                        replaced.append((entry.stat(follow_symlinks=False).st_mtime_ns, entry.name))
        return [self.path.with_name(name) for _, name in sorted(replaced)]

    def _choose_free_path(self) -> Path:
        return self.path.with_name(f".{self.path.name}.{secrets.token_hex(4)}.old")


def check_refused_edits(path: Path, now: datetime) -> Iterator[Concern]:
    """Yield concerns about copies of refused edits."""
    sizes = {name: get_disk_size(path.with_name(name)) for name in list_names(path.parent, "broken_pad")}
    recent = [name for name in sizes if (moment := parse_moment(name)) and now - moment < KEPT]
    if recent:
        yield Concern(
            "scratchpad_kept",
            f"An edit of scratchpad.yaml was refused; it is saved as {recent[-1]}.",
            "Store what you need from it, then delete it.",
            sum(map(sizes.__getitem__, recent)),
            tuple(recent[-3:]),
        )
    if older := [name for name in sizes if name not in recent]:
        yield Concern(
            "scratchpad_aside",
            f"{counted(len(older), 'scratchpad')} saved, because an edit in each was refused.",
            "Look whether anything in them is worth storing; then delete them.",
            sum(map(sizes.__getitem__, older)),
            tuple(older[:3]),
        )


def _split_parts(text: str) -> Iterator[str]:
    """Yield parts of a text for redaction; the whole takes far longer."""
    part = ""
    for entry in _ENTRY.split(text):
        if part and len(part) + len(entry) > _REDACTED_AT_ONCE:
            yield part
            part = ""
        part += entry
    yield part
