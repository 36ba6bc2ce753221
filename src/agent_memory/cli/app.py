"""The commands of `agent-memory` and their names. Registers; does nothing itself.

A command's module is imported when that command runs, so that each pays for itself alone
(https://click.palletsprojects.com/en/stable/complex/#defining-the-lazy-group).
"""

from __future__ import annotations

import re
import sys
from difflib import get_close_matches
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Annotated, Any, Final, NamedTuple

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from agent_memory.cli.running import (
    USAGE_ERROR,
    AgentBefore,
    JsonBefore,
    RootBefore,
    runnable,
    usage_errors_in_json,
    wants_json,
)

if TYPE_CHECKING:
    from collections.abc import Callable

_HELP: Final = "Look after what an agent remembers: ask, correct, forget, take along."
_EPILOG: Final = (
    "Exit codes: 0 done, 1 failed, 2 wrong usage, 3 not found, 4 another process is writing, 130 stopped by Ctrl-C."
)


class _Entry(NamedTuple):
    panel: str
    place: str
    """Module and function."""
    wrap: Callable[[Any], Callable[..., None]] | None = runnable


_beginning = partial(runnable, may_be_new=True)
_tabular = partial(runnable, rows=True)


_ASK, _CHANGE, _TAKE, _CARE = "Ask", "Change", "Take along", "Look after"
_COMMANDS: Final = {
    "status": _Entry(_ASK, "search:status"),
    "search": _Entry(_ASK, "search:search", _tabular),
    "list": _Entry(_ASK, "list:list_memories", _tabular),
    "show": _Entry(_ASK, "search:show", _tabular),
    "history": _Entry(_ASK, "history:history", _tabular),
    "store": _Entry(_CHANGE, "store:store", _beginning),
    "update": _Entry(_CHANGE, "store:update"),
    "edit": _Entry(_CHANGE, "edit:edit"),
    "promote": _Entry(_CHANGE, "store:promote"),
    "pin": _Entry(_CHANGE, "store:pin"),
    "unpin": _Entry(_CHANGE, "store:unpin"),
    "forget": _Entry(_CHANGE, "forget:forget"),
    "restore": _Entry(_CHANGE, "history:restore", _tabular),
    "export": _Entry(_TAKE, "export:export"),
    "import": _Entry(_TAKE, "export:import_", _beginning),
    "push": _Entry(_TAKE, "push:push"),
    "pull": _Entry(_TAKE, "push:pull", _beginning),
    "agents": _Entry(_CARE, "agents:AGENTS", None),
    "compact": _Entry(_CARE, "forget:compact"),
    "migrate": _Entry(_CARE, "migrate:migrate"),
    "rollback": _Entry(_CARE, "migrate:rollback"),
    "reindex": _Entry(_CARE, "migrate:reindex"),
    "doctor": _Entry(_CARE, "doctor:doctor", lambda body: body),
    "help": _Entry(_CARE, "app:help_", lambda body: body),
}
_ALIASES: Final = {"ls": "list", "add": "store", "rm": "forget", "undo": "restore"}
_MEANT: Final = {
    "delete": "forget",
    "remove": "forget",
    "find": "search",
    "recall": "search",
    "get": "show",
    "rename": "agents rename",
}
"""What people type who know other programs, and what it is called here."""


class Command(TyperCommand):
    """One command, with help that says nothing of typer itself."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the parameters as the help is to show them."""
        return _plain_params(super().get_params(ctx))

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the arguments; what is wrong with them is said without the words of the library that checks them."""
        try:
            return super().parse_args(ctx, args)
        except USAGE_ERROR as error:
            error.message = re.sub(r", unable to .*", "", error.message.replace("Input should be", "it must be"))
            raise

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Return `QUERY` instead of `{QUERY}`."""
        return [re.sub(r"\{(.*?)\}", r"\1", piece) for piece in super().collect_usage_pieces(ctx)]


class Group(TyperGroup):
    """A group of commands, with help that says nothing of typer itself."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the parameters as the help is to show them."""
        return _plain_params(super().get_params(ctx))


def _plain_params(params: list[Any]) -> list[Any]:
    """Take away what typer says of a parameter beside its name: `<bool>` of a switch, `<str>` of an argument."""
    for each in params:
        if getattr(each, "is_flag", False) and each.metavar is None:
            each.metavar = ""
        if each.param_type_name == "argument":
            vars(each)["display_type_rich"] = lambda **_: None
    return params


class _Lazy(Group):
    """Loads a command when it is asked for."""

    def main(self, args: Any = None, *further: Any, **extra: Any) -> Any:
        """Run with the arguments of the process; wrong usage is told as JSON where JSON was asked for."""
        if not (extra.get("standalone_mode", True) and wants_json(args)):
            return super().main(args, *further, **extra)
        with usage_errors_in_json():
            code = super().main(args, *further, **{**extra, "standalone_mode": False})
        sys.exit(code or 0)

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002 - click's signature
        """Return the names in the order of the help."""
        return list(_COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ARG002 - click's signature
        """Return a command, also by its alias."""
        name = _ALIASES.get(cmd_name, cmd_name)
        return _load(name) if name in _COMMANDS else None

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find the command that `args` begin with, or say which one may be meant."""
        if args[0] not in _COMMANDS and args[0] not in _ALIASES and not ctx.resilient_parsing:
            near = _MEANT.get(args[0]) or next(iter(get_close_matches(args[0], [*_COMMANDS, *_ALIASES], 1)), None)
            hint = f" Did you mean `agent-memory {near}`?" if near else ""
            ctx.fail(f"There is no command {args[0]!r}.{hint}")
        return super().resolve_command(ctx, args)


def build() -> typer.Typer:
    """Return the application."""
    app = typer.Typer(
        name="agent-memory",
        cls=_Lazy,
        help=_HELP,
        epilog=_EPILOG,
        invoke_without_command=True,
        pretty_exceptions_enable=False,  # they print local variables: what a memory says
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_options)
    return app


def _load(name: str) -> Any:
    entry = _COMMANDS[name]
    module, _, attribute = entry.place.partition(":")
    body = getattr(import_module(f"agent_memory.cli.{module}"), attribute)
    if entry.wrap is None:
        body.info.name, body.info.rich_help_panel = name, entry.panel
        group = get_command(body)
        group.name = name
        return group
    single = typer.Typer(
        add_completion=False,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    single.command(name, cls=Command, rich_help_panel=entry.panel)(entry.wrap(body))
    command = get_command(single)
    command.name = name
    return command


def help_(
    ctx: typer.Context,
    words: Annotated[list[str] | None, typer.Argument(metavar="COMMAND", help="Which; all if left out.")] = None,
) -> None:
    """Show this help, or that of a command."""
    assert ctx.parent is not None
    where: Any = ctx.parent
    for word in words or []:
        _, command, _ = where.command.resolve_command(where, [word])
        where = type(ctx)(command, info_name=word, parent=where, help_option_names=ctx.help_option_names)
    _show_help(where)


def _show_help(ctx: Any) -> None:
    text = ctx.get_help()  # with rich, it is printed already and this is empty
    if text.strip():
        typer.echo(text)


def _print_version(wanted: bool) -> None:  # noqa: FBT001 - typer's callback
    if wanted:
        from agent_memory.cli import version

        typer.echo(f"agent-memory {version()}")
        raise typer.Exit


def _options(
    ctx: typer.Context,
    *,
    agent: AgentBefore = None,  # noqa: ARG001 - looked up by the command that follows
    root: RootBefore = None,  # noqa: ARG001
    as_json: JsonBefore = False,  # noqa: ARG001
    version: Annotated[  # noqa: ARG001 - has its own callback
        bool, typer.Option("--version", help="Print the version and stop.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """Show the help if no command is named."""
    if ctx.invoked_subcommand is None:
        _show_help(ctx)
