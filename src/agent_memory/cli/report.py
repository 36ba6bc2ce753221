"""What became of many memories that were brought from one place to another: counted, and told at the end."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any, Final

import typer

from agent_memory.cli.running import FAILED
from agent_memory.cli.text import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from agent_memory.cli.screen import Screen
    from agent_memory.service.writing import Imported

_SHOWN_PROBLEMS: Final = 20


class Report:
    """Counts what became of each memory, and says so once.

    Args:
        screen: Where to.
        done: The verb in the past, such as `Imported`.
        labels: What each of the memories to come is called where one is refused: its id, or `line 7`.
        there: Where those are that were there already: `here` or `there`.
        more: Counts to begin with, beside those that every report has.

    Attributes:
        unknown_fields: Fields of a file that were left aside; None where there is no file.
    """

    def __init__(
        self,
        screen: Screen,
        done: str,
        labels: Sequence[str],
        *,
        there: str = "here",
        more: dict[str, int] | None = None,
    ) -> None:
        self._screen = screen
        self._done, self._there = done, there
        self._labels = labels
        self._told = 0
        self.counts = {"stored": 0, "present": 0, "differs": 0, "refused": 0, **(more or {})}
        self.problems: list[dict[str, Any]] = []
        self.redacted: dict[str, None] = {}
        self.unknown_fields: dict[str, None] | None = None
        screen.last_words = self._stopped

    def refuse(self, label: str, problem: str) -> None:
        """Count one that cannot even be tried."""
        self.counts["refused"] += 1
        self._note(label, problem)

    def note(self, imported: Imported) -> None:
        """Count the next memory."""
        self.counts[imported.outcome] += 1
        if imported.lowered:
            self.counts["lowered"] = self.counts.get("lowered", 0) + 1
        if imported.raised:
            self.counts["raised"] = self.counts.get("raised", 0) + 1
        self.redacted.update(dict.fromkeys(imported.redacted))
        if imported.error is not None:
            self._note(self._labels[self._told], imported.error.message)
        self._told += 1

    @contextlib.contextmanager
    def counting(self, doing: str) -> Iterator[Callable[[Imported], None]]:
        """Hand out what takes the outcome of each memory; show a bar meanwhile, and the counts however it ends."""
        try:
            with self._screen.progress() as progress:
                task = progress.add_task(doing, total=len(self._labels))

                def each(imported: Imported) -> None:
                    self.note(imported)
                    progress.advance(task)

                yield each
        finally:
            self.show()  # also when the disk is full or the server lost half-way: what was counted is there

    def show(self) -> None:
        """Print counts on stdout, and on stderr what a person should look at."""
        self.problems.sort(key=lambda problem: int(problem.get("line", 0)))  # sorting is stable: ids keep their order
        document = {**self.counts, "problems": self.problems, "redacted": list(self.redacted)}
        of_a_file = {} if self.unknown_fields is None else {"unknown_fields": list(self.unknown_fields)}
        self._screen.document(document | of_a_file)
        if not self._screen.json:
            self._tell()

    def end(self) -> None:
        """Let the command fail if something was refused.

        Raises:
            typer.Exit: Something was.
        """
        if self.problems:
            raise typer.Exit(FAILED)

    def _note(self, label: str, problem: str) -> None:
        kind, _, number = label.rpartition(" ")
        self.problems.append({"line": int(number), "problem": problem} if kind else {"id": label, "problem": problem})

    def _stopped(self) -> str:
        return f"Stopped after {self._told:,} of {len(self._labels):,}; do it again to go on."

    def _tell(self) -> None:
        say = self._screen.note
        for problem in self.problems[:_SHOWN_PROBLEMS]:
            say(f"{problem['id'] if 'id' in problem else 'line ' + str(problem['line'])}: {problem['problem']}")
        if len(self.problems) > _SHOWN_PROBLEMS:
            say(f"… and {len(self.problems) - _SHOWN_PROBLEMS} more; --json lists them all.")
        if self.redacted:
            say(f"Secrets were removed ({', '.join(self.redacted)}); they are never stored.")
        if self.unknown_fields:
            say(f"Left aside, unknown to this version: {', '.join(self.unknown_fields)}.")
        if self.counts.get("lowered"):
            say(
                f"Lowered {self.counts['lowered']:,}: what a file claims of trust, pins, uses, the future or what it "
                "replaces counts only with --trusted. If the file is your own, say the same again with it."
            )
        there = self.counts["present"] + self.counts["differs"]
        parts = [f"{self._done} {counted(self.counts['stored'], 'memory', 'memories')}"]
        parts += [f"skipped {there:,} that were there"] if there else []
        parts += (
            [f"raised {self.counts['raised']:,} of them to what the file claims"] if self.counts.get("raised") else []
        )
        parts += [f"left {self.counts['forgotten']:,} forgotten"] if self.counts.get("forgotten") else []
        parts += [f"refused {self.counts['refused']:,}"] if self.counts["refused"] else []
        self._screen.show(", ".join(parts) + ".")
        if self.counts["differs"]:
            say(f"{self.counts['differs']} of those skipped have another text {self._there}, which stays.")
