"""The command `review`: decide about waiting notes and conflicts with single keys."""

from functools import partial
from typing import TYPE_CHECKING, Annotated, Final

import typer

from agent_memory.cli.conflicts import build_conflict_item
from agent_memory.cli.decisions import Act, ReviewItem, is_terminal, walk
from agent_memory.cli.exit_codes import FAILED
from agent_memory.cli.inbox import describe_accepted, edit_candidate, find_candidate, list_candidates, show_candidate
from agent_memory.cli.runtime import AgentContext, command
from agent_memory.files.wording import counted

if TYPE_CHECKING:
    from agent_memory.memory import Suspect
    from agent_memory.memory.inbox import Inbox
    from agent_memory.models import Candidate

_ID: Final = "ID"


@command(rows=True)
async def review(
    run: AgentContext,
    *,
    archived: Annotated[bool, typer.Option("--archived", help="List notes archived after four weeks.")] = False,
    restore: Annotated[
        list[str] | None,
        typer.Option("--restore", metavar=_ID, help="Return an archived note to the inbox; repeatable."),
    ] = None,
) -> None:
    """Decide about waiting notes and conflicts with single keys.

    A decision is carried out with the next key, so that [u]ndo takes it back; [e]dit is carried out at once. Without
    a terminal the waiting items are listed, and the command exits with 1 if there are any.
    """
    from agent_memory.memory.inbox_access import opened_inbox

    async with opened_inbox(run.service) as inbox:
        if restore:
            await _restore(run, inbox, restore)
        elif archived:
            await list_candidates(run, inbox, await inbox.archived(), "No note is archived.")
        else:
            waiting, conflicts = await inbox.waiting(), await run.service.suspects()
            if run.screen.form != "text" or not is_terminal():
                await _list(run, inbox, waiting, conflicts)
            else:
                items = [_note_item(run, inbox, candidate) for candidate in waiting]
                await walk(run, [*items, *(build_conflict_item(run, conflict) for conflict in conflicts)])


async def _restore(run: AgentContext, inbox: "Inbox", words: list[str]) -> None:
    archived = await inbox.archived()
    notes = await inbox.restore([find_candidate(archived, word, archived=True).id for word in words])
    run.screen.document({"restored": [note.id for note in notes]})
    for note in notes:
        run.screen.show(f"{note.id} waits again.")


async def _list(run: AgentContext, inbox: "Inbox", waiting: "list[Candidate]", conflicts: "list[Suspect]") -> None:
    """List what waits.

    Raises:
        typer.Exit: Something waits.
    """
    await list_candidates(run, inbox, waiting, "No note waits." if conflicts else "No note or conflict waits.")
    if conflicts:
        run.screen.hint(f"{counted(len(conflicts), 'conflict')}: `agent-memory conflicts` lists them.")
    if waiting or conflicts:
        raise typer.Exit(FAILED)


def _note_item(run: AgentContext, inbox: "Inbox", candidate: "Candidate") -> ReviewItem:
    async def keep() -> None:
        stored = await inbox.accept(candidate.id, run.caller)
        run.screen.show(describe_accepted(candidate, stored) if candidate.act else f"Kept {stored.memory.id}.")

    async def reject() -> None:
        await inbox.reject([candidate.id], run.caller)
        run.screen.show(f"Rejected {candidate.id}{'.' if candidate.act else '; it is not offered again.'}")

    async def edit() -> None:
        await edit_candidate(run, inbox, candidate, None, {"accepted": [], "rejected": []})

    acts: dict[str, tuple[str, Act]] = {"k": ("[k]eep", keep), "e": ("[e]dit", edit), "r": ("[r]eject", reject)}
    if candidate.act:
        acts = {"y": ("[y]es", keep), "r": ("[r]eject", reject)}
    return ReviewItem(partial(show_candidate, run, candidate), acts, frozenset("e"))
