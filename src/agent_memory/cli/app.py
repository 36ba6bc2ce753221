"""The commands of `agent-memory` and their names. Registers; does nothing itself.

The module of a command is imported when the command is asked for; its line in the list of commands stands here
(https://click.palletsprojects.com/en/stable/complex/#defining-the-lazy-group).
"""

import sys
from difflib import get_close_matches
from importlib import import_module
from typing import Annotated, Any, Final, NamedTuple

import typer
from typer.core import TyperCommand
from typer.main import get_command
from typing_extensions import override

from agent_memory.cli.options import AgentBefore, Json, RootBefore
from agent_memory.cli.running import (
    QUIET,
    USAGE,
    USAGE_ERROR,
    Command,
    Group,
    Monitor,
    PlaceCommand,
    Plain,
    RestoreCommand,
    wants_json,
)
from agent_memory.cli.text import to_json
from agent_memory.settings.installation import installed_version

_HELP: Final = "Look after what an agent remembers: ask, correct, forget, take along."
_EPILOG: Final = (
    "Exit codes: 0 done, 1 failed, 2 wrong usage, 3 not found, 4 another process is writing, 130 stopped by Ctrl-C."
)


class _Entry(NamedTuple):
    module: str
    """Where the function of the command's name is, with `_` behind a word of Python's."""
    help: str
    """What the function's docstring begins with; a test holds them together."""
    kind: type[TyperCommand] | None = Command
    """None for a group that is made already."""


_PANELS: Final[dict[str, dict[str, _Entry]]] = {
    "Ask": {
        "status": _Entry("status", "Show how many memories there are, and whether all is well."),
        "stats": _Entry("stats", "Show how much there is, how it grew and what of it is used."),
        "search": _Entry("ask", "Search notes, documents, pages and conversations by meaning and by words."),
        "overview": _Entry("ask", "Show counts, pinned memories, open tasks and the newest."),
        "list": _Entry("ask", "List memories, the newest first."),
        "show": _Entry("ask", "Show all that is known about memories."),
        "history": _Entry("past", "Show what a memory was before its changes, oldest first."),
        "why": _Entry(
            "why", "Say whence something comes: who wrote it, what it rests on, how far it is trusted and why."
        ),
        "projects": _Entry("projects", "List projects and how many memories belong to each; or move these."),
        "briefing": _Entry("briefing", "Show what a session is told before its first answer, beside the scratchpad."),
    },
    "Change": {
        "store": _Entry("change", "Keep a memory; secrets in it are removed first."),
        "update": _Entry("change", "Change fields of a memory; what is not named stays."),
        "edit": _Entry("change", "Change a memory in $VISUAL or $EDITOR, as YAML."),
        "promote": _Entry("change", "Bring a memory into the scratchpad, which the agent always sees."),
        "pin": _Entry("change", "Keep memories at the top of the scratchpad."),
        "unpin": _Entry("change", "Let memories take their turn in the scratchpad again."),
        "forget": _Entry("past", "Forget memories and the older versions they replaced."),
        "purge": _Entry("purge", "Take records out of every file for good, backups too; list purges."),
        "conflicts": _Entry("conflicts", "Decide about pairs of memories that conflict."),
        "review": _Entry("review", "Decide about waiting notes and conflicts with single keys."),
        "accept": _Entry("accept", "Allow a background model to digest passages: yes to its estimate."),
        "inbox": _Entry("inbox", "List what waits, or accept or reject it: statements without a cue."),
        "undo": _Entry("undo", "List the last 20 changes: who, what, when; or take one back."),
        "consent": _Entry("consent_limits", "Show or limit what may be stored, of one agent or all.", PlaceCommand),
        "restore": _Entry("past", "Bring back what forgetting, replacing, changing or archiving took.", RestoreCommand),
    },
    "Be given": {
        "ingest": _Entry(
            "knowledge",
            "Ingest documents and conversations, each once.",
        ),
        "resources": _Entry("knowledge", "List what the agent was given, the newest first; or show one whole."),
        "topics": _Entry(
            "topics",
            "List topics, those with the most items first, and how many items are on no page.",
        ),
        "topic": _Entry("topics", "Show the page of a topic, or declare one."),
        "entities": _Entry("entities", "List who and what the agent was told of, those that most texts name first."),
        "entity": _Entry("entities", "Show one entity: what is known of it, in the order of time."),
        "episodes": _Entry(
            "entities",
            "List what was said and what happened, the newest first; or one conversation, in its order.",
        ),
        "knowledge": _Entry("rebuild", "Look after what is made of documents and conversations.", None),
        "summaries": _Entry("summaries", "List summaries of conversations, the newest first; or those of one."),
    },
    "Take along": {
        "export": _Entry("transfer", "Write all memories, and what the agent was given, to a file or to stdout."),
        "import": _Entry("transfer", "Bring exported memories in; what is there stays as it is."),
        "push": _Entry("transfer", "Bring what is missing there to the server; nothing there is changed."),
        "pull": _Entry("transfer", "Bring what is missing here from the server; nothing here is changed."),
    },
    "Work in common": {
        "workspace": _Entry(
            "workspace", "Share tables among agents that take turns: begin, look, claim, go back.", None
        ),
    },
    "Look after": {
        "agents": _Entry("upkeep", "List all agents: how many memories, how much room they take.", None),
        "tidy": _Entry(
            "tidy",
            "Show what could be archived, merged or dropped, and why; or do it, within a budget, or take it back.",
        ),
        "archive": _Entry("archive", "Look into the archive: what was put away, and bring it back.", None),
        "backup": _Entry("backup", "List backups; make, check, bring back or remove them.", None),
        "compact": _Entry("past", "Drop from the files what was forgotten or changed over 30 days ago."),
        "encrypt": _Entry("encryption", "Encrypt all that an agent keeps, its backups too, with a key of yours."),
        "decrypt": _Entry("encryption", "Have the files of an agent stand plain again; its backups stay encrypted."),
        "rekey": _Entry("encryption", "Change the key of an encrypted memory: one small file is written anew."),
        "migrate": _Entry("upkeep", "Find memories by the vector engine: faster with many; the files stay the truth."),
        "rollback": _Entry("upkeep", "Find memories from the files alone again."),
        "reindex": _Entry("upkeep", "Build the vector engine's index anew, from the files."),
        "health": _Entry("health", "Say whether all is well, for people and for monitors.", Monitor),
        "doctor": _Entry("doctor", "Look at every file of every agent, and say what is wrong.", PlaceCommand),
        "help": _Entry("app", "Show this help, or that of a command.", Plain),
    },
}
_COMMANDS: Final = {name: entry for panel in _PANELS.values() for name, entry in panel.items()}
_ALIASES: Final = {"ls": "list", "add": "store", "rm": "forget", "suspects": "conflicts"}
_MEANT: Final = {
    "delete": "forget",
    "remove": "forget",
    "find": "search",
    "recall": "search",
    "get": "show",
    "rename": "agents rename",
    "seal": "encrypt",
    "unseal": "decrypt",
}
"""What people type who know other programs, and what it is called here."""


class _Lazy(Group):
    """Loads a command when it is asked for; a list of all of them loads none."""

    def main(self, args: Any = None, *further: Any, **extra: Any) -> Any:
        """Run with the arguments of the process; wrong usage is reported as JSON where JSON was asked for."""
        if not (extra.get("standalone_mode", True) and wants_json(args)):
            return super().main(args, *further, **extra)
        try:
            code = super().main(args, *further, **{**extra, "standalone_mode": False})
        except USAGE_ERROR as error:
            message = str(getattr(error, "format_message", error.__str__)())
            problem = {"code": "usage", "message": message, "recovery": "See `agent-memory help COMMAND`."}
            sys.stdout.write(to_json({"error": problem}, indent=2) + "\n")
            sys.exit(getattr(error, "exit_code", USAGE))
        sys.exit(code or 0)

    @override
    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names in the order of the help."""
        return list(_COMMANDS)

    @override
    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return what a list of commands says of one."""
        for panel, commands in _PANELS.items():
            if cmd_name in commands:
                return Plain(cmd_name, help=commands[cmd_name].help, rich_help_panel=panel)
        return None

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Load the command that `args` begin with, also by its alias, or say which one may be meant."""
        name = _ALIASES.get(args[0], args[0])
        if name in _COMMANDS:
            return args[0], _load(name), args[1:]
        if ctx.resilient_parsing:
            return None, None, args[1:]
        near = _MEANT.get(name) or next(iter(get_close_matches(name, [*_COMMANDS, *_ALIASES], 1)), None)
        hint = f" Did you mean `agent-memory {near}`?" if near else ""
        raise USAGE_ERROR(f"There is no command {name!r}.{hint}", ctx)


def build() -> typer.Typer:
    """Return the application."""
    app = typer.Typer(name="agent-memory", cls=_Lazy, help=_HELP, epilog=_EPILOG, invoke_without_command=True, **QUIET)
    app.callback()(_options)
    return app


def _load(name: str) -> Any:
    entry = _COMMANDS[name]
    module = import_module(f"agent_memory.cli.{entry.module}")
    body = getattr(module, name if hasattr(module, name) else f"{name}_")
    if entry.kind is None:
        command = get_command(body)
    else:
        single = typer.Typer(add_completion=False, **QUIET)
        single.command(name, cls=entry.kind)(body)
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


def _options(
    ctx: typer.Context,
    *,
    agent: AgentBefore = None,
    root: RootBefore = None,
    as_json: Json = False,
    version: Annotated[bool, typer.Option("--version", help="Print the version and stop.")] = False,
) -> None:
    """Show the help if no command is named."""
    del agent, root, as_json  # the command that follows looks for them
    if version:
        typer.echo(f"agent-memory {installed_version()}")
        raise typer.Exit
    if ctx.invoked_subcommand is None:
        _show_help(ctx)
