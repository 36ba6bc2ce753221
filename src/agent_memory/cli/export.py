"""`agent-memory export`: write memories and knowledge to a file."""

import asyncio
import contextlib
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from agent_memory.cli.archive import write_archived
from agent_memory.cli.formats import Format, FormatName, choose_format, encode_entry, encode_trace
from agent_memory.cli.framework_records import write_verbatim
from agent_memory.cli.inbox import write_waiting
from agent_memory.cli.knowledge import open_knowledge
from agent_memory.cli.runtime import AgentContext
from agent_memory.cli.transfer_tally import describe_counts
from agent_memory.cli.vault import export_vault
from agent_memory.errors import UnsupportedError, ValidationError
from agent_memory.files.atomic import remove_leftovers, replace_file, translated
from agent_memory.files.wording import counted
from agent_memory.models import EPISODE, RESOURCE, to_text, utc_now

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import IO

    from agent_memory.care.account import AccountSummary
    from agent_memory.care.anonymizer import ExportAnonymizer
    from agent_memory.files.layout import AgentFolder

_CHUNK_BYTES: Final = 1 << 20
_ZIP: Final = ".zip"


async def export(
    run: AgentContext,
    file: Annotated[str, typer.Argument(metavar="FILE", help="File to write; '-' is stdout.")] = "-",
    form: FormatName = None,
    *,
    vault: Annotated[
        Path | None, typer.Option("--vault", metavar="FOLDER", help="Write Markdown notes into a folder instead.")
    ] = None,
    about: Annotated[
        str | None, typer.Option("--about", metavar="NAME", help="To a .zip: all that is stored about a person's name.")
    ] = None,
    anonymize: Annotated[
        bool, typer.Option("--anonymize", help="Replace known names, addresses and phone numbers.")
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace a file that exists.")] = False,
) -> None:
    """Write memories, documents and conversations to a file.

    A .zip is an account for people of all that the agent holds, and cannot be imported. With --about it has what
    names a person, also by other known names.

    Edits of the notes of a vault can be imported.
    """
    if anonymize and (vault is not None or about is not None or Path(file).suffix.lower() == _ZIP):
        raise typer.BadParameter("it is for .jsonl and .yaml, without --vault or --about", param_hint="--anonymize")
    if vault is not None:
        if file != "-" or form is not None or about is not None:
            raise typer.BadParameter("--vault needs no FILE, --format or --about", param_hint="--vault")
        await export_vault(run, vault, force=force)
        await _note_damage(run)
        return
    if Path(file).suffix.lower() == _ZIP and form is None:
        _check_target(Path(file), run.root, force=force)
        await _export_account(run, Path(file), about)
        return
    if about is not None:
        raise typer.BadParameter("an account of a person needs a FILE with the suffix .zip", param_hint="--about")
    chosen = choose_format(file, form)
    if file == "-" and run.screen.json and chosen == "yaml":
        raise typer.BadParameter("--json and YAML cannot both be on stdout", param_hint="--format")
    if file != "-":
        _check_target(Path(file), run.root, force=force)
    path = Path(file)
    anonymizer = await _build_anonymizer(run) if anonymize else None
    if file == "-":
        await write_all(run, chosen, run.screen.raw, anonymizer)
    else:
        with translated(path, "write"):
            exported, knowledge_counts = await _write_file(run, chosen, path, anonymizer)
        replaced = {} if anonymizer is None else {"replaced": dict(anonymizer.counts)}
        document = {"exported": exported, "given": dict(knowledge_counts), "file": file, "format": chosen, **replaced}
        run.screen.document(document)
        details = describe_counts(knowledge_counts)
        also = f" with {details}" if details else ""
        run.screen.show(f"Exported {counted(exported, 'memory', 'memories')}{also} to {file}.")
    if anonymizer is not None:
        run.screen.note(
            f"Replaced {counted(anonymizer.counts.total(), 'name or address', 'names and addresses')}. A name that no "
            "record declares is still there: read the file before you share it."
        )
    await _note_damage(run)


async def _build_anonymizer(run: AgentContext) -> "ExportAnonymizer":
    from agent_memory.care.account import list_held_records
    from agent_memory.care.anonymizer import ExportAnonymizer

    if run.service.folder is None:
        message = "These memories are on a server; names are collected from files."
        raise UnsupportedError(message, recovery="`agent-memory index pull` them first.")
    await run.service.settle()
    return ExportAnonymizer(await asyncio.to_thread(list_held_records, run.service.folder))


def _check_target(path: Path, root: Path, *, force: bool) -> None:
    """Check that a file may be written.

    Raises:
        ValidationError: It exists without --force, is in the storage root, or has no folder.
    """
    if path.resolve().is_relative_to(root):
        message = f"{path} is inside the storage root; nothing was written."
        raise ValidationError(message, code="inside_root", recovery="Choose a place outside the storage root.")
    if not path.parent.is_dir():
        raise ValidationError(
            f"Could not write {path}: no folder {path.parent}.", code="no_file", recovery="Make it, or check the name."
        )
    if path.is_file() and not force:
        raise ValidationError(
            f"{path} exists; nothing was written.", code="file_exists", recovery="Add --force to replace it."
        )


async def write_all(
    run: AgentContext, form: Format, write: "Callable[[str], object]", anonymizer: "ExportAnonymizer | None" = None
) -> tuple[int, Counter[str]]:
    """Write all records; return the counts of memories and of others.

    Args:
        run: Context of the command.
        form: Format of the file.
        write: Takes the text of each record.
        anonymizer: Replaces what identifies people. Traces of forgotten memories are left out then: their hashes
            confirm a known text.
    """
    storage, done, counts = run.service.storage, 0, Counter[str]()

    def encode_anonymous(entry: dict[str, Any]) -> str:
        return encode_entry(entry if anonymizer is None else anonymizer.anonymize(entry), form)

    def write_entry(entry: dict[str, Any]) -> None:
        counts[entry["kind"]] += 1
        write(encode_anonymous(entry))

    await _write_knowledge(run, write_entry)
    with run.screen.progress() as progress:
        bar = progress.add_task("Exporting", total=await storage.count())
        async for memory in storage.iter_all():
            write(encode_anonymous({"id": memory.id, **memory.to_record()}))
            progress.advance(bar)
            done += 1
    await write_archived(run, write_entry)
    await write_waiting(run, write_entry)
    await write_verbatim(run, write_entry)
    for trace in await run.service.history.traces() if anonymizer is None else ():
        write(encode_trace(trace, form))
    return done, counts


async def _write_file(
    run: AgentContext, form: Format, path: Path, anonymizer: "ExportAnonymizer | None"
) -> tuple[int, Counter[str]]:
    """Write an export to a file atomically; return the numbers."""
    if path.exists() and not path.is_file():  # noqa: ASYNC240 - a command runs nothing else
        with path.open("w", encoding="utf-8", newline="") as target:
            return await write_all(run, form, target.write, anonymizer)  # a pipe or a device is not replaced
    with open_replacement(path) as buffer:
        return await write_all(run, form, lambda text: buffer.write(text.encode()), anonymizer)


@contextlib.contextmanager
def open_replacement(path: Path) -> "Iterator[IO[bytes]]":
    """Yield a file whose content replaces `path` at the end."""
    remove_leftovers(path.parent, of=path.name)  # of an export that was killed
    with tempfile.TemporaryFile(dir=path.parent) as buffer:
        yield buffer
        buffer.seek(0)
        replace_file(path, iter(lambda: buffer.read(_CHUNK_BYTES), b""), durable=True)


async def _note_damage(run: AgentContext) -> None:
    health = await run.service.storage.health()
    if health.get("problems"):
        run.screen.hint(
            f"{health['problems']} damaged places of the journal are not in it; `agent-memory status` names them."
        )


async def _export_account(run: AgentContext, path: Path, about: str | None) -> None:
    """Write an account to a zip file and print its contents."""
    folder = run.service.folder
    if folder is None:
        message = "These memories are on a server; an account is made of files."
        raise UnsupportedError(message, recovery="Export them as .jsonl, or `agent-memory index pull` them first.")
    if about is not None and not about.strip():
        raise ValidationError("--about needs a name; nothing was written.", code="usage")
    await run.service.settle()
    account = await asyncio.to_thread(_write_account, folder, path, about)
    counts = dict(account.by_kind)
    document = {"file": str(path), "names": list(account.names), "records": counts, "forgotten": account.gone}
    run.screen.document({**document, "lines_of_other_files": account.lines})
    total = counted(account.by_kind.total(), "record")
    if account.names:
        run.screen.note(f"Searched for: {', '.join(account.names)}.", style="")
    if not account.by_kind and not account.lines:
        run.screen.note("Nothing was found. The file contains only a README.md that says so.")
    more = f", {account.gone} of them forgotten and still in the files," if account.gone else ""
    run.screen.show(f"Wrote {total}{more} to {path}. Read its README.md first: it lists what was not searched.")


def _write_account(folder: "AgentFolder", path: Path, about: str | None) -> "AccountSummary":
    from agent_memory.care.account import find_known_names, list_held_records, write_account

    names = None if about is None else find_known_names(about.strip(), list_held_records(folder))
    with translated(path, "write"), open_replacement(path) as buffer:
        return write_account(folder, buffer, to_text(utc_now()), names)


async def _write_knowledge(run: AgentContext, write_entry: Callable[[dict[str, Any]], object]) -> None:
    """Write documents, conversations and topics, if the agent has any."""
    from agent_memory.knowledge.intake.transfer import iter_entries

    folder = run.root / run.service.agent_id
    if run.service.settings.backend == "server" or not any(
        (folder / kind.journal).exists() for kind in (RESOURCE, EPISODE)
    ):
        return
    async with open_knowledge(run) as knowledge:
        async for entry in iter_entries(knowledge, await run.service.writer.list_forgotten_items()):
            write_entry(entry)
