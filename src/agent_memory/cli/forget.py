"""Commands that take away: forget, compact."""

from datetime import datetime, timedelta
from pathlib import Path
from typing import Annotated

import typer

from agent_memory.cli.options import MemoryIds, Yes, resolved
from agent_memory.cli.running import Run
from agent_memory.cli.text import counted, day
from agent_memory.files.entries import names_in
from agent_memory.files.layout import folder_of
from agent_memory.files.names import sort_of
from agent_memory.models import Memory

_FOR_GOOD = "Nothing that was forgotten or changed, lately or now, can be brought back after that."


async def forget(
    run: Run,
    memory_id: MemoryIds,
    *,
    now: Annotated[bool, typer.Option("--now", help="Take the text out of the journal at once: no restore.")] = False,
    yes: Yes = False,
) -> None:
    """Forget memories and the older versions they replaced.

    Found no more from now on. The text stays in the journal for 30 days at least, so that `restore` can bring it back;
    `--now`, or `compact --now` later, ends that.
    """
    wanted = await resolved(run.service, memory_id)
    memories = [await run.service.get(each) for each in wanted]
    if not yes:
        await _confirm(run, memories, now=now)
    until, gone = None, set[str]()
    documents = []
    for memory in memories:
        if memory.id in gone:
            continue  # an older version of one before it
        forgotten = await run.service.forget(memory.id, run.caller)
        older = list(forgotten.older_versions)
        until = None if now else forgotten.kept_until
        gone |= {memory.id, *older}
        kept = {} if until is None else {"kept_until": until.isoformat()}
        documents.append({"memory_id": memory.id, "forgotten": True, "older_versions": older, **kept})
        run.screen.document(documents[0] if len(documents) == 1 else {"memories": documents})
        also = f", and with it {', '.join(older)}, which it had replaced" if older else ""
        run.screen.show(f"Forgot {memory.id}{also}.")
    if now:
        await _fold_all(run)
    else:
        _tell_until(run, memories[0].id, until)


async def compact(
    run: Run,
    *,
    now: Annotated[
        bool, typer.Option("--now", help="Also what was forgotten or changed a moment ago: no restore.")
    ] = False,
    yes: Yes = False,
) -> None:
    """Drop from the files what was forgotten or changed over 30 days ago."""
    journal = folder_of(run.service.agent_id, run.root).journal
    if now and not yes:
        run.need_terminal("Nothing was changed.")
        run.confirm(f"{_FOR_GOOD}\nRemove all of that from {journal.name}?", "Nothing was changed.")
    before = journal.stat().st_size if journal.exists() else 0
    if before and now:
        await _fold_all(run)
    elif before:
        await run.service.admin.compact()
    after = journal.stat().st_size if before else 0
    run.screen.document({"bytes_before": before, "bytes_after": after})
    run.screen.show(f"{journal.name}: {counted(before, 'byte')} before, {counted(after, 'byte')} now.")


async def _fold_all(run: Run) -> None:
    """Take out of the journal what is not known any more, and name the files that were not looked into."""
    await run.service.settle()
    await run.service.admin.compact(timedelta(0))
    folder = folder_of(run.service.agent_id, run.root)
    run.screen.show(f"The text is gone from {folder.journal.name} and from what is made of it.")
    if copies := _copies(folder.path):
        run.screen.note(f"Not looked into, and perhaps still with it: {', '.join(copies)}.")
    run.screen.note("Exports, backups and what a model was shown are beyond reach.", style="dim")


def _copies(folder: Path) -> list[str]:
    """Return the names of files beside the journal and the scratchpad that may hold what they once did."""
    names = (name for name in names_in(folder) if name.startswith(("memories", "scratchpad")))
    return [name for name in names if sort_of(name) != "ours"]


def _tell_until(run: Run, memory_id: str, until: datetime | None) -> None:
    if until is not None:
        run.screen.note(
            f"Until {day(until)} at least, the text stays in memories.yaml, and `agent-memory restore {memory_id}` "
            "brings it back. `agent-memory compact --now` ends that.",
            style="dim",
        )


async def _confirm(run: Run, memories: list[Memory], *, now: bool) -> None:
    run.need_terminal("Nothing was forgotten.", "Forgetting")
    for memory in memories:
        older = await run.service.admin.older_versions(memory.id)
        if len(memories) > 1:
            run.screen.note(f"{memory.id}:", style="dim")
        run.screen.note(memory.content, style="")
        if older:
            run.screen.note(f"It replaced {', '.join(older)}; that would be forgotten, too.")
    what = memories[0].id if len(memories) == 1 else f"these {len(memories)}"
    if now:
        run.screen.note(_FOR_GOOD)
    run.confirm(f"Forget {what}{' for good' if now else ''}?", "Nothing was forgotten.")
