"""Arguments and options that several commands share."""

import re
from typing import Annotated

import typer


def complete_category(incomplete: str) -> list[str]:
    """Return the built-in categories a shell may complete to."""
    from agent_memory.models import CATEGORIES  # noqa: PLC0415 - only when a shell asks

    return [name for name in CATEGORIES if name.startswith(incomplete)]


def check_category(value: str | None) -> str | None:
    """Return a category in lower case.

    Raises:
        typer.BadParameter: It is not one word of small letters, digits and underscores.
    """
    if value is None:
        return None
    folded = value.strip().lower()
    if not re.fullmatch(r"[a-z][a-z0-9_]{0,63}", folded):
        raise typer.BadParameter("a category is one word, such as decision or code_style")
    return folded


MemoryId = Annotated[str, typer.Argument(metavar="ID", help="Id of a memory, e.g. mem-a3f2c1b4e5d6.")]
Category = Annotated[
    str | None,
    typer.Option(
        "--category",
        "-c",
        metavar="NAME",
        help="Only this category.",
        callback=check_category,
        autocompletion=complete_category,
    ),
]
Tags = Annotated[
    list[str] | None, typer.Option("--tag", "-t", metavar="TAG", help="Only with this tag; may be repeated.")
]
