"""`import` of a vault: edited notes become changes of their memories."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

import pydantic
import typer

from agent_memory.cli.exit_codes import FAILED
from agent_memory.cli.knowledge import open_knowledge
from agent_memory.cli.source_import import ImportChoices, import_source
from agent_memory.cli.vault import DOCUMENTS, MANIFEST, NoteEntry, VaultFolder, get_stem, read_vault
from agent_memory.cli.vault_notes import build_memory, hash_note, list_changes, list_ignored, parse_note, render_note
from agent_memory.errors import AgentMemoryError, ValidationError
from agent_memory.files.wording import counted
from agent_memory.journal.agent_file import read_identity
from agent_memory.knowledge.intake.document_index import get_real_path
from agent_memory.models import Memory, describe, get_import_id, to_text
from agent_memory.models.text import brief, one_line

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from agent_memory.cli.runtime import AgentContext
    from agent_memory.cli.vault_notes import VaultNote
    from agent_memory.memory.results import Imported

_MAX_SHOWN: Final = 20
_NOTHING: Final = "Nothing was changed."
_ORIGIN: Final = "import vault"


@dataclass(slots=True)
class VaultPlan:
    """Planned outcome of the import of a vault.

    Attributes:
        changes: Edited fields by the path of the note, with the memory as it is.
        new: Memories of notes that no memory has, by the path of the note.
        known: Number of notes without edits.
        missing: IDs of memories by the path of their deleted note.
        problems: Notes that are left out, and why.
        ignored: Edited fields that a vault cannot change, by the path of the note.
    """

    changes: dict[str, tuple[Memory, dict[str, Any]]] = field(default_factory=dict)
    new: dict[str, Memory] = field(default_factory=dict)
    known: int = 0
    missing: dict[str, str] = field(default_factory=dict)
    problems: list[tuple[str, str]] = field(default_factory=list)
    ignored: dict[str, list[str]] = field(default_factory=dict)


def find_vault(path: Path) -> tuple[VaultFolder, str] | None:
    """Return the vault of a path, and the path inside."""
    for folder in (path, *path.absolute().parents):
        if (folder / MANIFEST).is_file() and (vault := read_vault(folder)) is not None:
            if folder == path:
                return vault, ""
            if (target := path.resolve()).is_relative_to(vault.path):
                return vault, target.relative_to(vault.path).as_posix()
    return None


async def import_vault(
    run: AgentContext, vault: VaultFolder, choices: ImportChoices, *, trusted: bool, only: str = ""
) -> None:
    """Show the edits of a vault, ask, and store them.

    Edits in the vault of this agent count as the user's. New notes and those of another agent count as texts of a file.
    Anyone who has a copy of the folder can write them.

    Args:
        run: Context of the command.
        vault: Vault to read.
        choices: Options of the command.
        trusted: True to accept what new notes claim.
        only: Path of the only note to read; empty for all.

    Raises:
        typer.Exit: Something was left out, or was declined.
    """
    run.begin_import()
    identity = read_identity(run.root / run.service.agent_id)
    is_own = bool(identity) and identity == vault.agent
    plan = await _VaultReader(run, vault, is_own=is_own).plan(only)
    await _rehearse(run, plan, trusted=trusted)
    document = _build_document(vault, plan)
    run.screen.document(document)
    _show_plan(run, vault, plan, is_own=is_own)
    if (plan.changes or plan.new) and not choices.dry_run:
        if not choices.yes:
            what = counted(len(plan.changes) + len(plan.new), "note")
            run.confirm(f"Store {what}?", _NOTHING, "An import", "Add --yes to store them, or --dry-run to see them.")
        stored = await _store(run, vault, plan, is_own=is_own, trusted=trusted)
        document |= {"stored": dict(stored), "import": run.caller.session_id}
        done = [counted(stored["changed"], "change"), counted(stored["new"], "new memory", "new memories")]
        run.screen.note(f"Stored {' and '.join(done)}.", style="")
        run.hint_undo(f"--import {run.caller.session_id}")
        if stored["new"] and not trusted:
            run.screen.hint(f"New ones act as instructions only after `agent-memory accept {run.caller.session_id}`.")
    document["problems"] = [{"note": name, "problem": problem} for name, problem in plan.problems]
    for name, problem in plan.problems[:_MAX_SHOWN]:
        run.screen.note(f"{one_line(name)}: {problem}.")
    if not only:
        try:
            await _import_documents(run, vault, choices, is_own=is_own)
        finally:
            if (documents := run.screen.get_document()) is not document:
                run.screen.document({**document, "documents": documents})
    if plan.problems:
        raise typer.Exit(FAILED)


class _VaultReader:
    """Compares the notes of a vault with the memories of an agent.

    Args:
        run: Context of the command.
        vault: Vault to read.
        is_own: True if this agent exported the vault.
    """

    def __init__(self, run: AgentContext, vault: VaultFolder, *, is_own: bool) -> None:
        self._run, self._vault, self._is_own = run, vault, is_own
        self._plan = VaultPlan()
        self._seen: set[str] = set()

    async def plan(self, only: str) -> VaultPlan:
        """Return the planned outcome of all notes, or of one."""
        notes = await asyncio.to_thread(self._read_notes, only)
        entries = self._vault.entries
        ids = {get_stem(name): entry.id for name, entry in entries.items()}
        ids |= {get_stem(name): note.memory_id for name, (note, _) in notes.items() if note.memory_id}
        for name in sorted(notes, key=lambda name: name not in entries):  # a copy comes after its original
            note, digest = notes[name]
            try:
                await self._plan_note(name, note, digest, ids)
            except pydantic.ValidationError as error:
                self._plan.problems.append((name, describe(error)))
        unread = {name: entry.id for name, entry in entries.items() if entry.memory and entry.id not in self._seen}
        if self._is_own and not only:
            stored = await self._run.service.storage.texts_of(list(unread.values()))
            self._plan.missing = {name: memory_id for name, memory_id in unread.items() if memory_id in stored}
        return self._plan

    def _read_notes(self, only: str) -> dict[str, tuple[VaultNote, str]]:
        """Return the notes of memories with the checksums of their files."""
        notes: dict[str, tuple[VaultNote, str]] = {}
        for name in [only] if only else self._vault.list_notes():
            content = None if name.startswith(f"{DOCUMENTS}/") else self._vault.read(name)
            try:
                if content is not None:
                    notes[name] = parse_note(content), hash_note(content)
            except ValidationError as error:
                self._plan.problems.append((name, error.args[0].rstrip(".")))
                self._seen |= {entry.id for key, entry in self._vault.entries.items() if key == name}
        return notes

    async def _plan_note(self, name: str, note: VaultNote, digest: str, ids: Mapping[str, str]) -> None:
        entry, plan = self._vault.entries.get(name), self._plan
        memory_id = note.memory_id or (entry.id if entry is not None else "")
        if memory_id in self._seen:
            memory_id = ""  # a copy of another note
        self._seen.add(memory_id)
        memory = await self._run.service.storage.get(memory_id) if memory_id else None
        if not note.text.strip():
            plan.known += memory is None
            if memory is not None:
                plan.problems.append((name, "the text is empty; run agent-memory forget to forget a memory"))
        elif self._is_own and entry is not None and entry.note == digest:
            plan.known += 1  # also if the memory was forgotten since
        elif memory is None or not self._is_own:
            await self._plan_new(name, note, memory_id, ids)
        else:
            self._plan_edited(name, note, memory, entry)

    def _plan_edited(self, name: str, note: VaultNote, memory: Memory, entry: NoteEntry | None) -> None:
        plan, names = self._plan, self._vault.names
        changes, ignored = list_changes(note, memory, memory.agent_id), list_ignored(note, memory, names)
        if memory.trust == "low" and changes.get("pinned"):
            del changes["pinned"]
            ignored = [*ignored, "pinned"]
        if ignored:
            plan.ignored[name] = ignored
        if not changes:
            plan.known += 1
        elif entry is not None and entry.memory != hash_note(render_note(memory, names).encode()):
            plan.problems.append(
                (name, f"{memory.id} was changed here, too, since the export; nothing of it is stored")
            )
        else:
            plan.changes[name] = memory, changes

    async def _plan_new(self, name: str, note: VaultNote, memory_id: str, ids: Mapping[str, str]) -> None:
        agent_id = self._run.service.agent_id
        if note.memory_id and memory_id:
            self._plan.new[name] = build_memory(note, memory_id, agent_id, ids)
            return
        text = note.text.strip()
        values = {**note.read_values(), "content": text, "agent_id": agent_id, "id": get_import_id(text)}
        new = Memory.model_validate({**values, "origin": _ORIGIN, "source": {"kind": "import", "detail": name[-200:]}})
        stored = await self._run.service.storage.texts_of([new.id])
        if new.id in stored or text in {memory.content for memory in self._plan.new.values()}:
            self._plan.known += 1
        else:
            self._plan.new[name] = new


async def _rehearse(run: AgentContext, plan: VaultPlan, *, trusted: bool) -> None:
    """Remove known and refused notes from the new ones."""
    names = iter(list(plan.new))

    def sort(imported: Imported) -> None:
        name = next(names)
        if imported.outcome == "stored":
            return
        del plan.new[name]
        plan.known += imported.outcome == "present"
        if imported.outcome == "differs":
            plan.problems.append((name, f"{imported.memory_id} has another text here, which stays"))
        elif imported.outcome == "forgotten":
            plan.problems.append((name, "it was forgotten here"))
        elif imported.outcome == "refused":
            plan.problems.append((name, str(imported.error).rstrip(".")))

    memories = list(plan.new.values())
    await run.service.writer.import_memories(memories, sort, run.caller, trusted=trusted, dry_run=True)


async def _store(
    run: AgentContext, vault: VaultFolder, plan: VaultPlan, *, is_own: bool, trusted: bool
) -> Counter[str]:
    """Store a plan; return the numbers of changes and of new memories."""
    stored, ids = Counter[str](), dict[str, str]()
    names = iter(list(plan.new))

    def count(imported: Imported) -> None:
        name = next(names)
        if imported.outcome == "stored":
            stored["new"] += 1
            ids[name] = imported.memory_id

    await run.service.writer.import_memories(list(plan.new.values()), count, run.caller, trusted=trusted)
    for name, (memory, changes) in plan.changes.items():
        try:
            await run.service.update(memory.id, changes, run.caller)
            stored["changed"] += 1
            ids[name] = memory.id
        except AgentMemoryError as error:
            plan.problems.append((name, str(error).rstrip(".")))
    if is_own:
        await _record_imported(run, vault, ids)
    return stored


async def _record_imported(run: AgentContext, vault: VaultFolder, ids: Mapping[str, str]) -> None:
    """Record the imported notes in the manifest, for the next edit."""
    vault.entries |= {name: NoteEntry(memory_id, "") for name, memory_id in ids.items()}
    names = vault.names
    for name, memory_id in ids.items():
        content, memory = vault.read(name), await run.service.storage.get(memory_id)
        if content is not None and memory is not None:
            digest = hash_note(render_note(memory, names).encode())
            vault.entries[name] = NoteEntry(memory_id, hash_note(content), digest)
    await asyncio.to_thread(vault.write_manifest)


async def _import_documents(run: AgentContext, vault: VaultFolder, choices: ImportChoices, *, is_own: bool) -> None:
    """Import new and edited documents; an edited one is a new version."""
    from agent_memory.knowledge.sources.source_files import open_source

    folder = vault.path / DOCUMENTS
    if folder.is_symlink() or not folder.is_dir():
        return
    tree = open_source(str(folder))
    if is_own:
        entries = {name: vault.entries.get(f"{DOCUMENTS}/{name}") for name in tree.files}
        edited = {
            name: entry for name, entry in entries.items() if entry is None or not _is_unchanged(vault, name, entry)
        }
        paths = await _find_paths(run, {name: entry.id for name, entry in edited.items() if entry is not None})
        tree.files = {name: replace(tree.files[name], path=paths.get(name, tree.files[name].path)) for name in edited}
    if tree.files:
        await import_source(run, tree, ImportChoices(folder, None, dry_run=choices.dry_run, yes=choices.yes))


def _is_unchanged(vault: VaultFolder, name: str, entry: NoteEntry) -> bool:
    return hash_note(vault.read(f"{DOCUMENTS}/{name}") or b"") == entry.note


async def _find_paths(run: AgentContext, ids: Mapping[str, str]) -> dict[str, Path]:
    """Return the stored paths of documents, which identify their versions."""
    if not ids:
        return {}
    async with open_knowledge(run) as knowledge:
        resources = await knowledge.resources.valid_among(list(ids.values()))
    paths = {name: get_real_path(resources[record_id]) for name, record_id in ids.items() if record_id in resources}
    return {name: path for name, path in paths.items() if path is not None}


def _build_document(vault: VaultFolder, plan: VaultPlan) -> dict[str, Any]:
    changes = [
        {"note": name, "memory_id": memory.id, "fields": _view_changes(memory, changes)}
        for name, (memory, changes) in plan.changes.items()
    ]
    new = [{"note": name, "content": memory.content} for name, memory in plan.new.items()]
    missing = [{"note": name, "memory_id": memory_id} for name, memory_id in plan.missing.items()]
    ignored = [{"note": name, "fields": fields} for name, fields in plan.ignored.items()]
    return {
        "vault": str(vault.path), "changes": changes, "new": new, "known": plan.known, "missing": missing,
        "unchanged_fields": ignored, "stored": {},
    }  # fmt: skip


def _view_changes(memory: Memory, changes: Mapping[str, Any]) -> dict[str, list[Any]]:
    return {name: [_view_value(getattr(memory, name)), _view_value(value)] for name, value in changes.items()}


def _view_value(value: Any) -> Any:
    return to_text(value) if hasattr(value, "isoformat") else value


def _show_plan(run: AgentContext, vault: VaultFolder, plan: VaultPlan, *, is_own: bool) -> None:
    """Print the counts and the differences."""
    if run.screen.form != "text":
        return
    whose = "" if is_own else " of another agent"
    run.screen.show(
        f"Vault{whose} {vault.path.name}: {counted(len(plan.changes), 'change')}, {len(plan.new):,} new, "
        f"{plan.known:,} known, {len(plan.missing):,} missing, {len(plan.problems):,} left out."
    )
    for name, (memory, changes) in list(plan.changes.items())[:_MAX_SHOWN]:
        run.screen.show(f"{memory.id} in {one_line(name)}")
        for key, (before, after) in _view_changes(memory, changes).items():
            run.screen.show(f"{key}: - {brief(str(before))}", indent=2)
            run.screen.show(f"{' ' * len(key)}  + {brief(str(after))}", indent=2)
    for name, memory in list(plan.new.items())[:_MAX_SHOWN]:
        run.screen.show(f"new in {one_line(name)}: {brief(memory.content)}")
    for name, memory_id in list(plan.missing.items())[:_MAX_SHOWN]:
        run.screen.show(f"missing {one_line(name)}: {memory_id} is kept.")
    if plan.missing:
        run.screen.hint("Run `agent-memory forget ID` to forget a memory.")
    for name, fields in list(plan.ignored.items())[:_MAX_SHOWN]:
        run.screen.note(f"{one_line(name)}: {', '.join(fields)} cannot be edited in a vault.")
