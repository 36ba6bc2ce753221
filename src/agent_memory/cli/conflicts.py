"""Command that lists conflicts of memories and settles them."""

from typing import TYPE_CHECKING, Annotated, Final

import typer
from rich.text import Text

from agent_memory.cli.options import complete_id, resolved
from agent_memory.cli.running import Run, command
from agent_memory.cli.text import day
from agent_memory.errors import ValidationError
from agent_memory.files.wording import counted
from agent_memory.service.views import pair

if TYPE_CHECKING:
    from agent_memory.cli.screen import Screen
    from agent_memory.service import Suspect
    from agent_memory.service.disputes import Decision

_COLUMNS: Final = ("id", "other", "hint", "evidence")
_SHOWN: Final = 20
_LINES: Final = 3

_Id = Annotated[str | None, typer.Argument(metavar="ID", help="One of a pair.", autocompletion=complete_id)]
_Other = Annotated[str | None, typer.Argument(metavar="OTHER", help="The other.", autocompletion=complete_id)]


@command(rows=True)
async def conflicts(
    run: Run,
    memory_id: _Id = None,
    other_id: _Other = None,
    *,
    replace: Annotated[bool, typer.Option("--replace", help="ID replaces OTHER; `undo OTHER` takes it back.")] = False,
    keep: Annotated[bool, typer.Option("--keep", help="Both hold.")] = False,
    not_same: Annotated[bool, typer.Option("--not-same", help="They do not speak of the same matter.")] = False,
    look: Annotated[bool, typer.Option("--look", help="First compare all memories: some milliseconds each.")] = False,
) -> None:
    """List pairs of memories that conflict, or settle one.

    Their texts differ in one value or by a negation. A pair waits until a person decides.
    """
    decisions: dict[Decision, bool] = {"replace": replace, "keep": keep, "not_same": not_same}
    chosen = [decision for decision, is_wanted in decisions.items() if is_wanted]
    if memory_id is not None and other_id is not None and len(chosen) == 1 and not look:
        (memory_id,) = await resolved(run.service, [memory_id])
        (other_id,) = await resolved(run.service, [other_id])
        await _settle(run, memory_id, other_id, chosen[0])
        return
    if memory_id is not None or chosen:
        raise ValidationError(
            "Nothing was settled: name the two memories of a pair, and what becomes of them.",
            code="usage",
            recovery="One of --replace, --keep, --not-same; without arguments the pairs are listed.",
        )
    if look:
        found = await run.service.disputes.look(run.caller)
        run.screen.note(f"{counted(found, 'new pair')} found.")
    await _list(run, look=look)


async def _settle(run: Run, memory_id: str, other_id: str, decision: "Decision") -> None:
    await run.service.disputes.decide(memory_id, other_id, decision, run.caller)
    run.screen.document({"id": memory_id, "other": other_id, "decision": decision})
    said = {
        "replace": f"{memory_id} replaces {other_id} now. `agent-memory undo {other_id}` takes it back.",
        "keep": f"{memory_id} and {other_id} both hold.",
        "not_same": f"{memory_id} and {other_id} do not speak of the same matter.",
    }
    run.screen.show(run.screen.complete(said[decision]))


async def _list(run: Run, *, look: bool) -> None:
    waiting = await run.service.suspects()
    rows = [pair(each) for each in waiting]
    run.screen.rows({"agent_id": run.service.agent_id, "suspects": rows}, "suspects", _COLUMNS)
    for each in waiting[:_SHOWN]:
        show_conflict(run.screen, each)
    if not waiting:
        run.screen.note(f"No conflicts.{'' if look else ' --look compares all memories.'}")
    elif run.screen.form == "text":
        if len(waiting) > _SHOWN:
            run.screen.note(f"\u2026 and {len(waiting) - _SHOWN} more; --format table lists them all.")
        run.screen.hint("Settle one by `agent-memory conflicts ID OTHER` with --replace, --keep or --not-same.")


def show_conflict(screen: "Screen", each: "Suspect") -> None:
    """Print a pair that may be in conflict, the newer memory first."""
    newer, older = each.newer, each.older
    screen.show(Text.assemble((f"{newer.id} {older.id}", "bold"), (f"  {each.hint}", "yellow")))
    for which, memory in (("newer", newer), ("older", older)):
        screen.show(Text(f"{which}, {day(memory.observed_at or memory.timestamp)}", style="dim"), indent=2)
        screen.show(memory.content, indent=4, max_lines=_LINES)
    if each.evidence != f"now: {newer.content} / before: {older.content}":
        screen.show(each.evidence, indent=2, style="cyan")
    screen.show()
