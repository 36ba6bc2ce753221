"""Commands that move memories between agents and files: export, import."""

import sys
from pathlib import Path
from typing import Annotated, Final, Literal

import typer

from agent_memory.cli.formats import decode, encode
from agent_memory.cli.report import Report
from agent_memory.cli.running import Run, command
from agent_memory.cli.text import counted
from agent_memory.errors import ValidationError
from agent_memory.files.atomic import replace_file, translated
from agent_memory.files.temporary import remove_leftovers

_SUFFIXES: Final = {".yaml": "yaml", ".yml": "yaml", ".jsonl": "jsonl", ".ndjson": "jsonl"}

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
    chosen = _format_of(file, form)
    if file == "-" and run.screen.json and chosen == "yaml":
        raise typer.BadParameter("--json and YAML cannot both be on stdout", param_hint="--format")
    if file != "-":
        _check_target(Path(file), run.root, force=force)
    memories = await run.service.admin.everything()
    with run.screen.progress() as progress:
        texts = [encode(memory, chosen) for memory in progress.track(memories, description="Exporting")]
    if file == "-":
        run.screen.raw("".join(texts))
    else:
        _write(Path(file), "".join(texts))
        run.screen.document({"exported": len(memories), "file": file, "format": chosen})
        run.screen.show(f"Exported {counted(len(memories), 'memory', 'memories')} to {file}.")
    await _note_damage(run)


@command(may_be_new=True)
async def import_(
    run: Run,
    file: Annotated[str, typer.Argument(metavar="FILE", help="What `export` wrote; '-' is stdin.")],
    form: FormatName = None,
    *,
    trusted: Annotated[
        bool,
        typer.Option("--trusted", help="Believe all it claims: trust, pins, times, uses, what replaces what."),
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would become of it, and store nothing.")] = False,
) -> None:
    """Bring exported memories in; what is there stays as it is.

    What a file claims beyond its texts counts only with --trusted: anybody can write a file.
    """
    chosen = _format_of(file, form)
    records = list(decode(_read(file), chosen, run.service.agent_id))
    found = [(f"line {record.line}", record.memory) for record in records if record.memory is not None]
    report = Report(run.screen, "Would import" if dry_run else "Imported", [label for label, _ in found])
    report.counts |= {"lowered": 0, "raised": 0}
    report.unknown_fields = dict.fromkeys(field for record in records for field in record.unknown_fields)
    for record in records:
        if record.memory is None:
            report.refuse(f"line {record.line}", record.problem)
    with report.counting("Importing") as each:
        memories = [memory for _, memory in found]
        await run.service.admin.import_memories(memories, each, run.caller, trusted=trusted, dry_run=dry_run)
    report.end()


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


def _write(path: Path, text: str) -> None:
    with translated(path, "write"):
        if path.exists() and not path.is_file():
            path.write_bytes(text.encode())  # a pipe or a device is written to, not replaced
        else:
            remove_leftovers(path.parent, of=path.name)  # of an export that was killed
            replace_file(path, text.encode(), durable=True)


def _read(file: str) -> bytes:
    if file != "-" and not Path(file).exists():
        raise ValidationError(f"There is no file {file}.", code="no_file", recovery="Check the name.")
    with translated(Path(file), "read"):
        return sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()


async def _note_damage(run: Run) -> None:
    health = await run.service.admin.health()
    if health.get("problems"):
        run.screen.note(
            f"{health['problems']} damaged places of the journal are not in it; `agent-memory status` names them."
        )
