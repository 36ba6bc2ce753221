"""The two streams of a command: results on stdout, everything said about them on stderr.

Colour, wrapping and progress bars only where a terminal is; a pipe gets whole lines.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any, Final

from rich.console import Console
from rich.text import Text

from agent_memory.cli.text import for_shell, plain, to_json

if TYPE_CHECKING:
    from rich.progress import Progress

    from agent_memory.errors import AgentMemoryError

_MAX_WIDTH: Final = 100
"""Longer lines are hard to read, however wide the terminal."""
_MIN_WIDTH: Final = 20


class Screen:
    """Where a command prints.

    Args:
        json: Results are JSON on stdout; `show` then prints nothing.
    """

    def __init__(self, *, json: bool = False) -> None:
        self.json = json
        self.out = _console(stderr=False)
        self.err = _console(stderr=True)

    # -- results ------------------------------------------------------------------------------------------------------

    def document(self, value: Any) -> None:
        """Print the one JSON document of a command, if JSON was asked for."""
        if self.json:
            self.raw(to_json(value, indent=2) + "\n")

    def show(self, text: str | Text = "", *, indent: int = 0, style: str = "", max_lines: int | None = None) -> None:
        """Print text for people, wrapped on a terminal.

        Args:
            text: A string is made safe first; a `Text` must be made of safe strings.
            indent: Columns to leave free on the left.
            style: A rich style.
            max_lines: On a terminal, cut what is longer.
        """
        if self.json:
            return
        rich = text if isinstance(text, Text) else Text(plain(text))
        for line in self._lines(rich, indent, max_lines):
            line.stylize(style)
            self.out.print(Text(" " * indent) + line, soft_wrap=True)

    def raw(self, text: str) -> None:
        """Write to stdout as UTF-8, whatever the locale says: what is exported here is imported elsewhere."""
        sys.stdout.flush()
        sys.stdout.buffer.write(text.encode())
        sys.stdout.buffer.flush()

    # -- what is said about them --------------------------------------------------------------------------------------

    def note(self, text: str, *, style: str = "yellow") -> None:
        """Say something on stderr."""
        self.err.print(Text(plain(text), style=style), soft_wrap=not self.err.is_terminal)

    def error(self, error: AgentMemoryError) -> None:
        """Say what failed, then what can be done."""
        message = Text.assemble(("Error: ", "bold red"), plain(error.message))
        self.err.print(message, soft_wrap=not self.err.is_terminal)
        self.note(for_shell(error.recovery), style="")

    def progress(self) -> Progress:
        """Return a progress bar on stderr that shows itself on a terminal alone."""
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn  # noqa: PLC0415 - rarely needed
        from rich.progress import TimeRemainingColumn as Remaining  # noqa: PLC0415

        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), Remaining())
        return Progress(*columns, console=self.err, transient=True, disable=not self.err.is_terminal)

    def wrapped(self, text: str, indent: int) -> list[Text]:
        """Return `text` in lines that fit beside `indent` columns on a terminal; whole lines for a pipe."""
        return self._lines(Text(plain(text)), indent, None)

    def _lines(self, text: Text, indent: int, max_lines: int | None) -> list[Text]:
        if not self.out.is_terminal:
            return list(text.split("\n", allow_blank=True))
        width = max(_MIN_WIDTH, min(self.out.width, _MAX_WIDTH) - indent)
        lines = list(text.wrap(self.out, width))
        if max_lines is None or len(lines) <= max_lines:
            return lines
        last = lines[max_lines - 1]
        last.truncate(width - 2)
        last.rstrip()
        return [*lines[: max_lines - 1], last + Text(" …")]


def _console(*, stderr: bool) -> Console:
    # NO_COLOR takes bold and dim away, too: who sets it does not want escape sequences.
    plain_please = bool(os.environ.get("NO_COLOR"))
    stream = sys.stderr if stderr else sys.stdout
    reconfigure = getattr(stream, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(errors="backslashreplace")  # a terminal that is not UTF-8 shows less, but it shows
    return Console(
        stderr=stderr,
        markup=False,
        emoji=False,
        highlight=False,
        color_system=None if plain_please else "auto",
    )
