"""`agent-memory backfill`: import the sessions that another program has on this machine."""

import asyncio
from typing import Annotated, Final, Literal

import typer

from agent_memory.cli.options import Yes, parse_moment
from agent_memory.cli.runtime import AgentContext, command
from agent_memory.cli.source_import import ImportChoices, import_source

_LIMIT: Final = 10_000


@command(may_be_new=True)
async def backfill(
    run: AgentContext,
    program: Annotated[
        Literal["claude-code", "codex", "amplifier"],
        typer.Argument(metavar="PROGRAM", help="claude-code, codex or amplifier."),
    ],
    *,
    since: Annotated[
        str | None,
        typer.Option("--since", metavar="DATE", help="Only sessions that went on after DATE, e.g. 2026-01-30 or 30d."),
    ] = None,
    limit: Annotated[
        int, typer.Option("--limit", min=1, metavar="N", help="Begin no session after N new messages.")
    ] = _LIMIT,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show the sessions; store nothing.")] = False,
    yes: Yes = False,
) -> None:
    """Import the past sessions of a program; propose memories.

    The newest sessions come first. Proposals wait in the inbox. The same command again imports what is left.
    """
    from agent_memory.knowledge.session_backfill import BackfillScope, open_logs

    scope = BackfillScope(parse_moment(since, "--since", end=False), limit)
    tree = await asyncio.to_thread(open_logs, program, scope.since)
    choices = ImportChoices(f"backfill {program}".encode(), program, dry_run=dry_run, yes=yes, scope=scope)
    await import_source(run, tree, choices)
