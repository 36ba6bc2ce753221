"""The command `review`: decide about waiting notes and conflicts with single keys."""

import sys
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Annotated, Final

import typer

from agent_memory.cli.conflicts import show_conflict
from agent_memory.cli.inbox import edit_candidate, find_candidate, list_candidates, show_candidate
from agent_memory.cli.running import FAILED, Run, command
from agent_memory.files.wording import counted

if TYPE_CHECKING:
    from agent_memory.models import Candidate
    from agent_memory.privacy import Inbox
    from agent_memory.service import Suspect
    from agent_memory.service.disputes import Decision

Act = Callable[[], Awaitable[None]]
_ID: Final = "ID"
_REPLACE: Final = "s"
"""Key that replaces the older memory of a conflict."""
_CONTROL_C, _CONTROL_D, _ESCAPE = "\x03", "\x04", "\x1b"
_QUIT: Final = frozenset({"q", _CONTROL_C, _CONTROL_D, _ESCAPE, ""})


@dataclass(frozen=True, slots=True)
class ReviewItem:
    """Note or conflict to decide about.

    Attributes:
        show: Prints it.
        acts: By key, the label of a decision and what carries it out.
        immediate_keys: Keys of decisions that are carried out at once.
        memory_ids: Newer and older memory of a conflict; empty for a note.
    """

    show: Callable[[], None]
    acts: dict[str, tuple[str, Act]]
    immediate_keys: frozenset[str] = frozenset()
    memory_ids: tuple[str, ...] = ()

    @property
    def question(self) -> str:
        """Return the keys and their decisions, in one line."""
        return ", ".join([*(label for label, _ in self.acts.values()), "[n]ext", "[u]ndo", "[q]uit"]) + ": "

    def is_settled(self, replaced: "Mapping[int, str]") -> bool:
        """Return True if one of its memories was replaced by a decision."""
        return not set(replaced.values()).isdisjoint(self.memory_ids)


@command(rows=True)
async def review(
    run: Run,
    *,
    archived: Annotated[bool, typer.Option("--archived", help="List notes that waited too long.")] = False,
    restore: Annotated[
        list[str] | None,
        typer.Option("--restore", metavar=_ID, help="Return an archived note to the inbox; repeatable."),
    ] = None,
) -> None:
    """Decide about waiting notes and conflicts with single keys.

    A decision is carried out with the next key, so that [u]ndo takes it back; [e]dit is carried out at once. Without
    a terminal what waits is listed, and the command ends with 1 if anything does.
    """
    from agent_memory.privacy import opened_inbox

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
                await _walk(run, [*items, *(_conflict_item(run, conflict) for conflict in conflicts)])


def is_terminal() -> bool:
    """Return True if a person can be asked."""
    return sys.stdin.isatty() and sys.stdout.isatty()


def read_key(run: Run, question: str) -> str:
    """Print a question and return the key pressed, in lower case."""
    run.screen.err.print(question, end="", markup=False, highlight=False, soft_wrap=True)
    try:
        key = typer.getchar()
    except (KeyboardInterrupt, EOFError):
        key = _CONTROL_C
    run.screen.err.print(key if key.isprintable() else "", markup=False, highlight=False)
    return key.lower()


async def _restore(run: Run, inbox: "Inbox", words: list[str]) -> None:
    archived = await inbox.archived()
    notes = await inbox.restore([find_candidate(archived, word, archived=True).id for word in words])
    run.screen.document({"restored": [note.id for note in notes]})
    for note in notes:
        run.screen.show(f"{note.id} waits again.")


async def _list(run: Run, inbox: "Inbox", waiting: "list[Candidate]", conflicts: "list[Suspect]") -> None:
    """List what waits.

    Raises:
        typer.Exit: Something waits.
    """
    await list_candidates(run, inbox, waiting, "No note waits." if conflicts else "No note or conflict waits.")
    if conflicts:
        run.screen.hint(f"{counted(len(conflicts), 'conflict')}: `agent-memory conflicts` lists them.")
    if waiting or conflicts:
        raise typer.Exit(FAILED)


def _find_open(items: list[ReviewItem], position: int, replaced: dict[int, str], step: int = 1) -> int:
    """Return the nearest position that is not settled, or one past the end."""
    while 0 <= position < len(items) and items[position].is_settled(replaced):
        position += step
    return position


async def _walk(run: Run, items: list[ReviewItem]) -> None:
    """Show each item and apply decisions one key later.

    Pairs that an earlier decision settled are skipped.
    """
    pending: tuple[int, Act] | None = None
    decided = set[int]()
    replaced: dict[int, str] = {}  # by position of the decision
    position = 0
    while (position := _find_open(items, position, replaced)) < len(items):
        item = items[position]
        item.show()
        key = _ask(run, item)
        if key == "u":
            position = pending[0] if pending else max(0, _find_open(items, position - 1, replaced, -1))
            replaced.pop(position, None)
            pending = None
            continue
        if pending:
            await pending[1]()
            decided.add(pending[0])
        pending = None
        if key in _QUIT:
            break
        if key in item.immediate_keys:
            await item.acts[key][1]()
            decided.add(position)
        elif key in item.acts:
            pending = (position, item.acts[key][1])
        if key == _REPLACE and item.memory_ids:
            replaced[position] = item.memory_ids[-1]
        position += 1
    if pending and _confirms_last(run):
        await pending[1]()
        decided.add(pending[0])
    elif pending:
        replaced.pop(pending[0], None)
    left = sum(place not in decided and not item.is_settled(replaced) for place, item in enumerate(items))
    run.screen.note(f"{counted(len(decided), 'decision')} made; {left:,} {'is' if left == 1 else 'are'} left.")


def _ask(run: Run, item: ReviewItem) -> str:
    while True:
        key = read_key(run, item.question)
        if key in item.acts or key in _QUIT or key in {"n", "u"}:
            return key


def _confirms_last(run: Run) -> bool:
    return read_key(run, "[u]ndo the last decision, any other key ends: ") != "u"


def _note_item(run: Run, inbox: "Inbox", candidate: "Candidate") -> ReviewItem:
    async def keep() -> None:
        stored = await inbox.accept(candidate.id, run.caller)
        run.screen.show(f"Kept {stored.memory.id}.")

    async def reject() -> None:
        await inbox.reject([candidate.id], run.caller)
        run.screen.show(f"Rejected {candidate.id}; it is not offered again.")

    async def edit() -> None:
        await edit_candidate(run, inbox, candidate, None, {"accepted": [], "rejected": []})

    acts: dict[str, tuple[str, Act]] = {"k": ("[k]eep", keep), "e": ("[e]dit", edit), "r": ("[r]eject", reject)}
    return ReviewItem(partial(show_candidate, run, candidate), acts, frozenset("e"))


def _conflict_item(run: Run, conflict: "Suspect") -> ReviewItem:
    def decide(decision: "Decision") -> Act:
        async def settle() -> None:
            await run.service.disputes.decide(conflict.newer.id, conflict.older.id, decision, run.caller)
            run.screen.show(f"Settled {conflict.newer.id} and {conflict.older.id}.")

        return settle

    acts = {
        "k": ("[k]eep both", decide("keep")),
        _REPLACE: ("[s]upersede older", decide("replace")),
        "d": ("[d]ifferent matters", decide("not_same")),
    }
    memory_ids = conflict.newer.id, conflict.older.id
    return ReviewItem(partial(show_conflict, run.screen, conflict), acts, memory_ids=memory_ids)
