"""Output of commands: results on stdout, everything else on stderr.

Color, wrapping and progress bars only where a terminal is; a pipe gets whole lines. Rows become a table, CSV or JSON
lines: what a memory says cannot steer a terminal in any of them, nor begin a formula in a spreadsheet.
"""

from __future__ import annotations

import csv
import io
import os
import re
import signal
import sys
import threading
import time
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol, Self, TextIO, cast

from agent_memory.cli.pager import find_pager, show_in_pager
from agent_memory.cli.styled_text import StyledText
from agent_memory.cli.text import complete_commands, for_shell, minute
from agent_memory.errors import AgentMemoryError, ValidationError
from agent_memory.models import as_cell
from agent_memory.models.text import one_line, plain, to_json

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from rich.console import Console
    from rich.text import Text


_MAX_WIDTH: Final = 100
"""Longer lines are hard to read, however wide the terminal."""
_MIN_WIDTH: Final = 20
NOTED_EVERY: Final = 2_000
"""Steps between two lines of progress, where no bar is shown."""


Form = Literal["text", "table", "csv", "jsonl", "json"]
"""What results look like: prose, or columns, for people; the others for programs."""


class OutputScreen:
    """Output streams of a command.

    Args:
        form: Output format; `show` prints only in the format `text`.
        fields: Names of printed row fields, in order; None for all.

    Attributes:
        last_words: Function that builds the message of an interrupted command.
        options: Options repeated in printed commands, such as `--root`, with their values.
        out: Console of a terminal on stdout; None for a pipe, which needs no rich.
        err: Console of a terminal on stderr; None for a pipe.
    """

    def __init__(self, *, form: Form = "text", fields: Sequence[str] | None = None) -> None:
        self.form = form
        self.fields = fields
        self.last_words: Callable[[], str] = lambda: "Stopped."
        self.options: dict[str, str] = {}
        self.out = _build_console(sys.stdout, is_stderr=False)
        self.err = _build_console(sys.stderr, is_stderr=True)
        self._document: Any = None
        self._page: list[tuple[TextIO, str]] | None = None
        """Printed texts with their streams, of a list that may be longer than the screen."""

    @property
    def json(self) -> bool:
        """True if one JSON document is wanted."""
        return self.form == "json"

    @property
    def width(self) -> int | None:
        """Number of usable columns of a terminal, None for a pipe."""
        return min(self.out.width, _MAX_WIDTH) if self.out is not None else None

    # -- results ------------------------------------------------------------------------------------------------------

    def document(self, value: Any) -> None:
        """Set the JSON document, which is printed when the command ends."""
        self._document = value

    def get_document(self) -> Any:
        """Return the JSON document set last, or None."""
        return self._document

    def rows(self, document: dict[str, Any], key: str, columns: Sequence[str]) -> None:
        """Print rows in every format except text.

        Args:
            document: JSON document of the command.
            key: Key of the rows in the document.
            columns: Default columns of a table.

        Raises:
            ValidationError: A requested field is in no row.
        """
        rows = select_fields(document[key], self.fields)
        self.document({**document, key: rows})
        if self.form in {"table", "csv", "jsonl"}:
            shown = self.fields or (columns if self.form == "table" else None)
            self.raw(format_rows(rows, self.form, shown, self.width))

    def begin_page(self) -> None:
        """Keep later output for a pager, if this is a terminal."""
        if self.out is not None and find_pager():
            self._page = []

    def end_page(self) -> None:
        """Print the kept output, in a pager if it is long."""
        page, self._page = self._page, None
        text = "".join(text for stream, text in page or () if stream is sys.stdout)
        is_long = self.out is not None and text.count("\n") >= self.out.height
        is_shown = is_long and show_in_pager(text, find_pager())
        for stream, part in page or ():
            if stream is sys.stderr or not is_shown:
                stream.write(part)
                stream.flush()

    def flush(self) -> None:
        """Print the JSON document, if wanted, and the rest of a page."""
        value, self._document = self._document, None
        if self.json and value is not None:
            self.raw(to_json(value, indent=2) + "\n")
        self.end_page()

    def show(
        self, text: str | StyledText = "", *, indent: int = 0, style: str = "", max_lines: int | None = None
    ) -> None:
        """Print text for people, wrapped on a terminal.

        Args:
            text: A string is made safe first; a `StyledText` must be made of safe strings.
            indent: Columns to leave free on the left.
            style: A rich style.
            max_lines: On a terminal, cut what is longer.
        """
        if self.form != "text":
            return
        styled = text if isinstance(text, StyledText) else StyledText(plain(text))
        if self.out is None:
            for line in styled.plain.split("\n"):
                _print_line(sys.stdout, " " * indent + line if line else line)
            return
        for rich_line in _wrap(self.out, styled, self._get_room(indent), max_lines):
            rich_line.stylize(style)
            self._print(self.out, sys.stdout, _pad(rich_line, indent))

    def raw(self, text: str) -> None:
        """Write UTF-8 to stdout in any locale."""
        if self._page is not None:
            self._page.append((sys.stdout, text))
            return
        sys.stdout.flush()
        sys.stdout.buffer.write(text.encode())
        sys.stdout.buffer.flush()

    # -- what is said about them --------------------------------------------------------------------------------------

    def note(self, text: str, *, style: str = "yellow") -> None:
        """Print a note on stderr."""
        self._print_note(StyledText(plain(text), style))

    def prompt(self, text: str, end: str = "") -> None:
        """Print a question or its answer on stderr."""
        self.end_page()
        self._print_note(StyledText(plain(text)), end=end, is_wrapped=False)

    def _print_note(self, text: StyledText, *, end: str = "\n", is_wrapped: bool = True) -> None:
        if self.err is None:
            _print_line(sys.stderr, text.plain, end)
        else:
            self._print(self.err, sys.stderr, text.to_rich(), end=end, soft_wrap=not is_wrapped)

    def _print(self, console: Console, stream: TextIO, text: Text, *, end: str = "\n", soft_wrap: bool = True) -> None:
        if self._page is None:
            console.print(text, end=end, soft_wrap=soft_wrap)
            return
        with console.capture() as capture:
            console.print(text, end=end, soft_wrap=soft_wrap)
        self._page.append((stream, capture.get()))

    def hint(self, text: str, *, style: str = "yellow") -> None:
        """Print a text on stderr; add root and agent to its commands."""
        self.note(self.complete(text), style=style)

    def complete(self, text: str) -> str:
        """Return a text whose `agent-memory` commands name root and agent."""
        return complete_commands(text, self.options)

    def error(self, error: AgentMemoryError) -> None:
        """Print an error and its recovery."""
        recovery = self.complete(for_shell(error.recovery))
        path = getattr(error, "path", None)
        if self.json:
            document: dict[str, Any] = {"code": error.code, "message": error.message, "recovery": recovery}
            document |= {"path": str(path)} if path else {}
            self.document({**(self._document or {}), "error": document})
            return
        place = f": {path}" if path and str(path) not in error.message else ""
        code = plain(f" [{error.code}{place}]")
        self._print_note(StyledText.assemble(("error: ", "bold red"), plain(error.message), (code, "dim")))
        self._print_note(StyledText.assemble(("hint: ", "bold"), plain(recovery)))

    def show_stop(self) -> None:
        """Print how far an interrupted command came."""
        words = self.complete(self.last_words())
        if self.json:
            error = {"code": "stopped", "message": words, "recovery": "Run the command again to continue."}
            self.document({**(self._document or {}), "error": error})
        else:
            self.note(words)

    def ask(self, question: str) -> bool:
        """Return True if the answer typed at the terminal is yes.

        Raises:
            KeyboardInterrupt: Ctrl-C, at once: an event loop would wait for the end of the line.
        """
        answer = read_line(self, f"{question} [y/N]: ")
        return answer is not None and answer.strip().lower() in {"y", "yes"}

    def progress(self) -> ProgressBar:
        """Return a progress bar on stderr, shown on a terminal only."""
        if self.err is None:
            return _HiddenProgress()
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
        from rich.progress import TimeRemainingColumn as Remaining

        from agent_memory.cli.progress_columns import RateColumn

        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), RateColumn(), Remaining())
        bar: Any = Progress(*columns, console=self.err, transient=True)
        return cast("ProgressBar", bar)

    @contextmanager
    def show_steps(self, label: str, total: int = 0) -> Iterator[Callable[..., object]]:
        """Yield a callback that reports steps as a bar or as lines.

        Args:
            label: Name of the work next to the bar.
            total: Number of known steps, 0 if unknown. It grows: steps make work for later ones.
        """
        noted, began = {0}, time.monotonic()

        def show(completed: int, due: int = total) -> None:
            due = max(due, completed)
            bar.update(task, completed=completed, total=due)
            if completed // NOTED_EVERY not in noted and self.err is None:
                noted.add(completed // NOTED_EVERY)
                rate = completed / max(time.monotonic() - began, 0.001)
                remaining = timedelta(seconds=round((due - completed) / rate))
                self.note(f"{completed:,} of {due:,} steps are done. {rate:,.0f}/s, {remaining} left.", style="dim")

        with self.progress() as bar:
            task = bar.add_task(label, total=total or None)
            yield show

    def wrap(self, text: str, indent: int) -> list[str]:
        """Return the lines of `text`, wrapped for a terminal."""
        if self.out is None:
            return plain(text).split("\n")
        return [line.plain for line in _wrap(self.out, StyledText(plain(text)), self._get_room(indent), None)]

    def _get_room(self, indent: int) -> int:
        return max(_MIN_WIDTH, (self.width or _MAX_WIDTH) - indent)


class ProgressBar(Protocol):
    """Progress bar of rich, as commands use it."""

    def __enter__(self) -> Self:
        """Show the bar."""

    def __exit__(self, *_: object) -> None:
        """Remove the bar."""

    def add_task(self, description: str, *, total: float | None = None, visible: bool = True) -> Any:
        """Add a line and return its ID."""

    def update(self, task: Any, **values: Any) -> None:
        """Set values of a line, such as `completed`."""

    def advance(self, task: Any, steps: float = 1) -> None:
        """Add steps to a line."""


class _HiddenProgress:
    """Progress bar of a pipe, which shows nothing."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Do nothing."""

    def add_task(self, description: str, *, total: float | None = None, visible: bool = True) -> int:  # noqa: ARG002
        """Return the ID of the only line."""
        return 0

    def update(self, task: Any, **values: Any) -> None:
        """Do nothing."""

    def advance(self, task: Any, steps: float = 1) -> None:
        """Do nothing."""


def _wrap(console: Console, text: StyledText, width: int, max_lines: int | None) -> list[Text]:
    """Return the wrapped lines of a text; cut what is longer."""
    from rich.text import Text

    lines = list(text.to_rich().wrap(console, width))
    for line in lines:
        line.rstrip()
    if max_lines is None or len(lines) <= max_lines:
        return lines
    last = lines[max_lines - 1]
    last.truncate(width - 2)
    last.rstrip()
    return [*lines[: max_lines - 1], last + Text(" …")]


def _pad(line: Text, indent: int) -> Text:
    line.pad_left(indent if line else 0)
    return line


def _print_line(stream: TextIO, text: str, end: str = "\n") -> None:
    """Print a line to a pipe that may have been closed."""
    try:
        stream.write(text.expandtabs() + end)
        stream.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
        raise SystemExit(1) from None


@contextmanager
def raise_interrupt() -> Iterator[None]:
    """Raise `KeyboardInterrupt` at Ctrl-C, if this is the main thread."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def read_line(screen: OutputScreen, question: str) -> str | None:
    """Return a line typed at the terminal, or None at its end.

    Raises:
        KeyboardInterrupt: Ctrl-C, at once: an event loop would wait for the end of the line.
    """
    with raise_interrupt():
        try:
            screen.prompt(question)
            answer = sys.stdin.readline()
        except KeyboardInterrupt:
            screen.prompt("\n")
            raise
    if not answer.endswith("\n"):
        screen.prompt("\n")
    return answer or None


def _build_console(stream: TextIO, *, is_stderr: bool) -> Console | None:
    """Return the console of a terminal, or None for a pipe."""
    reconfigure = getattr(stream, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(errors="backslashreplace")  # a terminal that is not UTF-8 shows less, but it shows
    if not (stream.isatty() or os.environ.get("FORCE_COLOR") or os.environ.get("TTY_COMPATIBLE")):
        return None
    from rich.console import Console

    # NO_COLOR takes bold and dim away, too: who sets it does not want escape sequences.
    has_color = not os.environ.get("NO_COLOR")
    console = Console(
        stderr=is_stderr, markup=False, emoji=False, highlight=False, color_system="auto" if has_color else None
    )
    return console if console.is_terminal else None


Row = dict[str, Any]

_MOMENT: Final = re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+Z")
_GAP: Final = "  "
_ID_COLUMN: Final = len("mem-000000000000")
_NARROWEST: Final = 4
"""Minimum width of a column in characters, its name excluded."""


def select_fields(rows: Sequence[Row], fields: Sequence[str] | None) -> list[Row]:
    """Return only `fields` of each row, in their order; None means all.

    Raises:
        ValidationError: No such field.
    """
    if fields is None:
        return list(rows)
    names = dict.fromkeys(name for row in rows for name in row)
    unknown = [name for name in fields if rows and name not in names]
    if unknown:
        raise ValidationError(
            f"No field {unknown[0]!r}.",
            code="usage",
            recovery=f"There are: {', '.join(names)}.",
        )
    return [{name: row.get(name) for name in fields} for row in rows]


def format_rows(rows: Sequence[Row], form: str, columns: Sequence[str] | None, width: int | None) -> str:
    """Return rows as a table, CSV or JSON lines.

    Args:
        rows: Mappings of the same fields.
        form: `table`, `csv` or `jsonl`.
        columns: Fields to show, in their order; None for all.
        width: Columns of the terminal that the table must fit; None for whole values.
    """
    if form == "jsonl":
        return "".join(f"{to_json(row)}\n" for row in rows)
    if form == "table":
        return "".join(f"{line}\n" for line in _table(rows, columns or [], width))
    names = columns or list(dict.fromkeys(name for row in rows for name in row))
    return _csv(rows, names) if names else ""


def _csv(rows: Sequence[Row], columns: Sequence[str]) -> str:
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(columns)
    for row in rows:
        writer.writerow([as_cell(plain(_as_text(row.get(name)))) for name in columns])
    return buffer.getvalue()


def _as_text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list) and all(isinstance(entry, str) for entry in value):
        return ", ".join(value)
    return value if isinstance(value, str) else to_json(value)


def _format_value(value: Any) -> str:
    """Return a value on one line, with moments in local time."""
    if isinstance(value, str) and _MOMENT.fullmatch(value):
        return minute(datetime.fromisoformat(value))
    return one_line(_as_text(value))


def _table(rows: Sequence[Row], columns: Sequence[str], width: int | None) -> Iterator[str]:
    """Yield the header and rows of a table that fits the terminal."""
    from rich.cells import cell_len, set_cell_size

    cells = [[_format_value(row.get(name)) for name in columns] for row in rows]
    lines = [list(columns), *cells]
    widths = [max(cell_len(line[place]) for line in lines) for place in range(len(columns))]
    if width is not None and widths:
        least = [_least(name) for name in columns]
        widths = _fitting(widths, least, width - len(_GAP) * (len(widths) - 1))
    for line in lines:
        shown = []
        for text, room in zip(line, widths, strict=True):
            cut = text if cell_len(text) <= room else set_cell_size(text, room - 1).rstrip() + "…"
            shown.append(set_cell_size(cut, room))
        yield _GAP.join(shown).rstrip()


def _least(name: str) -> int:
    """Return the smallest width of a column; IDs stay whole."""
    return _ID_COLUMN if name == "id" else max(len(name), _NARROWEST)


def _fitting(widths: list[int], least: list[int], room: int) -> list[int]:
    """Return column widths that fit into `room`, widest reduced first."""
    widths = list(widths)
    while sum(widths) > room:
        wide = [place for place, width in enumerate(widths) if width > least[place]]
        if not wide:
            break
        widths[max(wide, key=lambda place: widths[place])] -= 1
    return widths
