"""Commands that move memories between agents and files: export, import."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import typer

from agent_memory.cli.running import FAILED, Run
from agent_memory.errors import ValidationError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from agent_memory.cli.formats import Record
    from agent_memory.models import Memory
    from agent_memory.service.restoring import Restored

_SUFFIXES: Final = {".yaml": "yaml", ".yml": "yaml", ".jsonl": "jsonl", ".ndjson": "jsonl"}
_SHOWN_PROBLEMS: Final = 20

FormatName = Annotated[
    Literal["yaml", "jsonl"] | None,
    typer.Option("--format", help="Only needed where the file's suffix does not tell; '-' is jsonl."),
]


async def export(
    run: Run,
    file: Annotated[str, typer.Argument(metavar="FILE", help="Where to; '-' is stdout.")] = "-",
    form: FormatName = None,
    *,
    force: Annotated[bool, typer.Option("--force", help="Replace a file that exists.")] = False,
) -> None:
    """Write all memories to a file or to stdout."""
    from agent_memory.cli.formats import encode
    from agent_memory.cli.text import counted

    chosen = _format_of(file, form)
    if file == "-" and run.screen.json and chosen == "yaml":
        raise typer.BadParameter("--json and YAML cannot both be on stdout", param_hint="--format")
    if file != "-":
        _check_target(Path(file), run.root, force=force)
    memories = [memory async for memory in run.service.storage.iter_all()]
    with run.screen.progress() as progress:
        texts = [encode(memory, chosen) for memory in progress.track(memories, description="Exporting")]
    if file == "-":
        run.screen.raw("".join(texts))
    else:
        _write(Path(file), "".join(texts))
        run.screen.document({"exported": len(memories), "file": file, "format": chosen})
        run.screen.show(f"Exported {counted(len(memories), 'memory', 'memories')} to {file}.")
    await _note_damage(run)


async def import_(
    run: Run,
    file: Annotated[str, typer.Argument(metavar="FILE", help="What `export` wrote; '-' is stdin.")],
    form: FormatName = None,
) -> None:
    """Bring exported memories in; what is there stays as it is."""
    from agent_memory.cli.formats import decode

    chosen = _format_of(file, form)
    records = list(decode(_read(file), chosen, run.service.agent_id))
    report = _Report(records)
    try:
        with run.screen.progress() as progress:
            task = progress.add_task("Importing", total=len(report.memories))

            def each(restored: "Restored") -> None:
                report.note(restored)
                progress.advance(task)

            await run.service.restore(report.memories, each, run.caller)
    finally:
        report.show(run)  # also when the disk is full half-way: what was counted is on disk
    if report.problems:
        raise typer.Exit(FAILED)


class _Report:
    """What became of each line of a file."""

    def __init__(self, records: "Iterable[Record]") -> None:
        self.memories: list[Memory] = []
        self.problems: list[dict[str, Any]] = []
        self.counts = {"stored": 0, "present": 0, "differs": 0, "refused": 0}
        self.redacted: dict[str, None] = {}
        self.unknown_fields: dict[str, None] = {}
        self._lines: list[int] = []
        self._done = 0
        for record in records:
            self.unknown_fields.update(dict.fromkeys(record.unknown_fields))
            if record.memory is None:
                self.counts["refused"] += 1
                self.problems.append({"line": record.line, "problem": record.problem})
            else:
                self.memories.append(record.memory)
                self._lines.append(record.line)

    def note(self, restored: "Restored") -> None:
        """Count the next memory."""
        self.counts[restored.outcome] += 1
        self.redacted.update(dict.fromkeys(restored.redacted))
        if restored.error is not None:
            self.problems.append({"line": self._lines[self._done], "problem": restored.error.message})
        self._done += 1

    def show(self, run: Run) -> None:
        """Print counts on stdout, and on stderr what a person should look at."""
        from agent_memory.cli.text import counted

        self.problems.sort(key=lambda problem: int(problem["line"]))
        fields = {"redacted": list(self.redacted), "unknown_fields": list(self.unknown_fields)}
        run.screen.document({**self.counts, "problems": self.problems, **fields})
        for problem in self.problems[:_SHOWN_PROBLEMS]:
            run.screen.note(f"line {problem['line']}: {problem['problem']}")
        if len(self.problems) > _SHOWN_PROBLEMS:
            run.screen.note(f"… and {len(self.problems) - _SHOWN_PROBLEMS} more; --json lists them all.")
        if self.redacted:
            run.screen.note(f"Secrets were removed ({', '.join(self.redacted)}); they are never stored.")
        if self.unknown_fields:
            run.screen.note(f"Left aside, unknown to this version: {', '.join(self.unknown_fields)}.")
        there = self.counts["present"] + self.counts["differs"]
        parts = [f"Imported {counted(self.counts['stored'], 'memory', 'memories')}"]
        parts += [f"skipped {there:,} that were there"] if there else []
        parts += [f"refused {self.counts['refused']:,}"] if self.counts["refused"] else []
        run.screen.show(", ".join(parts) + ".")
        if self.counts["differs"]:
            run.screen.note(f"{self.counts['differs']} of those skipped have another text here, which stays.")


def _format_of(file: str, form: Literal["yaml", "jsonl"] | None) -> Literal["yaml", "jsonl"]:
    if form is not None:
        return form
    if file == "-":
        return "jsonl"
    suffix = _SUFFIXES.get(Path(file).suffix.lower())
    if suffix is None:
        raise typer.BadParameter(
            f"the suffix of {file!r} tells no format; say --format yaml or --format jsonl", param_hint="FILE"
        )
    return "yaml" if suffix == "yaml" else "jsonl"


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
    if path.is_file() and not force:
        raise ValidationError(
            f"{path} exists; nothing was written.", code="file_exists", recovery="Say --force to replace it."
        )


def _write(path: Path, text: str) -> None:
    from agent_memory.journal.files import replace_file, translated
    from agent_memory.journal.leftovers import remove_leftovers

    with translated(path, "write"):
        if path.exists() and not path.is_file():
            path.write_bytes(text.encode())  # a pipe or a device is written to, not replaced
        else:
            remove_leftovers(path.parent, of=path.name)  # of an export that was killed
            replace_file(path, text.encode(), durable=True)


def _read(file: str) -> bytes:
    from agent_memory.journal.files import translated

    if file != "-" and not Path(file).exists():
        raise ValidationError(f"There is no file {file}.", code="no_file", recovery="Check the name.")
    with translated(Path(file), "read"):
        return sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()


async def _note_damage(run: Run) -> None:
    health = await run.service.storage.health()
    if health.get("problems"):
        run.screen.note(
            f"{health['problems']} damaged places of the journal are not in it; `agent-memory status` names them."
        )
