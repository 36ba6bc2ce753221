"""Commands that take away: forget, compact."""

import sys
from typing import TYPE_CHECKING

from agent_memory.cli.parameters import MemoryIds, Yes
from agent_memory.cli.running import FAILED, Run
from agent_memory.errors import ValidationError

if TYPE_CHECKING:
    from agent_memory.models import Memory


async def forget(run: Run, memory_id: MemoryIds, *, yes: Yes = False) -> None:
    """Forget memories and the older versions they replaced."""
    from agent_memory.cli.ids import resolved

    wanted = await resolved(run.service, memory_id)
    memories = [await run.service.get(each) for each in wanted]
    if not yes:
        await _confirm(run, memories)
    documents = []
    gone: set[str] = set()
    for memory in memories:
        if memory.id in gone:
            continue  # an older version of one before it
        forgotten = await run.service.forget(memory.id, run.caller)
        older = list(forgotten.older_versions)
        gone |= {memory.id, *older}
        documents.append({"memory_id": memory.id, "forgotten": True, "older_versions": older})
        run.screen.document(documents[0] if len(documents) == 1 else {"memories": documents})
        also = f", and with it {', '.join(older)}, which it had replaced" if older else ""
        run.screen.show(f"Forgot {memory.id}{also}.")


async def compact(run: Run) -> None:
    """Drop from the files what was forgotten over 30 days ago."""
    from agent_memory.cli.text import counted
    from agent_memory.storage import folder_of

    journal = folder_of(run.service.agent_id, run.root).journal
    before = journal.stat().st_size if journal.exists() else 0
    if before:
        await run.service.storage.compact()
    after = journal.stat().st_size if before else 0
    run.screen.document({"bytes_before": before, "bytes_after": after})
    run.screen.show(f"{journal.name}: {counted(before, 'byte')} before, {counted(after, 'byte')} now.")


async def _confirm(run: Run, memories: "list[Memory]") -> None:
    import typer

    check_terminal("Forgetting asks first, and there is no terminal to ask on. Nothing was forgotten.")
    for memory in memories:
        older = await run.service.storage.older_versions(memory.id)
        run.screen.note(memory.content, style="")
        if older:
            run.screen.note(f"It replaced {', '.join(older)}; that would be forgotten, too.")
    run.screen.last_words = lambda: "Stopped. Nothing was forgotten."
    what = memories[0].id if len(memories) == 1 else f"these {len(memories)}"
    if not run.screen.ask(f"Forget {what}?"):
        run.screen.note("Nothing was forgotten.")
        raise typer.Exit(FAILED)
    run.screen.last_words = lambda: "Stopped."


def check_terminal(sentence: str) -> None:
    """Refuse to ask where nobody can answer.

    Raises:
        ValidationError: Stdin is no terminal.
    """
    if not sys.stdin.isatty():
        raise ValidationError(sentence, code="usage", recovery="Say --yes if you are sure.")
