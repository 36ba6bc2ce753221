"""`agent-memory store`: store a memory."""

import shlex
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from agent_memory.cli.edit import note_memories_to_compare, note_redacted, offer_keeping, read_new_text
from agent_memory.cli.options import NewCategory, NotSecret, Offered, parse_moment, parse_tags, resolve_ids
from agent_memory.cli.runtime import AgentContext, command
from agent_memory.cli.text import describe_end, minute
from agent_memory.memory.views import list_unused, view_similar, view_suspects, view_trace
from agent_memory.models.record import view_fields
from agent_memory.models.text import brief

if TYPE_CHECKING:
    from agent_memory.memory import Stored


@dataclass(frozen=True, kw_only=True)
class NewMemoryOptions:
    """Options that place a new memory."""

    project: Annotated[str, typer.Option("--project", metavar="NAME", help="Project of the memory.")] = ""
    pin: Annotated[bool, typer.Option("--pin", help="Keep it at the top of the scratchpad.")] = False
    not_secret: NotSecret = False


@command(NewMemoryOptions, Offered, may_be_new=True)
async def store(
    run: AgentContext,
    content: Annotated[str, typer.Argument(metavar="TEXT", help="What to remember; '-' reads it from stdin.")],
    category: NewCategory = "note",
    tag: Annotated[list[str] | None, typer.Option("--tag", "-t", metavar="TAG", help="Add a tag; repeatable.")] = None,
    supersedes: Annotated[
        str | None, typer.Option(metavar="ID", help="ID of the memory that this one replaces.")
    ] = None,
    expires: Annotated[str | None, typer.Option(metavar="DATE", help="Day after which it is no longer found.")] = None,
) -> None:
    """Store a memory; secrets in it are removed first."""
    # What a program pipes in need not be what a person said: only a terminal vouches for that.
    text = read_new_text(run, content, not_secret=run.get_options(NewMemoryOptions).not_secret)
    values = {
        **run.values(Offered),
        "content": text,
        "category": await run.category(category),
        "tags": parse_tags(tag),
        "supersedes": None if supersedes is None else (await resolve_ids(run.service, [supersedes]))[0],
        "expires_at": parse_moment(expires, "--expires", end=True, is_ahead=True),
        "pinned": run.get_options(NewMemoryOptions).pin,
        "project": run.get_options(NewMemoryOptions).project,
        "source": {"kind": "user", "detail": "command line"},
        "origin": "typed" if sys.stdin.isatty() else "unknown",
        "trust": "high" if sys.stdin.isatty() else "medium",
    }
    stored = await run.service.store(values, run.caller)
    unused = list_unused(values, stored.memory)
    tags = [("tag", unused_tag) for unused_tag in unused.pop("tags", ())]
    await _show_stored(run, stored, [*unused.items(), *tags])
    if stored.redacted:
        await offer_keeping(run, stored.memory.id, text)


async def _show_stored(run: AgentContext, stored: "Stored", unused: list[tuple[str, str]]) -> None:
    """Report what was stored, and what was not."""
    memory = stored.memory
    run.screen.document(
        {
            "memory_id": memory.id,
            **view_fields(memory, stored_at="timestamp", expires_at="expires_at"),
            **view_fields(stored, "in_scratchpad", "backend", "duplicate", "redacted"),
            "released": view_trace(stored.trace) if stored.trace else None,
            "suspects": view_suspects(stored.suspects),
            "similar": view_similar(stored.similar),
            "replaced": stored.replaced,
        }
    )
    note_redacted(run, stored.redacted)
    if stored.trace:
        run.screen.note(f"That was forgotten on {minute(stored.trace.at)}: {stored.trace.reason}. It is stored again.")
    if stored.replaced:
        replaced = (await run.service.get(stored.replaced)).content
        run.screen.note(f"It replaces {stored.replaced}: {brief(replaced)}")
    run.screen.show(f"{memory.id} says that already." if stored.duplicate else f"Stored as {memory.id}.")
    if stored.duplicate and unused:
        options = " ".join(f"--{name} {shlex.quote(word)}" for name, word in unused)
        run.screen.hint(f"It keeps its own category and tags. Change them: agent-memory update {memory.id} {options}")
    if memory.expires_at is not None:
        run.screen.note(f"Found until {describe_end(memory.expires_at)}.")
    note_memories_to_compare(run, stored)
    if not stored.duplicate:
        run.hint_undo(memory.id)
