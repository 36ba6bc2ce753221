"""`export --vault`: memories and documents as a folder of Markdown notes."""

from __future__ import annotations

import asyncio
import json
import os
import posixpath
import secrets
import shutil
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pydantic

from agent_memory.cli.knowledge import open_knowledge
from agent_memory.cli.vault_notes import (
    LOST_FIELDS,
    SUFFIX,
    choose_name,
    clean_name,
    fold_name,
    hash_note,
    list_changes,
    parse_note,
    render_note,
)
from agent_memory.errors import ValidationError
from agent_memory.files.atomic import make_private_folder, read_file, replace_file, sync_tree, translated
from agent_memory.files.wording import counted
from agent_memory.journal.agent_file import read_identity
from agent_memory.models import EPISODE, RESOURCE

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from agent_memory.cli.runtime import AgentContext
    from agent_memory.models import Memory, Resource

MANIFEST: Final = ".agent-memory.json"
"""File of a vault that lists the exported notes. Other folders are not vaults."""
DOCUMENTS: Final = "documents"
_MEMORIES: Final = "memories"
_MAX_NAMED: Final = 5
_MAX_FOLDER_CHARS: Final = 40
_LEFT_OUT: Final[Mapping[str, tuple[str, str]]] = {
    "conversation": ("conversation", "conversations"),
    EPISODE.name: ("turn", "turns"),
    "topic": ("topic", "topics"),
    "item": ("item of a document or conversation", "items of documents and conversations"),
}


@dataclass(frozen=True, slots=True)
class NoteEntry:
    """Checksums of a note at its last export or import.

    Attributes:
        id: ID of its memory or document.
        note: Checksum of the file.
        memory: Checksum of the note that its memory had then; empty for a document.
    """

    id: str
    note: str
    memory: str = ""


@dataclass(slots=True)
class VaultFolder:
    """A vault on disk.

    Attributes:
        path: Resolved folder of the vault.
        agent: Random ID of the exported agent's folder.
        entries: Notes by their paths inside the vault.
    """

    path: Path
    agent: str = ""
    entries: dict[str, NoteEntry] = field(default_factory=dict)

    @property
    def names(self) -> dict[str, str]:
        """Names of notes by the IDs of their memories."""
        return {entry.id: get_stem(path) for path, entry in self.entries.items()}

    def read(self, name: str) -> bytes | None:
        """Return the content of a file, or None for a link."""
        path = self.path / name
        if path.is_symlink() or not path.is_file() or not path.resolve().is_relative_to(self.path):
            return None
        with translated(path, "read"):
            return read_file(path)

    def list_notes(self) -> Iterator[str]:
        """Yield the paths of visible Markdown files, links left out."""
        for place, folders, names in os.walk(self.path):
            folders[:] = sorted(name for name in folders if not name.startswith("."))
            for name in sorted(names):
                path = Path(place, name)
                if name.endswith(SUFFIX) and not name.startswith(".") and not path.is_symlink():
                    yield path.relative_to(self.path).as_posix()

    def write_manifest(self) -> None:
        """Write the list of exported notes, always last."""
        entries = {name: [entry.id, entry.note, entry.memory] for name, entry in sorted(self.entries.items())}
        content = {"vault": "agent-memory", "format": 1, "agent": self.agent, "notes": entries}
        replace_file(self.path / MANIFEST, json.dumps(content, indent=1).encode() + b"\n", durable=True)


def read_vault(folder: Path) -> VaultFolder | None:
    """Return the vault of a folder, or None."""
    vault = VaultFolder(folder.resolve())
    try:
        content = json.loads(vault.read(MANIFEST) or b"")
        if content["vault"] != "agent-memory":
            return None
        vault.agent = str(content["agent"])
        entries = {str(name): NoteEntry(*map(str, entry)) for name, entry in content["notes"].items()}
        vault.entries = {name: entry for name, entry in entries.items() if _is_note_name(name)}
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None
    return vault


def _is_note_name(name: str) -> bool:
    """Return True for a visible Markdown file inside the vault."""
    return name.endswith(SUFFIX) and not any(part.startswith(".") or not part for part in name.split("/"))


def get_stem(path: str) -> str:
    """Return the name that links use for a note."""
    return posixpath.basename(path).removesuffix(SUFFIX)


async def export_vault(run: AgentContext, folder: Path, *, force: bool) -> None:
    """Write a vault, or update the vault of this agent.

    Raises:
        ValidationError: The folder is not a vault of this agent, or has notes that were edited and not imported.
    """
    identity = read_identity(run.root / run.service.agent_id)
    vault = _open_target(folder, run.root, identity)
    memories, left_out = await _list_memories(run)
    documents = await _list_documents(run, left_out)
    edited = await asyncio.to_thread(_list_edited, vault, memories, documents)
    if edited and not force:
        named = ", ".join(edited[:_MAX_NAMED]) + (" …" if len(edited) > _MAX_NAMED else "")
        raise ValidationError(
            f"{counted(len(edited), 'note was', 'notes were')} edited and not imported: {named}. Nothing was written.",
            code="file_exists",
            recovery=f"Run agent-memory import {folder} first, or add --force to replace them.",
        )
    notes = await asyncio.to_thread(_plan_notes, vault, memories, documents)
    with translated(vault.path, "write"):
        await asyncio.to_thread(_write, vault, notes)
    counts = {"memories": len(memories), "documents": len(documents)}
    run.screen.document({"vault": str(folder), **counts, "left_out": dict(left_out), "fields_left_out": LOST_FIELDS})
    what = " and ".join([
        counted(len(memories), "memory", "memories"), *([counted(len(documents), "document")] if documents else []),
    ])  # fmt: skip
    run.screen.show(f"Exported {what} to {folder}.")
    missing = [counted(left_out[kind], *words) for kind, words in _LEFT_OUT.items() if left_out[kind]]
    run.screen.note(f"Not in it: {', '.join([*missing, LOST_FIELDS])}. A .jsonl file has them.", style="dim")


def _open_target(folder: Path, root: Path, identity: str) -> VaultFolder:
    """Return the vault to write.

    Raises:
        ValidationError: The folder cannot be used.
    """
    path = folder.resolve()
    if path.is_relative_to(root):
        message, code = f"{folder} is inside the storage root; nothing was written.", "inside_root"
        raise ValidationError(message, code=code, recovery="Choose a folder outside the storage root.")
    if not path.parent.is_dir():
        message = f"Could not write {folder}: no folder {path.parent}."
        raise ValidationError(message, code="no_file", recovery="Make it, or check the name.")
    if not path.exists() or (path.is_dir() and not any(path.iterdir())):
        return VaultFolder(path, identity)
    vault = read_vault(path) if path.is_dir() else None
    if vault is None or not identity or vault.agent != identity:
        owner = "has other files" if vault is None else "is the vault of another agent"
        raise ValidationError(
            f"{folder} {owner}; nothing was written.", code="file_exists", recovery="Choose another folder."
        )
    return vault


async def _list_memories(run: AgentContext) -> tuple[list[Memory], Counter[str]]:
    """Return the memories in order, and the count of items."""
    records = [record async for record in run.service.storage.iter_all()]
    memories = [record for record in records if not record.is_item]
    memories.sort(key=lambda memory: (memory.timestamp, memory.id))
    return memories, Counter({"item": len(records) - len(memories)})


async def _list_documents(run: AgentContext, left_out: Counter[str]) -> list[tuple[Resource, str]]:
    """Return documents with their whole texts; count what a vault leaves out."""
    folder = run.root / run.service.agent_id
    if not any((folder / kind.journal).exists() for kind in (RESOURCE, EPISODE)):
        return []
    documents: list[tuple[Resource, str]] = []
    async with open_knowledge(run) as knowledge:
        for resource in await knowledge.resources.valid():
            if resource.resource_type == "conversation":
                left_out["conversation"] += 1
            else:
                documents.append((resource, await knowledge.text_of(resource)))
        left_out[EPISODE.name] = len(await knowledge.episodes.valid())
        left_out["topic"] = len(await knowledge.topics.valid())
    return sorted(documents, key=lambda pair: (pair[0].timestamp, pair[0].id))


def _list_edited(vault: VaultFolder, memories: list[Memory], documents: list[tuple[Resource, str]]) -> list[str]:
    """Return the notes with edits that no memory has."""
    memories_by_id = {memory.id: memory for memory in memories}
    whole_texts = {text.strip() for _, text in documents}
    edited = []
    for name, entry in vault.entries.items():
        content = vault.read(name)
        if content is None or hash_note(content) == entry.note:
            continue
        if decode_text(content) in whole_texts:
            continue
        if entry.id not in memories_by_id or not is_imported(content, memories_by_id[entry.id]):
            edited.append(name)
    return edited


def decode_text(content: bytes) -> str:
    """Return the text of a document's note, without blank lines around it."""
    return content.decode("utf-8", "replace").replace("\r\n", "\n").strip()


def is_imported(content: bytes, memory: Memory) -> bool:
    """Return True if a memory has all edits of its note."""
    try:
        return not list_changes(parse_note(content), memory, memory.agent_id)
    except (ValidationError, pydantic.ValidationError):
        return False


def _plan_notes(
    vault: VaultFolder, memories: list[Memory], documents: list[tuple[Resource, str]]
) -> dict[str, tuple[str, str]]:
    """Return the ID and text of each note by path.

    A note keeps its path, also one that a person wrote and that was imported.
    """
    paths = {entry.id: name for name, entry in vault.entries.items() if vault.read(name) is not None}
    existing = list(vault.list_notes()) if vault.path.is_dir() else []
    taken = {fold_name(get_stem(name)) for name in existing} | {fold_name(get_stem(name)) for name in paths.values()}
    for memory in memories:
        if memory.id not in paths:
            name = choose_name(memory.content, memory.id, taken)
            paths[memory.id] = f"{_MEMORIES}/{name}{SUFFIX}"
    names = {memory.id: get_stem(paths[memory.id]) for memory in memories}
    notes = {paths[memory.id]: (memory.id, render_note(memory, names)) for memory in memories}
    places = {fold_name(name) for name in existing}
    written = {decode_text(vault.read(name) or b""): name for name in existing if name.startswith(f"{DOCUMENTS}/")}
    for resource, text in documents:
        path = written.pop(text.strip(), "") or paths.get(resource.id) or _choose_place(resource, places)
        notes[path] = (resource.id, f"{text}\n")
    return notes


def _choose_place(resource: Resource, places: set[str]) -> str:
    """Return the path of a document's note, below its own folder."""
    stated = resource.metadata.get("file")
    *parents, title = str(stated if isinstance(stated, str) else resource.title or "document").split("/")
    names = (clean_name(parent)[:_MAX_FOLDER_CHARS].strip() for parent in parents)
    folder = posixpath.join(DOCUMENTS, *filter(None, names))
    stem = title.removesuffix(SUFFIX)
    taken = {get_stem(place) for place in places if posixpath.dirname(place) == fold_name(folder)}
    path = posixpath.join(folder, choose_name(stem, resource.id, taken) + SUFFIX)
    places.add(fold_name(path))
    return path


def _write(vault: VaultFolder, notes: Mapping[str, tuple[str, str]]) -> None:
    """Write the notes of a vault, a new one atomically."""
    target, is_new = vault.path, not (vault.path / MANIFEST).exists()
    if is_new:
        vault.path = target.with_name(f".{target.name}.{secrets.token_hex(4)}.tmp")
        make_private_folder(vault.path)
    try:
        _write_notes(vault, notes)
        if is_new:
            sync_tree(vault.path)
            vault.path.rename(target)
    except BaseException:
        if is_new:
            shutil.rmtree(vault.path, ignore_errors=True)
        raise


def _write_notes(vault: VaultFolder, notes: Mapping[str, tuple[str, str]]) -> None:
    before, vault.entries = vault.entries, {}
    for name, (record_id, text) in notes.items():
        content, path = text.encode(), vault.path / name
        if not path.parent.resolve().is_relative_to(vault.path.resolve()):
            raise ValidationError(
                f"{path.parent} is a link out of the vault.", code="symlink", recovery="Remove the link."
            )
        if vault.read(name) != content:
            make_private_folder(path.parent)
            replace_file(path, content, durable=False)
        digest = hash_note(content)
        vault.entries[name] = NoteEntry(record_id, digest, "" if name.startswith(f"{DOCUMENTS}/") else digest)
    for name, entry in before.items():
        present = None if name in vault.entries else vault.read(name)
        if present is not None and hash_note(present) == entry.note:
            (vault.path / name).unlink()  # its memory was forgotten after the export
    vault.write_manifest()
