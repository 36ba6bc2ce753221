"""Run commands: context, service, errors and exit codes."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import shlex
import sys
from dataclasses import fields, replace
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeVar

import typer

from agent_memory.cli.command_groups import USAGE_ERROR, CommandGroup, PlainCommand
from agent_memory.cli.exit_codes import FAILED, STOPPED, UNKNOWN, get_exit_code
from agent_memory.cli.options import (
    AgentOption,
    CommonOptions,
    RowOptions,
    build_parameters,
    choose_agent,
    get_parameter,
    get_root,
    open_service,
)
from agent_memory.cli.screen import Form, OutputScreen, raise_interrupt
from agent_memory.errors import AgentMemoryError, UnsupportedError, ValidationError, refused_by_system
from agent_memory.files.layout import agents_under, folder_of, is_agent_id
from agent_memory.files.wording import counted
from agent_memory.journal.agent_file import newest_backup
from agent_memory.late import compile_late
from agent_memory.models.identifiers import DEFAULT_AGENT, new_import_session

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from pathlib import Path

    from agent_memory.memory import Caller, MemoryService

SESSION_ID: Final = "cli"
"""What events and memories carry as their session when a person works at the command line."""
_LOGGED_ERROR: Final = compile_late(r'\berror="((?:[^"\\]|\\.)*)"')
_ID_BEGIN: Final = compile_late(r"[a-z]{3}-[0-9a-f]*|[0-9a-f]{4,12}")
"""What an ID begins with, `mem-` given or not."""
_NEEDED: Final = (("-a", "agent", "AGENT_MEMORY_AGENT"), ("--root", "root", "AGENT_MEMORY_ROOT"))
"""Options that say where a command works, with their parameters and the variables of the environment."""

T = TypeVar("T")
Body = TypeVar("Body", bound="Callable[..., Any]")


# -- what a command works with ----------------------------------------------------------------------------------------


class CommandContext(typer.Context):
    """Context of a command without an agent.

    Attributes:
        screen: Output screen of the command.
        root: Folder of all agents.
        taken: Values of option groups by parameter name.
    """

    screen: OutputScreen
    root: Path
    taken: dict[str, Any]
    _given: dict[type, Any]

    def get_options(self, group: type[T]) -> T:
        """Return the values of an option group."""
        values: T = self._given[group]
        return values

    def values(self, group: type) -> dict[str, Any]:
        """Return the options of a group that are given, by name."""
        return {name: value for name, value in vars(self.get_options(group)).items() if value is not None}

    def need_terminal(self, otherwise: str, what: str = "This", recovery: str = "Add --yes to confirm.") -> None:
        """Refuse to ask without a terminal; `otherwise` describes the result.

        Raises:
            ValidationError: Stdin is not a terminal.
        """
        if not sys.stdin.isatty():
            sentence = f"{what} needs a yes, but the input is not a terminal. {otherwise}"
            raise ValidationError(sentence, code="usage", recovery=recovery)

    def confirm(
        self, question: str, otherwise: str, what: str = "This", recovery: str = "Add --yes to confirm."
    ) -> None:
        """Ask a question; print `otherwise` and exit after a no.

        Raises:
            ValidationError: Stdin is not a terminal.
            typer.Exit: The answer is no.
        """
        self.need_terminal(otherwise, what, recovery)
        self.screen.last_words = lambda: f"Stopped. {otherwise}"
        if not self.screen.ask(question):
            self.screen.note(otherwise)
            raise typer.Exit(FAILED)
        self.screen.last_words = lambda: "Stopped."

    def take(self, *groups: type) -> None:
        """Move the options of `groups` out of the command's parameters.

        What was said before the command's name holds where nothing is said after it.

        Raises:
            typer.BadParameter: Two of them ask for different forms of output.
        """
        self.taken = {option.name: self.params.pop(option.name) for group in groups for option in fields(group)}
        self._given = {
            group: group(**{option.name: get_parameter(self, option.name) for option in fields(group)})
            for group in groups
        }
        as_json = self.get_options(CommonOptions).as_json
        shape = self._given.get(RowOptions, RowOptions())
        if as_json and shape.output not in {None, "json"}:
            raise typer.BadParameter(f"--json and --format {shape.output} exclude each other", param_hint="--format")
        named = [name.strip() for name in shape.fields.split(",") if name.strip()] if shape.fields else None
        form: Form = "json" if as_json else shape.output or ("table" if named else "text")
        self.screen = OutputScreen(form=form, fields=named)
        if RowOptions in self._given and not shape.no_pager:
            self.screen.begin_page()
        values = [(option, get_parameter(self, name), os.environ.get(variable)) for option, name, variable in _NEEDED]
        self.screen.options = {option: value for option, value, usual in values if value not in {None, usual}}


class AgentContext(CommandContext):
    """Context of a command about one agent."""

    service: MemoryService
    caller: Caller
    _is_noted_empty: bool = False

    def note_empty(self, agent_id: str) -> None:
        """Print once how to store a first memory."""
        if not self._is_noted_empty:
            self._is_noted_empty = True
            self.screen.hint(f"No memories yet (agent {agent_id}). Run `agent-memory store TEXT` to store one.")

    async def note_nothing(self) -> None:
        """Report an empty memory, and how many memories were forgotten."""
        forgotten = 0
        with contextlib.suppress(UnsupportedError):  # a server keeps no versions
            forgotten = len(await self.service.history.forgotten())
        if forgotten:
            were = counted(forgotten, "was", "were")
            self.screen.hint(f"No memories. {were} forgotten: run `agent-memory undo` to list them.")
        else:
            self.note_empty(self.service.agent_id)

    async def category(self, name: str | None) -> str | None:
        """Return a category that is named, None for none.

        Raises:
            ValidationError: It is neither built in, nor does a memory have it.
        """
        return None if name is None else await self.service.searcher.find_category(name)

    def begin_import(self, import_id: str = "") -> None:
        """Start a session for this import, which `undo --import` finds.

        Args:
            import_id: ID of an interrupted import that this one continues, or empty.
        """
        self.caller = replace(self.caller, session_id=import_id or new_import_session())

    def hint_undo(self, what: str = "") -> None:
        """Print the command that takes the change back.

        Args:
            what: Arguments of `agent-memory undo`; if empty, the command that lists changes is printed.
        """
        self.screen.note(f"{'Undo' if what else 'List changes to undo'}: {self.build_undo(what)}", style="dim")

    def build_undo(self, what: str) -> str:
        """Return an `undo` command line for the same agent and root."""
        named = [f"{option} {shlex.quote(value)}" for option, value in self.screen.options.items()]
        return " ".join(["agent-memory undo", *([what] if what else []), *named])


def command(
    *groups: type, rows: bool = False, may_be_new: bool | str = False, may_be_none: bool = False
) -> Callable[[Body], Body]:
    """Declare option groups and properties of a command.

    Args:
        groups: Option groups, read with `CommandContext.get_options`.
        rows: True if the command prints rows (`OutputScreen.rows`).
        may_be_new: True if the command may create the agent; or the option with which it may.
        may_be_none: True if the command works without any agent, such as `agents`.
    """

    def mark(body: Body) -> Body:
        vars(body)["takes"] = groups, rows, may_be_new, may_be_none
        return body

    return mark


def show_none(place: CommandContext) -> None:
    """Print that no agents exist."""
    place.screen.document({"root": str(place.root), "agents": []})
    place.screen.hint(
        f"No agents under {place.root} yet. `agent-memory store TEXT` or `agent-memory ingest FILE` begins one."
    )


class PlaceCommand(PlainCommand):
    """Command without an agent; its errors become exit codes.

    Attributes:
        common: Options that every command of this kind takes.
    """

    context_class = CommandContext
    common: ClassVar[tuple[type, ...]] = (CommonOptions,)

    def __init__(self, *args: Any, params: list[Any], callback: Any, **further: Any) -> None:
        groups, rows, self._may_be_new, self._may_be_none = vars(callback).get("takes", ((), False, False, False))
        last = ((RowOptions,) if rows else ()) + self.common
        self._groups = groups + last
        params = [*build_parameters(*groups), *params, *build_parameters(*last)]
        super().__init__(*args, params=params, callback=callback, **further)

    def invoke(self, ctx: Any) -> None:
        """Run the body; its usage errors name this command.

        Raises:
            USAGE_ERROR: An argument is wrong.
        """
        ctx.take(*self._groups)
        try:
            perform(ctx, lambda: self._run(ctx))
        except USAGE_ERROR as error:
            error.ctx = error.ctx or ctx
            raise

    async def _run(self, ctx: Any) -> None:
        await super().invoke(ctx)


class AgentCommand(PlaceCommand):
    """A command about one agent: its body is handed a `AgentContext`."""

    context_class = AgentContext
    common = (AgentOption, CommonOptions)

    async def _run(self, ctx: Any) -> None:
        from agent_memory.memory import Caller

        agent, may_be_new = ctx.get_options(AgentOption).agent, self._may_be_new
        if isinstance(may_be_new, str):
            may_be_new = ctx.params[may_be_new] is not None
        if agent is None and self._may_be_none and not agents_under(ctx.root):
            show_none(ctx)
            return
        if agent is None and (may_be_new or RowOptions in self._groups) and not agents_under(ctx.root):
            name = DEFAULT_AGENT  # other commands, such as `export`, need an agent that exists
            if may_be_new:
                ctx.screen.hint(f"This is the default agent, {name}.")
            else:
                ctx.note_empty(name)
        else:
            name = choose_agent(agent, ctx.root, may_be_new=may_be_new)
        async with open_service(name, ctx.root) as ctx.service:
            ctx.caller = Caller(SESSION_ID, origin="typed" if sys.stdin.isatty() else "unknown")
            await ctx.service.pad.notice(ctx.caller)
            await super()._run(ctx)


class RestoreCommand(AgentCommand):
    """`restore` of a memory by ID, or of an agent's newest backup."""

    async def _run(self, ctx: Any) -> None:
        name = ctx.params.get("memory_id")
        if name is not None and _names_agent(name, ctx.root):
            await import_module("agent_memory.cli.backup").restore_newest(ctx, name, yes=ctx.params["yes"])
        else:
            await super()._run(ctx)


def _names_agent(word: str, root: Path) -> bool:
    """Return True if a non-ID word names an existing agent or backup."""
    if _ID_BEGIN.fullmatch(word) or not is_agent_id(word):
        return False
    return folder_of(word, root).path.exists() or newest_backup(root / word) is not None


class MonitorContext(CommandContext):
    """Context of a command for monitors.

    Attributes:
        verdict: The exit code that its body decides on.
    """

    verdict: int = 0


class MonitorCommand(PlaceCommand):
    """Command whose exit code is its verdict, or `UNKNOWN`."""

    context_class = MonitorContext

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the arguments; a wrong one gives no verdict either."""
        try:
            return super().parse_args(ctx, args)
        except USAGE_ERROR as error:
            error.exit_code = UNKNOWN
            raise

    def invoke(self, ctx: Any) -> None:
        """Run the body.

        Raises:
            typer.Exit: With the verdict.
        """
        try:
            super().invoke(ctx)
        except USAGE_ERROR as error:
            error.exit_code = UNKNOWN
            raise
        except typer.Exit as ended:
            raise typer.Exit(STOPPED if ended.exit_code == STOPPED else UNKNOWN) from None
        raise typer.Exit(ctx.verdict)


class ListingGroup(CommandGroup):
    """A group that lists if no command of it is named.

    Attributes:
        options: Groups of options of the list.
    """

    context_class = CommandContext
    options: ClassVar[tuple[type, ...]] = (RowOptions, CommonOptions)

    def __init__(self, *args: Any, params: list[Any], **further: Any) -> None:
        super().__init__(*args, params=[*params, *build_parameters(*self.options)], **further)

    def invoke(self, ctx: Any) -> Any:
        """Run the named command, or the callback."""
        ctx.take(*self.options)
        return super().invoke(ctx)


def build_callback(list_all: Callable[[CommandContext], Coroutine[Any, Any, None]]) -> Callable[[CommandContext], None]:
    """Return the callback of a group that lists."""

    def list_if_alone(place: CommandContext) -> None:
        if place.invoked_subcommand is None:
            perform(place, lambda: list_all(place))

    return list_if_alone


def perform(place: CommandContext, body: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Run a body: errors become exit codes, library warnings sentences.

    An error of ours becomes its two sentences on stderr, or JSON.

    Raises:
        typer.Exit: With the code of an error.
    """
    screen, logger, warnings = place.screen, logging.getLogger("agent_memory"), _WarningHandler(place.screen)
    logger.addHandler(warnings)
    try:
        with raise_interrupt():
            place.root = get_root(place)
            asyncio.run(body())
    except AgentMemoryError as error:
        screen.error(error)
        raise typer.Exit(get_exit_code(error)) from None
    except KeyboardInterrupt:
        screen.show_stop()
        raise typer.Exit(STOPPED) from None
    except (OSError, MemoryError, RuntimeError) as error:
        if (refused := refused_by_system(error)) is None:
            raise
        screen.error(refused)
        raise typer.Exit(FAILED) from None
    finally:
        logger.removeHandler(warnings)
        screen.flush()


class _WarningHandler(logging.Handler):
    def __init__(self, screen: OutputScreen) -> None:
        super().__init__(logging.WARNING)
        self._screen = screen

    def emit(self, record: logging.LogRecord) -> None:
        """Print the error a record is about, or the record itself."""
        text = record.getMessage()
        error = _LOGGED_ERROR.search(text)
        self._screen.hint(f"warning: {error[1] if error else text}")
