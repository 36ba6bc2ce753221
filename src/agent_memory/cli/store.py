"""Commands that change something: store, update, promote, pin, unpin."""

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agent_memory.cli.options import MemoryId, MemoryIds, NewCategory, moment_of, resolved, tags_of
from agent_memory.cli.running import Run, command
from agent_memory.errors import ValidationError
from agent_memory.service.views import promotion

if TYPE_CHECKING:
    from agent_memory.models import Memory
    from agent_memory.service import Updated

_MAX_INPUT_CHARS = 100_000
"""Read from stdin at most; a memory has a tenth of it, and the error about that is the service's."""


@command(may_be_new=True)
async def store(
    run: Run,
    content: Annotated[str, typer.Argument(metavar="TEXT", help="What to remember; '-' reads it from stdin.")],
    category: NewCategory = "note",
    tag: Annotated[list[str] | None, typer.Option("--tag", "-t", metavar="TAG", help="May be repeated.")] = None,
    supersedes: Annotated[str | None, typer.Option(metavar="ID", help="The memory this makes untrue.")] = None,
    expires: Annotated[str | None, typer.Option(metavar="DATE", help="Found until the end of that day.")] = None,
    *,
    pin: Annotated[bool, typer.Option("--pin", help="Keep it at the top of the scratchpad.")] = False,
) -> None:
    """Keep a memory; secrets in it are removed first."""
    # What a program pipes in need not be what a person said: only a terminal vouches for that.
    values = {
        "content": _given(content),
        "category": await run.category(category),
        "tags": tags_of(tag),
        "supersedes": None if supersedes is None else (await resolved(run.service, [supersedes]))[0],
        "expires_at": moment_of(expires, "--expires", end=True),
        "pinned": pin,
        "source": {"kind": "user", "detail": "command line"},
        "trust": "high" if sys.stdin.isatty() else "medium",
    }
    stored = await run.service.store(values, run.caller)
    memory = stored.memory
    run.screen.document(
        {
            "memory_id": memory.id,
            "stored_at": memory.model_dump(mode="json")["timestamp"],
            "in_scratchpad": stored.in_scratchpad,
            "backend": stored.backend,
            "duplicate": stored.duplicate,
            "redacted": list(stored.redacted),
        }
    )
    note_redacted(run, stored.redacted)
    run.screen.show(f"{memory.id} says that already." if stored.duplicate else f"Stored as {memory.id}.")


@dataclass(frozen=True, kw_only=True)
class Changes:
    """What `update` changes."""

    content: Annotated[
        str | None, typer.Option("--content", metavar="TEXT", help="The new text; '-' reads it from stdin.")
    ] = None
    category: NewCategory = None
    tag: Annotated[list[str] | None, typer.Option("--tag", "-t", metavar="TAG", help="Add a tag; repeatable.")] = None
    untag: Annotated[list[str] | None, typer.Option("--untag", metavar="TAG", help="Take a tag away.")] = None
    expires: Annotated[
        str | None, typer.Option("--expires", metavar="DATE", help="Found until the end of that day; 'never' for good.")
    ] = None
    pin: Annotated[bool, typer.Option("--pin", help="Keep it at the top of the scratchpad.")] = False
    unpin: Annotated[bool, typer.Option("--unpin", help="Let it take its turn there again.")] = False


@command(Changes)
async def update(run: Run, memory_id: MemoryId) -> None:
    """Change fields of a memory; what is not named stays."""
    new = run.given(Changes)
    if new.pin and new.unpin:
        raise typer.BadParameter("--pin and --unpin cannot both be", param_hint="--pin")
    (memory_id,) = await resolved(run.service, [memory_id])
    changes: dict[str, Any] = {}
    if new.content is not None:
        changes["content"] = _given(new.content)
    if new.category is not None:
        changes["category"] = await run.category(new.category)
    if new.tag or new.untag:
        before, gone = (await run.service.get(memory_id)).tags, set(tags_of(new.untag))
        changes["tags"] = [each for each in dict.fromkeys([*before, *tags_of(new.tag)]) if each not in gone]
    if new.expires is not None:
        changes["expires_at"] = None if new.expires == "never" else moment_of(new.expires, "--expires", end=True)
    if new.pin or new.unpin:
        changes["pinned"] = new.pin
    if not changes:
        raise ValidationError(
            "There is nothing to change.",
            code="usage",
            recovery="Name at least one of --content, --category, --tag, --untag, --expires, --pin and --unpin.",
        )
    show_updated(run, await run.service.update(memory_id, changes, run.caller))


def show_updated(run: Run, updated: "Updated") -> None:
    """Say what an update changed."""
    memory_id, what = updated.memory.id, ", ".join(updated.fields)
    run.screen.document({"memory_id": memory_id, "changed": list(updated.fields), "redacted": list(updated.redacted)})
    note_redacted(run, updated.redacted)
    run.screen.show(f"Changed {what} of {memory_id}." if what else "Nothing was changed.")


async def promote(run: Run, memory_id: MemoryId) -> None:
    """Bring a memory into the scratchpad, which the agent always sees."""
    (memory_id,) = await resolved(run.service, [memory_id])
    promoted = await run.service.promote(memory_id, run.caller)
    run.screen.document(promotion(promoted))
    what = "is in the scratchpad now" if promoted.promoted else "was in the scratchpad already"
    evicted = f" {promoted.evicted} had to leave it." if promoted.evicted else ""
    run.screen.show(f"{memory_id} {what}, one of {promoted.scratchpad_size}.{evicted}")


async def pin(run: Run, memory_id: MemoryIds) -> None:
    """Keep memories at the top of the scratchpad."""
    for memory in await _set_pinned(run, memory_id, pinned=True):
        if memory.trust == "low":
            run.screen.note(
                f"{memory.id} came from an untrusted source, so the scratchpad does not show it all the same."
            )


async def unpin(run: Run, memory_id: MemoryIds) -> None:
    """Let memories take their turn in the scratchpad again."""
    await _set_pinned(run, memory_id, pinned=False)


async def _set_pinned(run: Run, words: list[str], *, pinned: bool) -> "list[Memory]":
    memories, documents = [], []
    state = "pinned" if pinned else "not pinned"
    for memory_id in await resolved(run.service, words):
        updated = await run.service.update(memory_id, {"pinned": pinned}, run.caller)
        changed = bool(updated.fields)
        memories.append(updated.memory)
        documents.append({"memory_id": memory_id, "pinned": pinned, "changed": changed})
        run.screen.document(documents[0] if len(documents) == 1 else {"memories": documents})
        run.screen.show(f"{memory_id} is {state} now." if changed else f"{memory_id} was {state} already.")
    return memories


def note_redacted(run: Run, kinds: tuple[str, ...]) -> None:
    """Say that secrets were removed, if any were."""
    if kinds:
        run.screen.note(f"A secret was removed ({', '.join(kinds)}); secrets are never stored.")


def _given(text: str) -> str:
    return sys.stdin.read(_MAX_INPUT_CHARS) if text == "-" else text
