"""Commands that change something: store, promote, pin, unpin, forget, compact."""

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from agent_memory.cli.parameters import MemoryId, check_category, complete_category
from agent_memory.cli.running import FAILED, Run
from agent_memory.errors import ValidationError

if TYPE_CHECKING:
    from agent_memory.models import Memory

_MAX_INPUT_CHARS = 100_000
"""Read from stdin at most; a memory has a tenth of it, and the error about that is the service's."""


async def store(
    run: Run,
    content: Annotated[str, typer.Argument(metavar="TEXT", help="What to remember; '-' reads it from stdin.")],
    category: Annotated[
        str,
        typer.Option(
            "--category",
            "-c",
            metavar="NAME",
            help="What kind.",
            callback=check_category,
            autocompletion=complete_category,
        ),
    ] = "note",
    tag: Annotated[list[str] | None, typer.Option("--tag", "-t", metavar="TAG", help="May be repeated.")] = None,
    supersedes: Annotated[str | None, typer.Option(metavar="ID", help="The memory this makes untrue.")] = None,
    expires: Annotated[str | None, typer.Option(metavar="DATE", help="Found until the end of that day.")] = None,
    *,
    pin: Annotated[bool, typer.Option("--pin", metavar="", help="Keep it at the top of the scratchpad.")] = False,
) -> None:
    """Keep a memory; secrets in it are removed first."""
    # What a program pipes in need not be what a person said: only a terminal vouches for that.
    values = {
        "content": sys.stdin.read(_MAX_INPUT_CHARS) if content == "-" else content,
        "category": category,
        "tags": tag or [],
        "supersedes": supersedes,
        "expires_at": _end_of(expires),
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
    _note_redacted(run, stored.redacted)
    run.screen.show(f"{memory.id} says that already." if stored.duplicate else f"Stored as {memory.id}.")


async def promote(run: Run, memory_id: MemoryId) -> None:
    """Bring a memory into the scratchpad, which the agent always sees."""
    promoted = await run.service.promote(memory_id, run.caller)
    run.screen.document(
        {
            "memory_id": promoted.memory_id,
            "promoted": promoted.promoted,
            "evicted": promoted.evicted,
            "scratchpad_size": promoted.scratchpad_size,
        }
    )
    what = "is in the scratchpad now" if promoted.promoted else "was in the scratchpad already"
    evicted = f" {promoted.evicted} had to leave it." if promoted.evicted else ""
    run.screen.show(f"{memory_id} {what}, one of {promoted.scratchpad_size}.{evicted}")


async def pin(run: Run, memory_id: MemoryId) -> None:
    """Keep a memory at the top of the scratchpad."""
    memory = await _set_pinned(run, memory_id, pinned=True)
    if memory.trust == "low":
        run.screen.note("It came from an untrusted source, so the scratchpad does not show it all the same.")


async def unpin(run: Run, memory_id: MemoryId) -> None:
    """Let a memory take its turn in the scratchpad again."""
    await _set_pinned(run, memory_id, pinned=False)


async def forget(
    run: Run,
    memory_id: MemoryId,
    *,
    yes: Annotated[bool, typer.Option("--yes", "-y", metavar="", help="Do not ask.")] = False,
) -> None:
    """Forget a memory and the older versions it replaced."""
    memory = await run.service.get(memory_id)
    if not yes:
        await _confirm(run, memory)
    forgotten = await run.service.forget(memory_id, run.caller)
    older = list(forgotten.older_versions)
    run.screen.document({"memory_id": memory_id, "forgotten": True, "older_versions": older})
    also = f", and with it {', '.join(older)}, which it had replaced" if older else ""
    run.screen.show(f"Forgot {memory_id}{also}.")


async def compact(run: Run) -> None:
    """Drop from the files what was forgotten over 30 days ago."""
    from agent_memory.cli.text import counted  # noqa: PLC0415 - not before a command runs
    from agent_memory.storage import folder_of  # noqa: PLC0415

    journal = folder_of(run.service.agent_id, run.root).journal
    before = journal.stat().st_size if journal.exists() else 0
    if before:
        await run.service.storage.compact()
    after = journal.stat().st_size if before else 0
    run.screen.document({"bytes_before": before, "bytes_after": after})
    run.screen.show(f"{journal.name}: {counted(before, 'byte')} before, {counted(after, 'byte')} now.")


async def _set_pinned(run: Run, memory_id: str, *, pinned: bool) -> "Memory":
    updated = await run.service.update(memory_id, {"pinned": pinned}, run.caller)
    changed = bool(updated.fields)
    run.screen.document({"memory_id": memory_id, "pinned": pinned, "changed": changed})
    state = "pinned" if pinned else "not pinned"
    run.screen.show(f"{memory_id} is {state} now." if changed else f"{memory_id} was {state} already.")
    return updated.memory


async def _confirm(run: Run, memory: "Memory") -> None:
    if not sys.stdin.isatty():
        raise ValidationError(
            "Forgetting asks first, and there is no terminal to ask on. Nothing was forgotten.",
            code="usage",
            recovery="Say --yes if you are sure.",
        )
    older = await run.service.storage.older_versions(memory.id)
    run.screen.note(memory.content, style="")
    if older:
        run.screen.note(f"It replaced {', '.join(older)}; that would be forgotten, too.")
    if not typer.confirm(f"Forget {memory.id}?", err=True):
        run.screen.note("Nothing was forgotten.")
        raise typer.Exit(FAILED)


def _note_redacted(run: Run, kinds: tuple[str, ...]) -> None:
    if kinds:
        run.screen.note(f"A secret was removed ({', '.join(kinds)}); secrets are never stored.")


def _end_of(expires: str | None) -> object:
    from agent_memory.models import parse_bound  # noqa: PLC0415 - not before a command runs

    try:
        return None if expires is None else parse_bound(expires, end=True)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--expires") from None
