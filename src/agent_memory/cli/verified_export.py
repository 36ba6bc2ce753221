"""Exports that are read back and compared with the journals."""

import asyncio
import hashlib
import json
import tempfile
import zipfile
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from agent_memory.care.account import PAGES, HeldRecord, list_held_records, write_account
from agent_memory.care.archive_records import TIDY_RUN
from agent_memory.cli.export import open_replacement, write_all
from agent_memory.cli.formats import decode
from agent_memory.cli.options import open_service
from agent_memory.cli.runtime import SESSION_ID, AgentContext, CommandContext
from agent_memory.errors import ValidationError
from agent_memory.files.atomic import make_private_folder, replace_file, sync_tree, translated
from agent_memory.files.layout import AgentFolder
from agent_memory.journal.agent_file import read_header_at
from agent_memory.journal.codec import build_newer_error
from agent_memory.models import MARK, to_text, utc_now

_JSONL: Final = "export.jsonl"
_PROOF: Final = "verified.json"
_UNFINISHED: Final = ".unfinished"
_ONLY_IN_ACCOUNT: Final = frozenset({TIDY_RUN.name})
"""Kinds that `records.jsonl` has, and an import cannot use."""
_TEXTS: Final = ("content", "name", "title")
"""Fields that an export must have as the journal has them."""


@dataclass(frozen=True, slots=True)
class VerifiedExport:
    """Export of one agent that was read back.

    Attributes:
        folder: Folder of the export.
        records: Number of records by kind.
        journals: SHA-256 of each journal when it was compared.
        files: SHA-256 of each file of the export.
    """

    folder: Path
    records: Mapping[str, int]
    journals: Mapping[str, str]
    files: Mapping[str, str]

    def check_unchanged(self, folder: AgentFolder) -> None:
        """Check that the journals are as exported.

        Raises:
            ValidationError: Something was stored since.
        """
        if _hash_journals(folder) != self.journals:
            raise _build_mismatch(folder, "something was stored or changed since it was exported")


async def export_agent(run: CommandContext, folder: AgentFolder, target: Path) -> VerifiedExport:
    """Export an agent as JSON lines and Markdown, and verify both.

    A verified export of the same state is kept; an incomplete one is written again.

    Args:
        run: Context of the command.
        folder: Folder of the agent.
        target: Folder of all exports.

    Raises:
        ValidationError: The folder has an export of another state, or what was read back differs.
        StorageError: The agent cannot be read, or the export cannot be written.
    """
    place = target / folder.agent_id
    if (earlier := read_export(place)) is not None:
        earlier.check_unchanged(folder)
        return earlier
    if not can_export_to(target, folder):
        raise ValidationError(
            f"{place} has other files; nothing was written.", code="file_exists", recovery="Choose another folder."
        )
    make_private_folder(place)
    replace_file(place / _UNFINISHED, b"", durable=True)
    await _write_lines(run, folder, place / _JSONL)
    await asyncio.to_thread(_write_pages, folder, place)
    return await asyncio.to_thread(verify_export, folder, place)


def can_export_to(target: Path, folder: AgentFolder) -> bool:
    """Return True if no other export is in the way."""
    place = target / folder.agent_id
    if (export := read_export(place)) is not None:
        return export.journals == _hash_journals(folder)
    return not place.exists() or (place / _UNFINISHED).exists() or not any(place.iterdir())


def read_export(place: Path) -> VerifiedExport | None:
    """Return a verified export, or None.

    None also if a file of it is missing or was changed since.
    """
    try:
        proof = json.loads((place / _PROOF).read_bytes())
        export = VerifiedExport(place, proof["records"], proof["journals"], proof["files"])
        return export if _hash_files(place) == export.files else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


async def _write_lines(run: CommandContext, folder: AgentFolder, path: Path) -> None:
    from agent_memory.memory import Caller

    context = AgentContext(run.command, parent=run)
    context.screen, context.root, context.caller = run.screen, run.root, Caller(SESSION_ID)
    async with open_service(folder.agent_id, run.root) as context.service:
        await context.service.settle()
        with translated(path, "write"), open_replacement(path) as file:
            await write_all(context, "jsonl", lambda text: file.write(text.encode()))


def _write_pages(folder: AgentFolder, place: Path) -> None:
    """Write the pages of an account as files."""
    with translated(place, "write"), tempfile.TemporaryFile(dir=place) as file:
        write_account(folder, file, to_text(utc_now()))
        with zipfile.ZipFile(file) as pages:
            pages.extractall(place)  # names are those of `write_account`
        for path in place.rglob("*"):
            path.chmod(0o700 if path.is_dir() else 0o600)
        sync_tree(place)


def verify_export(folder: AgentFolder, place: Path) -> VerifiedExport:
    """Read an export back and note that it is complete.

    Raises:
        ReadOnlyError: A newer version wrote a journal: this one cannot read all of it.
        ValidationError: It differs from the journals.
    """
    for path in folder.journals():
        if (header := read_header_at(path)) is not None and header.too_new:
            raise build_newer_error(path.name, header)
    journals = _hash_journals(folder)
    records = [record for record in list_held_records(folder) if record.kind != MARK.name]
    lines = _read_lines(folder, place / _JSONL)
    pages: dict[str, str] = {}
    held = {record.id: record for record in records}
    for line in (place / "records.jsonl").read_bytes().splitlines():
        value = json.loads(line)
        if (record := held.get(value["id"])) is not None and value["fields"] == json.loads(json.dumps(record.data)):
            del held[record.id]
    if held:
        raise _build_mismatch(folder, f"{_name_first(held)} is missing or differs in records.jsonl")
    for record in records:
        _check_record(folder, record, lines, pages, place)
    if _hash_journals(folder) != journals:
        raise _build_mismatch(folder, "something was stored while it was exported")
    counts = Counter(record.kind for record in records if not record.is_gone)
    export = VerifiedExport(place, dict(counts), journals, _hash_files(place))
    proof = {"agent": folder.agent_id, "records": export.records, "journals": journals, "files": export.files}
    replace_file(place / _PROOF, json.dumps(proof, indent=2).encode() + b"\n", durable=True)
    (place / _UNFINISHED).unlink()
    return export


def _check_record(
    folder: AgentFolder, record: HeldRecord, lines: Mapping[str, Any], pages: dict[str, str], place: Path
) -> None:
    """Check one record in both forms of an export.

    Raises:
        ValidationError: It is missing, or a text differs.
    """
    if record.kind in PAGES:
        name, _ = PAGES[record.kind]
        if name not in pages:
            pages[name] = (place / name).read_text("utf-8")
        if f"## {record.id}" not in pages[name]:
            raise _build_mismatch(folder, f"{record.id} is missing in {name}")
    if record.is_gone or record.kind in _ONLY_IN_ACCOUNT:
        return  # a forgotten one is in the pages, marked; an import would bring it back
    line = lines.get(record.id)
    if line is None or any(line.get(field) != record.data[field] for field in _TEXTS if field in record.data):
        raise _build_mismatch(folder, f"{record.id} ({record.kind}) is missing or differs in {_JSONL}")


def _read_lines(folder: AgentFolder, path: Path) -> dict[str, Any]:
    """Return the entries of an export by ID.

    Raises:
        ValidationError: A line could not be imported.
    """
    content = path.read_bytes()
    for line in decode(content, "jsonl", folder.agent_id):
        if line.problem:
            raise _build_mismatch(folder, f"line {line.line} of {_JSONL} cannot be imported: {line.problem}")
    return {entry["id"]: entry for entry in map(json.loads, content.splitlines())}


def _hash_journals(folder: AgentFolder) -> dict[str, str]:
    with translated(folder.path, "read"):
        return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.journals()}


def _hash_files(place: Path) -> dict[str, str]:
    paths = [path for path in sorted(place.rglob("*")) if path.is_file() and path.name not in {_PROOF, _UNFINISHED}]
    return {str(path.relative_to(place)): hashlib.sha256(path.read_bytes()).hexdigest() for path in paths}


def _name_first(held: Mapping[str, HeldRecord]) -> str:
    record = next(iter(held.values()))
    return f"{record.id} ({record.kind})"


def _build_mismatch(folder: AgentFolder, reason: str) -> ValidationError:
    return ValidationError(
        f"The export of {folder.agent_id} is not verified: {reason}. Nothing of it was deleted.",
        code="not_verified",
        recovery="End its sessions and run this again with --export and another folder.",
    )
