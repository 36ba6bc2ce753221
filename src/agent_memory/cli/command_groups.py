"""Groups of commands, which show their help without loading a command."""

from __future__ import annotations

import re
import sys
from difflib import get_close_matches
from importlib import import_module
from itertools import pairwise
from shutil import get_terminal_size
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer
from typer.core import TyperCommand, TyperGroup

from agent_memory.late import compile_late

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

QUIET: Final[Any] = {
    "pretty_exceptions_enable": False,  # they print local variables: what a memory says
    "context_settings": {"help_option_names": ["-h", "--help"]},
}
"""Arguments of every `typer.Typer`, of all commands and of a group."""
USAGE_ERROR: Final[Any] = typer.BadParameter.__bases__[0]
"""Error of typer and click for a wrong option; its module differs between versions."""
_BEGINNINGS: Final = ("init", "create", "new", "make", "begin", "start")
"""Other words for a command that creates; `restore` looks like `create` but is not a typing error."""
_MARKUP: Final = compile_late(r"(\[[a-z#/@][^[]*?])")
_LEAST_FRAMED: Final = 72
"""Columns from which the help of a command has frames."""
_ALIKE: Final = 0.7
"""How much of a mistyped word must be that of a command; `create` and `restore` share 0.62."""


def complete_agent(ctx: typer.Context, incomplete: str) -> list[str]:
    """Return agents for shell completion."""
    names: list[str] = import_module("agent_memory.cli.options").list_agents(ctx, incomplete)
    return names


WHOSE: Final = "Agent to work on; not needed if there is one."
AGENT: Final[Any] = {"metavar": "NAME", "autocompletion": complete_agent}
ROOT: Final[Any] = {"metavar": "PATH", "help": "Folder of all agents (~/.amplifier/memory)."}
# Before the name of a command the environment has no say: an option after the name wins over it.
AgentBefore = Annotated[str | None, typer.Option("--agent", "-a", help=WHOSE, **AGENT)]
RootBefore = Annotated[str | None, typer.Option("--root", **ROOT)]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]


class PlainCommand(TyperCommand):
    """A command whose help says nothing of typer itself."""

    def __init__(self, *args: Any, help: str | None = None, **further: Any) -> None:  # noqa: A002 - typer's name
        super().__init__(*args, help=_flow(help or ""), **further)

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the parameters as the help is to show them."""
        return _plain_params(super().get_params(ctx))

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help; a narrow terminal gets no frames."""
        width = get_terminal_size().columns
        if width >= _LEAST_FRAMED:
            return super().format_help(ctx, formatter)
        formatter.width, mode, text = width, self.rich_markup_mode, self.help
        self.rich_markup_mode, self.help = None, (text or "").replace("\\[", "[")
        try:
            super().format_help(ctx, formatter)
        finally:
            self.rich_markup_mode, self.help = mode, text

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the arguments; rephrase the library's error messages."""
        try:
            return super().parse_args(ctx, args)
        except USAGE_ERROR as error:
            message = error.message.replace("Input should be", "it must be").replace("Value error, ", "")
            error.message = re.sub(r", unable to .*", "", message)
            raise

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Return `QUERY` instead of `{QUERY}`."""
        return [re.sub(r"\{([^{}]*)\}", r"\1", piece) for piece in super().collect_usage_pieces(ctx)]


class CommandGroup(TyperGroup):
    """A group of commands, with help that says nothing of typer itself."""

    _offered: Mapping[str, str] = {}
    _load_offered: Callable[[str], Any]

    def offer(self, commands: Mapping[str, str], load: Callable[[str], Any]) -> None:
        """Add commands that are imported when they are asked for.

        Args:
            commands: First lines of help by the names of commands.
            load: Builds the command of a name.
        """
        self._offered, self._load_offered = commands, load

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names in the order of the help."""
        return [*super().list_commands(ctx), *self._offered]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return a command, or a placeholder with its help line."""
        if cmd_name in self._offered:
            return PlainCommand(cmd_name, help=self._offered[cmd_name])
        return super().get_command(ctx, cmd_name)

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the parameters as the help is to show them."""
        return _plain_params(super().get_params(ctx))

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the arguments; without any, show the help."""
        if not args and self.no_args_is_help and not ctx.resilient_parsing:
            typer.echo(ctx.get_help(), nl=False)
            ctx.exit()
        return super().parse_args(ctx, args)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the command that `args` begin with, or suggest one."""
        name, names = args[0], self.list_commands(ctx)
        if name in self._offered:
            return name, self._load_offered(name), args[1:]
        if name in names or ctx.resilient_parsing:
            return super().resolve_command(ctx, args)
        begins = [beginning for beginning in names if name in _BEGINNINGS and beginning in _BEGINNINGS]
        near = next(iter([*begins, *get_close_matches(name, names, 1, _ALIKE)]), None)
        hint = f" Did you mean `{ctx.command_path} {near}`?" if near else f" There are: {', '.join(names)}."
        raise USAGE_ERROR(f"No command {name!r} in `{ctx.command_path}`.{hint}", ctx)


def _flow(text: str) -> str:
    """Return a help text whose paragraphs wrap, with escaped brackets."""
    paragraphs = [" ".join(paragraph.split()) for paragraph in text.split("\n\n")]
    return _MARKUP.sub(r"\\\1", "\n\n".join(paragraphs))


def _plain_params(params: list[Any]) -> list[Any]:
    """Remove typer's type names of switches and arguments from the help."""
    for param in params:
        if getattr(param, "is_flag", False) and param.metavar is None:
            param.metavar = ""
        if param.param_type_name == "argument":
            vars(param)["display_type_rich"] = lambda **_: None
    return params


def wants_json(args: Sequence[str] | None) -> bool:
    """Return True if the command line asks for JSON, without parsing it."""
    words = sys.argv[1:] if args is None else list(args)
    return "--json" in words or "--format=json" in words or ("--format", "json") in pairwise(words)
