"""Arguments and options that several commands share."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Annotated

import typer

from agent_memory.cli.running import opened, root_given
from agent_memory.errors import AgentMemoryError

if TYPE_CHECKING:
    from datetime import datetime

_COMPLETED = 50
"""Ids offered to a shell at most."""


def complete_category(incomplete: str) -> list[str]:
    """Return the built-in categories a shell may complete to."""
    from agent_memory.models import CATEGORIES

    return [name for name in CATEGORIES if name.startswith(incomplete)]


def complete_id(ctx: typer.Context, incomplete: str) -> list[tuple[str, str]]:
    """Return ids a shell may complete to, newest first, each with the beginning of its text."""
    from agent_memory.cli.text import one_line

    async def ids() -> list[tuple[str, str]]:
        from agent_memory.cli.choosing import choose_agent

        root = root_given(ctx)
        named = ctx.params.get("agent") or ctx.find_root().params.get("agent")
        async with opened(choose_agent(named, root, may_be_new=False), root) as service:
            memories = await service.admin.everything()
        found = [(memory.id, one_line(memory.content)[:60]) for memory in reversed(memories)]
        return [pair for pair in found if pair[0].startswith(incomplete)][:_COMPLETED]

    with contextlib.suppress(AgentMemoryError):
        return asyncio.run(ids())
    return []


def moment_of(text: str | None, option: str, *, end: bool) -> datetime | None:
    """Return the moment that a date on the command line means, None for none.

    Args:
        text: A date, or a date and time.
        option: Which option says so.
        end: Whether a bare date means the end of that day.

    Raises:
        typer.BadParameter: It is no date.
    """
    from agent_memory.models import parse_bound

    try:
        return None if text is None else parse_bound(text, end=end)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint=option) from None


def tags_of(given: list[str] | None) -> list[str]:
    """Return tags the way they are stored.

    Raises:
        typer.BadParameter: There are too many, or one is too long.
    """
    from agent_memory.models.record import normalise_tags

    try:
        return normalise_tags(given or [])
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--tag") from None


_ID_HELP = "Id of a memory, e.g. mem-a3f2c1b4e5d6, or the beginning of one."
MemoryId = Annotated[str, typer.Argument(metavar="ID", help=_ID_HELP, autocompletion=complete_id)]
MemoryIds = Annotated[
    list[str], typer.Argument(metavar="ID", help=_ID_HELP.replace("Id of", "Ids of"), autocompletion=complete_id)
]
Category = Annotated[
    str | None,
    typer.Option("--category", "-c", metavar="NAME", help="Only this category.", autocompletion=complete_category),
]
Tags = Annotated[
    list[str] | None, typer.Option("--tag", "-t", metavar="TAG", help="Only with this tag; may be repeated.")
]
Since = Annotated[str | None, typer.Option("--since", metavar="DATE", help="Stored on or after, e.g. 2026-01-30.")]
Until = Annotated[str | None, typer.Option("--until", metavar="DATE", help="Stored on or before.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
