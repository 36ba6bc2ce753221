"""Command that lists conflicts of memories and settles them."""

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Annotated, Final

import typer

from agent_memory.cli.decisions import Act, ReviewItem, is_terminal, walk
from agent_memory.cli.options import Yes, complete_id, resolve_ids
from agent_memory.cli.runtime import AgentContext, command
from agent_memory.cli.styled_text import StyledText
from agent_memory.cli.text import day
from agent_memory.errors import ValidationError
from agent_memory.files.wording import counted
from agent_memory.memory.views import view_pair

if TYPE_CHECKING:
    from agent_memory.cli.screen import OutputScreen
    from agent_memory.memory import Suspect
    from agent_memory.memory.conflict_review import Decision

_COLUMNS: Final = ("id", "other", "hint", "evidence")
_SHOWN: Final = 20
_LINES: Final = 3
_OUTCOMES: Final[dict["Decision", str]] = {
    "replace": "the newer memory replaces the older",
    "keep": "both memories hold",
    "not_same": "the memories are about different things",
}

_Id = Annotated[
    str | None, typer.Argument(metavar="ID", help="ID of the first memory of a pair.", autocompletion=complete_id)
]
_Other = Annotated[
    str | None, typer.Argument(metavar="OTHER", help="ID of the second memory.", autocompletion=complete_id)
]


@dataclass(frozen=True, kw_only=True)
class DecisionOptions:
    """Options that settle a pair, or all pairs."""

    replace: Annotated[bool, typer.Option("--replace", help="ID replaces OTHER; `undo OTHER` reverses that.")] = False
    keep: Annotated[bool, typer.Option("--keep", help="Keep both memories.")] = False
    not_same: Annotated[bool, typer.Option("--not-same", help="The memories are about different things.")] = False
    is_for_all: Annotated[bool, typer.Option("--all", help="Settle all pairs; without a decision, list all.")] = False

    @property
    def decisions(self) -> "list[Decision]":
        """Decisions on the command line."""
        chosen: dict[Decision, bool] = {"replace": self.replace, "keep": self.keep, "not_same": self.not_same}
        return [decision for decision, is_chosen in chosen.items() if is_chosen]


@command(DecisionOptions, rows=True)
async def conflicts(
    run: AgentContext,
    memory_id: _Id = None,
    other_id: _Other = None,
    *,
    look: Annotated[
        bool, typer.Option("--look", help="Compare all memories first; takes a few milliseconds each.")
    ] = False,
    yes: Yes = False,
) -> None:
    """Decide about pairs of memories that conflict.

    Their texts differ in one value or by a negation. A decision is carried out with the next key; [u]ndo cancels it.
    With --all, the question comes once; without a terminal, the pairs are listed.
    """
    chosen, is_for_all = run.get_options(DecisionOptions).decisions, run.get_options(DecisionOptions).is_for_all
    ids = [named for named in (memory_id, other_id) if named is not None]
    if bool(ids or chosen) and (len(chosen) != 1 or len(ids) != (0 if is_for_all else 2) or (ids and look)):
        raise ValidationError(
            "Nothing was settled: name the two memories of a pair, or --all, and one decision.",
            code="usage",
            recovery="Use one of --replace, --keep and --not-same; run it without arguments to list the pairs.",
        )
    if look:
        count = await run.service.writer.finder.compare_all(run.caller)
        run.screen.note(f"{counted(count, 'new pair')} found.")
    if ids:
        first_id, second_id = await resolve_ids(run.service, ids)
        await _settle(run, first_id, second_id, chosen[0])
    elif chosen:
        await _settle_all(run, chosen[0], yes=yes)
    elif run.screen.form == "text" and not is_for_all and is_terminal() and (waiting := await run.service.suspects()):
        await walk(run, [build_conflict_item(run, conflict) for conflict in waiting])
    else:
        await _list(run, has_looked=look, is_for_all=is_for_all)


async def _settle(run: AgentContext, memory_id: str, other_id: str, decision: "Decision") -> None:
    await run.service.writer.conflicts.decide(memory_id, other_id, decision, run.caller)
    run.screen.document({"id": memory_id, "other": other_id, "decision": decision})
    fields = {
        "replace": f"{memory_id} replaces {other_id} now. `agent-memory undo {other_id}` takes it back.",
        "keep": f"{memory_id} and {other_id} both hold.",
        "not_same": f"{memory_id} and {other_id} do not speak of the same matter.",
    }
    run.screen.show(run.screen.complete(fields[decision]))
    if decision != "replace":
        run.hint_undo()


async def _settle_all(run: AgentContext, decision: "Decision", *, yes: bool) -> None:
    """Settle all pairs alike, the latest first.

    At a terminal they are shown, and one question is asked. Those that an earlier replacement settles are skipped.
    """
    pairs: list[Suspect] = []
    replaced = set[str]()
    for conflict in await run.service.suspects():
        if replaced.isdisjoint((conflict.newer.id, conflict.older.id)):
            pairs.append(conflict)
            replaced.update([conflict.older.id] if decision == "replace" else ())
    if pairs and not yes and run.screen.form == "text" and is_terminal():
        for conflict in pairs:
            show_conflict(run.screen, conflict)
        run.confirm(f"Settle {counted(len(pairs), 'pair')}: {_OUTCOMES[decision]}?", "Nothing was settled.")
    for conflict in pairs:
        await run.service.writer.conflicts.decide(conflict.newer.id, conflict.older.id, decision, run.caller)
    rows = [{"id": conflict.newer.id, "other": conflict.older.id} for conflict in pairs]
    run.screen.document({"decision": decision, "settled": rows})
    run.screen.show(f"Settled {counted(len(pairs), 'pair')}: {_OUTCOMES[decision]}.")
    if pairs:
        run.hint_undo()


async def _list(run: AgentContext, *, has_looked: bool, is_for_all: bool) -> None:
    conflicts = await run.service.suspects()
    rows = [view_pair(conflict) for conflict in conflicts]
    run.screen.rows({"agent_id": run.service.agent_id, "suspects": rows}, "suspects", _COLUMNS)
    for conflict in conflicts if is_for_all else conflicts[:_SHOWN]:
        show_conflict(run.screen, conflict)
    if not conflicts:
        run.screen.note(f"No conflicts.{'' if has_looked else ' --look compares all memories.'}")
    elif run.screen.form == "text":
        if len(conflicts) > _SHOWN and not is_for_all:
            run.screen.note(f"\u2026 and {len(conflicts) - _SHOWN} more; --all lists them.")
        run.screen.hint("Settle one by `agent-memory conflicts ID OTHER` with --replace, --keep or --not-same.")


def build_conflict_item(run: AgentContext, conflict: "Suspect") -> ReviewItem:
    """Return a conflict as an item of a walk."""
    newer_id, older_id = conflict.newer.id, conflict.older.id
    outcomes = {**_OUTCOMES, "replace": "the first replaces the second"}

    def decide(decision: "Decision", memory_id: str = newer_id, other_id: str = older_id) -> Act:
        async def settle() -> None:
            await run.service.writer.conflicts.decide(memory_id, other_id, decision, run.caller)
            run.screen.show(f"Settled {memory_id} and {other_id}: {outcomes[decision]}.")

        return settle

    acts = {
        "n": ("[n]ewer", decide("replace")),
        "o": ("[o]lder", decide("replace", older_id, newer_id)),
        "b": ("[b]oth", decide("keep")),
        "d": ("[d]ifferent", decide("not_same")),
    }
    show = partial(show_conflict, run.screen, conflict)
    return ReviewItem(show, acts, memory_ids=(newer_id, older_id), replaced_by_key={"n": older_id, "o": newer_id})


def show_conflict(screen: "OutputScreen", conflict: "Suspect") -> None:
    """Print a pair that may be in conflict, the newer memory first."""
    newer, older = conflict.newer, conflict.older
    for which, memory in (("newer", newer), ("older", older)):
        screen.show(StyledText.assemble((f"{which}  {memory.id}", "bold"), (f"  {day(memory.moment)}", "dim")))
        screen.show(memory.content, indent=2, max_lines=_LINES)
    if conflict.evidence != f"now: {newer.content} / before: {older.content}":
        screen.show(conflict.evidence, indent=2, style="cyan")
    screen.show()
