"""Decide about waiting items with single keys and undo."""

import sys
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import typer

from agent_memory.files.wording import counted

if TYPE_CHECKING:
    from agent_memory.cli.runtime import AgentContext

Act = Callable[[], Awaitable[None]]
_SKIP, _UNDO = "s", "u"
_CONTROL_D, _ESCAPE = "\x04", "\x1b"
_HELP: Final = (
    "Press a letter in brackets. A decision is carried out with the next key. Skip leaves it waiting; undo goes back."
)
_QUIT: Final = frozenset({"q", _CONTROL_D, _ESCAPE, ""})


@dataclass(frozen=True, slots=True)
class ReviewItem:
    """Note or conflict to decide about.

    Attributes:
        show: Function that prints the note or conflict.
        acts: Label and function of each decision by key.
        immediate_keys: Keys of decisions applied at once.
        memory_ids: IDs of both memories of a conflict; empty for a note.
        replaced_by_key: ID of the replaced memory by decision key.
    """

    show: Callable[[], None]
    acts: dict[str, tuple[str, Act]]
    immediate_keys: frozenset[str] = frozenset()
    memory_ids: tuple[str, ...] = ()
    replaced_by_key: dict[str, str] = field(default_factory=dict)

    @property
    def question(self) -> str:
        """Return the keys and their decisions, in one line."""
        return ", ".join([*(label for label, _ in self.acts.values()), "[s]kip", "[u]ndo", "[q]uit"]) + ": "

    def is_settled(self, replaced: "Mapping[int, str]") -> bool:
        """Return True if one of its memories was replaced by a decision."""
        return not set(replaced.values()).isdisjoint(self.memory_ids)


def is_terminal() -> bool:
    """Return True if a person can be asked."""
    return sys.stdin.isatty() and sys.stdout.isatty()


def read_key(run: "AgentContext", question: str) -> str:
    """Print a question and return the key pressed, in lower case.

    Raises:
        KeyboardInterrupt: Ctrl-C.
    """
    run.screen.prompt(question)
    try:
        key = typer.getchar()
    except EOFError:
        key = _CONTROL_D
    except KeyboardInterrupt:
        run.screen.prompt("\n")
        raise
    run.screen.prompt(f"{key}\n" if key.isprintable() else "\n")
    return key.lower()


async def walk(run: "AgentContext", items: list[ReviewItem]) -> None:
    """Show each item and apply decisions one key later.

    Pairs that an earlier decision settled are skipped. Ctrl-C drops the decision that waits for the next key.
    """
    pending: tuple[int, Act] | None = None
    decided = set[int]()
    run.screen.last_words = lambda: _describe_stop(len(decided), is_dropped=pending is not None)
    replaced: dict[int, str] = {}  # by position of the decision
    position = 0
    while (position := _find_open(items, position, replaced)) < len(items):
        item = items[position]
        item.show()
        key = _ask(run, item)
        if key == _UNDO:
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
        if key in item.replaced_by_key:
            replaced[position] = item.replaced_by_key[key]
        position += 1
    if pending and _confirms_last(run):
        await pending[1]()
        decided.add(pending[0])
    elif pending:
        replaced.pop(pending[0], None)
    open_count = sum(place not in decided and not item.is_settled(replaced) for place, item in enumerate(items))
    run.screen.note(
        f"{counted(len(decided), 'decision')} made; {open_count:,} {'is' if open_count == 1 else 'are'} left."
    )


def _describe_stop(decisions: int, *, is_dropped: bool) -> str:
    dropped = " The last one was not carried out." if is_dropped else ""
    return f"Stopped. {counted(decisions, 'decision')} made.{dropped}"


def _find_open(items: list[ReviewItem], position: int, replaced: dict[int, str], step: int = 1) -> int:
    """Return the position of the nearest undecided item, or the end."""
    while 0 <= position < len(items) and items[position].is_settled(replaced):
        position += step
    return position


def _ask(run: "AgentContext", item: ReviewItem) -> str:
    while True:
        key = read_key(run, item.question)
        if key in item.acts or key in _QUIT or key in {_SKIP, _UNDO}:
            return key
        run.screen.note(_HELP)


def _confirms_last(run: "AgentContext") -> bool:
    return read_key(run, "[u]ndo the last decision, any other key ends: ") != _UNDO
