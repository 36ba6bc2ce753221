"""`agent-memory export`, `import`, `index push` and `index pull`."""

import asyncio
import contextlib
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from agent_memory.cli.archive import bring_archived, write_archived
from agent_memory.cli.formats import Format, ImportedLine, decode, encode, encode_entry, encode_trace
from agent_memory.cli.inbox import bring_waiting, write_waiting
from agent_memory.cli.knowledge import opened_knowledge
from agent_memory.cli.runtime import FAILED, AgentContext, command
from agent_memory.cli.screen import OutputScreen
from agent_memory.errors import ConfigurationError, UnsupportedError, ValidationError
from agent_memory.files.atomic import remove_leftovers, replace_file, translated
from agent_memory.files.layout import folder_of
from agent_memory.files.wording import counted
from agent_memory.journal import read_lost
from agent_memory.knowledge.pipeline.background_work import runner_of
from agent_memory.models import (
    ARCHIVED,
    CANDIDATE,
    ENTITY,
    EPISODE,
    RELATION,
    RESOURCE,
    SUMMARY,
    TOPIC,
    Memory,
    to_text,
    utc_now,
)
from agent_memory.settings import ServiceSettings, build_settings

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from typing import IO

    from agent_memory.care.account import AccountSummary
    from agent_memory.engines.server_storage import QdrantServerStorage
    from agent_memory.files.layout import AgentFolder
    from agent_memory.knowledge.intake.transfer import EntryImport
    from agent_memory.memory.results import Imported
    from agent_memory.store.memory_storage import MemoryStorage

_SHOWN_PROBLEMS: Final = 20
_WRITTEN_AT_ONCE: Final = 500
_COPIED_AT_ONCE: Final = 1 << 20
_SUFFIXES: Final[dict[str, Format]] = {".yaml": "yaml", ".yml": "yaml", ".jsonl": "jsonl", ".ndjson": "jsonl"}

FormatName = Annotated[
    Format | None,
    typer.Option("--format", help="Only needed where the file's suffix does not tell; '-' is jsonl."),
]


class TransferTally:
    """Counts what became of each memory, and says so once.

    Args:
        screen: Where to.
        done: The verb in the past, such as `Imported`.
        labels: How each of the memories to come is named where one is refused: its `id`, or its `line` in the file.
        there: Where those are that were there already: `here` or `there`.

    Attributes:
        unknown_fields: Fields of a file that were left aside; None where there is no file.
        done: As given.
        given: What became of records of other kinds; None where there were none.
    """

    def __init__(self, screen: OutputScreen, done: str, labels: Sequence[dict[str, Any]], there: str = "here") -> None:
        self._screen = screen
        self.done, self._there = done, there
        self._labels = labels
        self._told = 0
        self.counts = Counter(stored=0, present=0, differs=0, refused=0)
        self.problems: list[dict[str, Any]] = []
        self.redacted: dict[str, None] = {}
        self.unknown_fields: dict[str, None] | None = None
        self.given: EntryImport | None = None
        screen.last_words = self._stopped

    def refuse(self, line: int, problem: str) -> None:
        """Count one that cannot even be tried."""
        self.counts["refused"] += 1
        self.problems.append({"line": line, "problem": problem})

    def note(self, imported: "Imported") -> None:
        """Count the next memory."""
        self.counts[imported.outcome] += 1
        for change in ("lowered", "raised"):
            if getattr(imported, change):
                self.counts[change] += 1
        self.redacted.update(dict.fromkeys(imported.redacted))
        if imported.error is not None:
            self.problems.append({**self._labels[self._told], "problem": imported.error.message})
        self._told += 1

    @contextlib.contextmanager
    def counting(self, doing: str) -> "Iterator[Callable[[Imported], None]]":
        """Yield a callback for outcomes; show progress and final counts."""
        try:
            with self._screen.progress() as progress:
                task = progress.add_task(doing, total=len(self._labels))

                def each(imported: "Imported") -> None:
                    self.note(imported)
                    progress.advance(task)

                yield each
        finally:
            self.show()  # also when the disk is full or the server lost half-way: what was counted is there

    def show(self) -> None:
        """Print counts on stdout and warnings on stderr."""
        self.problems.sort(key=lambda problem: int(problem.get("line", 0)))  # sorting is stable: ids keep their order
        document = {**self.counts, "problems": self.problems, "redacted": list(self.redacted)}
        of_a_file = {} if self.unknown_fields is None else {"unknown_fields": list(self.unknown_fields)}
        of_others = {} if self.given is None else {"given": document_of(self.given)}
        self._screen.document(document | of_a_file | of_others)
        if not self._screen.json:
            self._tell()

    def end(self) -> None:
        """Exit with an error if something was refused.

        Raises:
            typer.Exit: Something was.
        """
        if self.problems:
            raise typer.Exit(FAILED)

    def _stopped(self) -> str:
        return f"Stopped after {self._told:,} of {len(self._labels):,}; do it again to go on."

    def _tell(self) -> None:
        say = self._screen.note
        for problem in self.problems[:_SHOWN_PROBLEMS]:
            which = problem.get("id") or f"line {problem['line']}"
            say(f"{which}: {problem['problem']}")
        if len(self.problems) > _SHOWN_PROBLEMS:
            say(f"… and {len(self.problems) - _SHOWN_PROBLEMS} more; --json lists them all.")
        if self.redacted:
            say(f"Secrets were removed ({', '.join(self.redacted)}); they are never stored.")
        if self.unknown_fields:
            say(f"Left aside, unknown to this version: {', '.join(self.unknown_fields)}.")
        if self.counts["lowered"]:
            say(
                f"Lowered {self.counts['lowered']:,}: what a file claims of trust, pins, uses, the future, what it "
                "replaces or what is suspect counts only with --trusted. If the file is your own, say the same again "
                "with it."
            )
        present = self.counts["present"] + self.counts["differs"]
        also = said_of(self.given.stored) if self.given is not None else ""
        memories = counted(self.counts["stored"], "memory", "memories")
        parts = [f"{self.done} {memories}{' with ' if also else ''}{also}"]
        raised, forgotten, refused = (self.counts[name] for name in ("raised", "forgotten", "refused"))
        parts += [f"skipped {present:,} that were there"] if present else []
        parts += [f"raised {raised:,} of them to what the file claims"] if raised else []
        parts += [f"left {forgotten:,} forgotten"] if forgotten else []
        parts += [f"refused {refused:,}"] if refused else []
        self._screen.show(", ".join(parts) + ".")
        if self.counts["differs"]:
            say(f"{self.counts['differs']} of those skipped have another text {self._there}, which stays.")


async def export(
    run: AgentContext,
    file: Annotated[str, typer.Argument(metavar="FILE", help="Where to; '-' is stdout.")] = "-",
    form: FormatName = None,
    *,
    about: Annotated[
        str | None, typer.Option("--about", metavar="NAME", help="To a .zip: all that is held about somebody's name.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace a file that exists.")] = False,
) -> None:
    """Write memories, documents and conversations to a file.

    To a file with the suffix .zip goes an account for people: pages of all that is held of the agent or, with --about,
    of what names somebody, by other names too that the agent knows. It is not made to be imported.
    """
    if Path(file).suffix.lower() == ZIP and form is None:
        _check_target(Path(file), run.root, force=force)
        await export_account(run, Path(file), about)
        return
    if about is not None:
        raise typer.BadParameter("what is about somebody goes to a FILE with the suffix .zip", param_hint="--about")
    chosen = _format_of(file, form)
    if file == "-" and run.screen.json and chosen == "yaml":
        raise typer.BadParameter("--json and YAML cannot both be on stdout", param_hint="--format")
    if file != "-":
        _check_target(Path(file), run.root, force=force)
    path = Path(file)
    if file == "-":
        await _write_all(run, chosen, run.screen.raw)
    else:
        with translated(path, "write"):
            exported, knowledge_counts = await _write_file(run, chosen, path)
        run.screen.document({"exported": exported, "given": dict(knowledge_counts), "file": file, "format": chosen})
        also = f" with {said_of(knowledge_counts)}" if said_of(knowledge_counts) else ""
        run.screen.show(f"Exported {counted(exported, 'memory', 'memories')}{also} to {file}.")
    await _note_damage(run)


@command(may_be_new=True)
async def import_(
    run: AgentContext,
    file: Annotated[str, typer.Argument(metavar="FILE", help="What `export` wrote; '-' is stdin.")],
    form: FormatName = None,
    *,
    trusted: Annotated[
        bool,
        typer.Option("--trusted", help="Believe all it claims: trust, pins, times, uses, replacements, edited pages."),
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would become of it, and store nothing.")] = False,
) -> None:
    """Import exported memories; existing ones stay as they are.

    What a file claims beyond its texts counts only with --trusted: anybody can write a file.
    """
    content = _read(file)  # a missing file is reported before its suffix
    chosen = _format_of(file, form)
    run.begin_import()
    records = list(decode(content, chosen, run.service.agent_id))
    importable = [record for record in records if record.memory is not None]
    labels = [{"line": record.line} for record in importable]
    report = TransferTally(run.screen, "Would import" if dry_run else "Imported", labels)
    report.counts.update(lowered=0, raised=0)
    report.unknown_fields = dict.fromkeys(field for record in records for field in record.unknown_fields)
    for record in records:
        if record.problem:
            report.refuse(record.line, record.problem)
    report.given = await bring_given(run, records, trusted=trusted, dry_run=dry_run)
    for line, problem in report.given.refused.items() if report.given is not None else ():
        report.refuse(line, problem)
    with report.counting("Importing") as advance:
        memories = [record.memory for record in records if record.memory is not None]
        await run.service.writer.import_memories(memories, advance, run.caller, trusted=trusted, dry_run=dry_run)
    if report.given is not None and not dry_run:
        await work(run)
    put_away = [record.archived for record in records if record.archived is not None]
    if brought := await bring_archived(run, put_away, trusted=trusted, dry_run=dry_run):
        run.screen.note(f"{report.done} {counted(brought, 'archived memory', 'archived memories')}.", style="dim")
    waiting = [record.candidate for record in records if record.candidate is not None]
    await bring_waiting(run, waiting, trusted=trusted, dry_run=dry_run)
    traces = [record.trace for record in records if record.trace is not None]
    if trusted and not dry_run:
        await run.service.writer.import_traces(traces)
    elif traces and not trusted:
        run.screen.note(f"Left aside {counted(len(traces), 'trace')} of what was forgotten: only with --trusted.")
    if report.counts["stored"] and not dry_run:
        run.hint_undo(f"--import {run.caller.session_id}")
    report.end()


def _format_of(file: str, form: Format | None) -> Format:
    if form is not None:
        return form
    if file == "-":
        return "jsonl"
    suffix = _SUFFIXES.get(Path(file).suffix.lower())
    if suffix is None:
        raise typer.BadParameter(
            f"the suffix of {file!r} tells no format; say --format yaml or --format jsonl", param_hint="FILE"
        )
    return suffix


def _check_target(path: Path, root: Path, *, force: bool) -> None:
    """Refuse what would destroy something.

    Raises:
        ValidationError: The file exists and --force was not given, or it lies where the memories are.
    """
    if path.resolve().is_relative_to(root):
        raise ValidationError(
            f"{path} lies among the memories themselves; nothing was written.",
            code="inside_root",
            recovery="Choose a place outside the storage root.",
        )
    if not path.parent.is_dir():
        raise ValidationError(
            f"Could not write {path}: there is no folder {path.parent}.",
            code="no_file",
            recovery="Make it, or check the name.",
        )
    if path.is_file() and not force:
        raise ValidationError(
            f"{path} exists; nothing was written.", code="file_exists", recovery="Say --force to replace it."
        )


async def _write_all(run: AgentContext, form: Format, write: "Callable[[str], object]") -> tuple[int, Counter[str]]:
    """Write all memories and knowledge in batches; return their numbers."""
    knowledge_counts = await write_given(run, form, write)
    storage, done, texts = run.service.storage, 0, list[str]()
    with run.screen.progress() as progress:
        bar = progress.add_task("Exporting", total=await storage.count())
        async for memory in storage.iter_all():
            texts.append(encode(memory, form))
            if len(texts) == _WRITTEN_AT_ONCE:
                write("".join(texts))
                done += len(texts)
                progress.update(bar, completed=done)
                texts.clear()
        write("".join(texts))
    if archived := await write_archived(run, form, write):
        knowledge_counts[ARCHIVED.name] = archived
    if waiting := await write_waiting(run, form, write):
        knowledge_counts[CANDIDATE.name] = waiting
    write("".join([encode_trace(trace, form) for trace in await run.service.history.traces()]))
    return done + len(texts), knowledge_counts


async def _write_file(run: AgentContext, form: Format, path: Path) -> tuple[int, Counter[str]]:
    """Write an export to a file atomically; return the numbers."""
    if path.exists() and not path.is_file():  # noqa: ASYNC240 - a command runs nothing else
        with path.open("w", encoding="utf-8", newline="") as target:
            return await _write_all(run, form, target.write)  # a pipe or a device is written to, not replaced
    remove_leftovers(path.parent, of=path.name)  # of an export that was killed
    with tempfile.TemporaryFile(dir=path.parent) as temporary:
        exported = await _write_all(run, form, lambda text: temporary.write(text.encode()))
        temporary.seek(0)
        replace_file(path, iter(lambda: temporary.read(_COPIED_AT_ONCE), b""), durable=True)
    return exported


def _read(file: str) -> bytes:
    if file != "-" and not Path(file).exists():
        raise ValidationError(f"There is no file {file}.", code="no_file", recovery="Check the name.")
    with translated(Path(file), "read"):
        return sys.stdin.buffer.read() if file == "-" else read_lost(Path(file).absolute())


async def _note_damage(run: AgentContext) -> None:
    health = await run.service.storage.health()
    if health.get("problems"):
        run.screen.hint(
            f"{health['problems']} damaged places of the journal are not in it; `agent-memory status` names them."
        )


Url = Annotated[
    str | None,
    typer.Option(
        "--url",
        metavar="URL",
        envvar="QDRANT_URL",
        help="The server, such as https://host:6333; its key is read from QDRANT_API_KEY and nowhere else.",
    ),
]
Collection = Annotated[str, typer.Option("--collection", metavar="NAME", help="Collection on the server.")]
Embedder = Annotated[
    str, typer.Option("--embedder", metavar="KIND", help="What the server's vectors are of: local, openai or none.")
]


async def push(
    run: AgentContext, url: Url = None, collection: Collection = "agent_memory", embedder: Embedder = "local"
) -> None:
    """Copy to the server what is missing there; nothing there is changed.

    An interrupted copy continues when it is repeated.
    """
    async with _server(run, url, collection, embedder) as server:
        report = await _transfer(run, "Push", await run.service.searcher.list_all(), server)
        await server.add_traces(await run.service.history.traces())
        await server.prepare()
    report.end()


@command(may_be_new=True)
async def pull(
    run: AgentContext, url: Url = None, collection: Collection = "agent_memory", embedder: Embedder = "none"
) -> None:
    """Copy from the server what is missing here; nothing here is changed.

    An interrupted copy continues when it is repeated.
    """
    async with _server(run, url, collection, embedder) as server:
        report = await _transfer(run, "Pull", [memory async for memory in server.iter_all()], None)
        await run.service.writer.import_traces(await server.traces())
    report.end()


async def _transfer(
    run: AgentContext, doing: str, memories: list[Memory], target: "MemoryStorage | None"
) -> TransferTally:
    """Copy missing memories to another storage and report each outcome."""
    place = "here" if target is None else "there"
    report = TransferTally(run.screen, f"{doing}ed", [{"id": memory.id} for memory in memories], place)
    report.counts["forgotten"] = 0
    with report.counting(f"{doing}ing") as report_outcome:
        await run.service.writer.transfer(memories, report_outcome, run.caller, to=target)
    return report


@contextlib.asynccontextmanager
async def _server(
    run: AgentContext, url: str | None, collection: str, embedder: str
) -> "AsyncIterator[QdrantServerStorage]":
    from agent_memory.engines.server_storage import QdrantServerStorage

    if url is None:
        raise ConfigurationError(
            "There is no server to talk to.",
            code="usage",
            recovery="Name it with --url or the environment variable QDRANT_URL.",
        )
    values = {"qdrant_url": url, "qdrant_collection": collection, "embedder": embedder, "backend": "server"}
    settings = build_settings("agent-memory", ServiceSettings, values)
    # What was embedded for the files need not be embedded again for the server.
    cache = folder_of(run.service.agent_id, run.root).vectors
    existing = cache if cache.exists() else None
    server = QdrantServerStorage(run.service.agent_id, settings=settings, cache=existing)
    try:
        yield server
    finally:
        await server.close()


ZIP: Final = ".zip"
_AT_ONCE: Final = 1 << 20


async def export_account(run: AgentContext, path: Path, about: str | None) -> None:
    """Write an account to a zip file and print its contents."""
    folder = run.service.folder
    if folder is None:
        raise UnsupportedError(
            "These memories lie on a server; an account is made of files.",
            recovery="Export them as .jsonl, or `agent-memory index pull` them first.",
        )
    if about is not None and not about.strip():
        raise ValidationError("--about needs a name; nothing was written.", code="usage")
    await run.service.settle()
    account = await asyncio.to_thread(_write, folder, path, about)
    counts = dict(account.by_kind)
    document = {"file": str(path), "names": list(account.names), "records": counts, "forgotten": account.gone}
    run.screen.document({**document, "lines_of_other_files": account.lines})
    total = counted(account.by_kind.total(), "record")
    if account.names:
        run.screen.note(f"Looked for: {', '.join(account.names)}.", style="")
    if not account.by_kind and not account.lines:
        run.screen.note("Nothing was found; the archive says so.")
    more = f", {account.gone} of them forgotten and still in the files," if account.gone else ""
    run.screen.show(f"Wrote {total}{more} to {path}. Begin with its README.md, which says what was not looked into.")


def _write(folder: "AgentFolder", path: Path, about: str | None) -> "AccountSummary":
    from agent_memory.care.account import find_known_names, list_held_records, write_account

    names = None if about is None else find_known_names(about.strip(), list_held_records(folder))
    with translated(path, "write"):
        remove_leftovers(path.parent, of=path.name)  # of an export that was killed
        with tempfile.TemporaryFile(dir=path.parent) as buffer:
            account = write_account(folder, buffer, to_text(utc_now()), names)
            buffer.seek(0)
            replace_file(path, _pieces(buffer), durable=True)
    return account


def _pieces(file: "IO[bytes]") -> "Iterator[bytes]":
    return iter(lambda: file.read(_AT_ONCE), b"")


_ENTRIES_AT_ONCE: Final = 200
_WORDS: Final = {
    RESOURCE.name: ("resource", "resources"),
    EPISODE.name: ("turn", "turns"),
    TOPIC.name: ("topic", "topics"),
    ENTITY.name: ("entity", "entities"),
    RELATION.name: ("relation", "relations"),
    SUMMARY.name: ("summary", "summaries"),
    ARCHIVED.name: ("archived memory", "archived memories"),
    CANDIDATE.name: ("candidate", "candidates"),
}
"""What is told; where entities are named comes with them."""


def was_given(run: AgentContext) -> bool:
    """Return True if the agent has anything but memories."""
    if run.service.settings.backend == "server":
        return False
    folder = run.root / run.service.agent_id
    return any((folder / kind.journal).exists() for kind in (RESOURCE, EPISODE))


async def write_given(run: AgentContext, form: Format, write: Callable[[str], object]) -> Counter[str]:
    """Write documents, conversations and topics; return counts by kind."""
    from agent_memory.knowledge.intake.transfer import iter_entries

    counts, texts = Counter[str](), list[str]()
    if not was_given(run):
        return counts
    async with opened_knowledge(run) as knowledge:
        async for entry in iter_entries(knowledge, await run.service.writer.list_forgotten_items()):
            counts[entry["kind"]] += 1
            texts.append(encode_entry(entry, form))
            if len(texts) == _ENTRIES_AT_ONCE:
                write("".join(texts))
                texts.clear()
    write("".join(texts))
    return counts


async def bring_given(
    run: AgentContext, records: Sequence[ImportedLine], *, trusted: bool, dry_run: bool
) -> "EntryImport | None":
    """Store the documents and conversations of an export, or return None."""
    from agent_memory.knowledge.intake.transfer import store_entries

    entries = [(record.line, record.given) for record in records if record.given is not None]
    if not entries:
        return None
    async with opened_knowledge(run) as knowledge:
        return await store_entries(knowledge, entries, trusted=trusted, dry_run=dry_run)


async def work(run: AgentContext) -> None:
    """Run background stages, except for items that were imported."""
    async with opened_knowledge(run) as knowledge:
        await runner_of(knowledge, run.service, run.caller, at_once=True).run()


def said_of(counts: Counter[str]) -> str:
    """Return counts by kind for people, empty if none."""
    named = [counted(counts[kind], *words) for kind, words in _WORDS.items() if counts[kind]]
    return ", ".join(named)


def document_of(done: "EntryImport") -> dict[str, Any]:
    """Return the outcome as JSON."""
    return {
        name: {
            "stored": done.stored[kind],
            "present": done.present[kind],
            **({"purged": done.purged[kind]} if done.purged[kind] else {}),
        }
        for kind, (name, _) in _WORDS.items()
        if kind not in {ARCHIVED.name, CANDIDATE.name}
    }
