"""Command `man`: pages for man(1), made from the commands themselves."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from agent_memory.files.wording import counted
from agent_memory.settings.installation import installed_version

_FOLDER: Final = "~/.local/share/man/man1"
_ESCAPED: Final = re.compile(r"\\(\[)")
"""Bracket that `PlainCommand` escaped for rich."""


def man(
    ctx: typer.Context,
    *,
    folder: Annotated[
        Path, typer.Option("--folder", metavar="PATH", help="Folder for the pages, created if missing.")
    ] = Path(_FOLDER),
) -> None:
    """Write a page of the manual for each command.

    `man agent-memory` shows the first. `man` looks in ~/.local/share/man if ~/.local/bin is in PATH.
    """
    assert ctx.parent is not None
    place = folder.expanduser()
    pages = list(build_pages(ctx.parent))
    try:
        place.mkdir(parents=True, exist_ok=True)
        for name, page in pages:
            (place / f"{name}.1").write_text(page, encoding="utf-8")
    except OSError as error:
        raise typer.BadParameter(f"could not write to {place}: {error.strerror}", param_hint="--folder") from error
    typer.echo(f"{counted(len(pages), 'page')} in {place}")


def build_pages(ctx: Any) -> Iterator[tuple[str, str]]:
    """Yield name and page of a command, then those of its subcommands."""
    command = ctx.command
    names = command.list_commands(ctx) if hasattr(command, "list_commands") else []
    yield ctx.command_path.replace(" ", "-"), _build_page(ctx, names)
    for name in names:
        _, loaded, _ = command.resolve_command(ctx, [name])
        yield from build_pages(type(ctx)(loaded, info_name=name, parent=ctx))


def _build_page(ctx: Any, names: list[str]) -> str:
    """Return a page in the macros of man(7)."""
    command, title = ctx.command, ctx.command_path.replace(" ", "-")
    summary, *paragraphs = _ESCAPED.sub(r"\1", command.help or "").split("\n\n")
    usage = "COMMAND [ARGS]..." if names else " ".join(command.collect_usage_pieces(ctx))
    rows = [record for param in command.get_params(ctx) if (record := param.get_help_record(ctx))]
    lines = [
        f'.TH "{title.upper()}" 1 "" "agent-memory {installed_version()}"',
        ".SH NAME",
        f"{escape_roff(title)} \\- {escape_roff(summary)}",
        ".SH SYNOPSIS",
        f".B {escape_roff(ctx.command_path)}",
        escape_roff(usage),
        *([".SH DESCRIPTION"] if paragraphs else []),
        *("\n.PP\n".join(map(escape_roff, paragraphs)).split("\n") if paragraphs else []),
        ".SH OPTIONS",
        *_list_terms(rows),
    ]
    if names:
        commands = [(name, command.get_command(ctx, name)) for name in names]
        lines += [".SH COMMANDS", *_list_terms([(name, entry.help or "") for name, entry in commands])]
    if ctx.parent is not None:
        lines += [".SH SEE ALSO", f".BR {escape_roff(ctx.parent.command_path.replace(' ', '-'))} (1)"]
    return "\n".join(lines) + "\n"


def _list_terms(rows: list[tuple[str, str]]) -> Iterator[str]:
    for term, text in rows:
        yield from (".TP", f".B {escape_roff(term)}", escape_roff(_ESCAPED.sub(r"\1", " ".join(text.split()))))


def escape_roff(text: str) -> str:
    """Return text that roff prints as it is."""
    escaped = text.replace("\\", "\\e").replace("-", "\\-")
    return "\\&" + escaped if escaped.startswith((".", "'")) else escaped
