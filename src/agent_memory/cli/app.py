"""The commands of `agent-memory` and their names. Registers; does nothing itself.

The module of a command is imported when the command is asked for; its line in the list of commands is here
(https://click.palletsprojects.com/en/stable/complex/#defining-the-lazy-group).
"""

import sys
from difflib import get_close_matches
from functools import cache, partial
from importlib import import_module
from shutil import get_terminal_size
from typing import Annotated, Any, Final, NamedTuple

import typer
from typer.main import get_command
from typing_extensions import override

from agent_memory.cli.command_groups import (
    QUIET,
    USAGE_ERROR,
    AgentBefore,
    CommandGroup,
    Json,
    PlainCommand,
    RootBefore,
    wants_json,
)
from agent_memory.cli.exit_codes import STOPPED, USAGE, describe_exit_codes
from agent_memory.earlier_name_tables import COMMANDS, build_notice
from agent_memory.settings.installation import installed_version

_HELP: Final = "Search, edit, review, export and delete what an agent remembers."
_EPILOG: Final = describe_exit_codes()
_LEAST_COLUMNS: Final = 30
"""Narrowest terminal whose help wraps: a name of a command needs half of it."""


class CommandEntry(NamedTuple):
    """One line of the list of commands.

    Attributes:
        module: File of `cli/` that has the command.
        help: First line of the function's docstring.
        kind: Class of the command in `runtime.py`; None for a group that its module builds.
        function: Name of the function, without `_` at its end; the command's name if empty.
    """

    module: str
    help: str
    kind: str | None = "AgentCommand"
    function: str = ""


PlaceEntry: Final = partial(CommandEntry, kind="PlaceCommand")
"""Makes the line of a command that needs no agent."""
_PANELS: Final[dict[str, dict[str, CommandEntry]]] = {
    "Search": {
        "search": CommandEntry("search", "Search memories, documents, pages and conversations."),
        "list": CommandEntry("memory_lists", "List memories, the newest first."),
        "show": CommandEntry("memory_lists", "Show all fields of memories, or the earlier versions of one."),
        "why": CommandEntry("why", "Show who wrote something, its sources, its trust and why."),
        "briefing": CommandEntry("briefing", "Show the context that a session gets before its first answer."),
    },
    "Edit": {
        "store": CommandEntry("store", "Store a memory; secrets in it are removed first."),
        "update": CommandEntry("edit", "Change fields of a memory; the other fields stay."),
        "edit": CommandEntry("edit", "Change a memory in $VISUAL or $EDITOR, as YAML."),
        "pin": CommandEntry("edit", "Keep memories at the top of the scratchpad, or stop that."),
        "forget": CommandEntry("forget", "Forget memories and the older versions they replaced."),
        "restore": CommandEntry(
            "restore", "Restore what was forgotten, replaced, changed or archived.", "RestoreCommand"
        ),
        "undo": CommandEntry("undo", "List the last 20 changes, or undo one."),
    },
    "Review": {
        "review": CommandEntry("review", "Decide about waiting notes and conflicts with single keys."),
        "inbox": CommandEntry("inbox", "List, accept or reject waiting notes."),
        "page": PlaceEntry("web_page", "Open a page in the browser to see, edit, decide and undo.", function="page"),
        "conflicts": CommandEntry("conflicts", "Decide about pairs of memories that conflict."),
        "accept": CommandEntry("accept", "Say yes to a session's proposal, a waiting note or an import."),
    },
    "Knowledge": {
        "ingest": CommandEntry("knowledge", "Ingest documents and conversations, each once."),
        "knowledge": CommandEntry("rebuild", "Show documents, conversations, topics and entities; rebuild.", None),
    },
    "Workspace": {
        "workspace": CommandEntry("workspace", "Share tables among agents that work in turns.", None),
    },
    "Import & export": {
        "export": CommandEntry("export", "Write memories, documents and conversations to a file."),
        "import": CommandEntry("imports", "Import an export, or memories and chats of other programs."),
        "backfill": CommandEntry("backfill", "Import the past sessions of a program; propose memories."),
        "backup": CommandEntry("backup", "List, create, check, restore or delete backups.", None),
    },
    "Privacy": {
        "consent": PlaceEntry("consent_limits", "Show or limit what may be stored."),
        "trust-tool": PlaceEntry(
            "trust_tool", "Trust the output of a tool, by its Python package.", function="trust_tool"
        ),
        "account": CommandEntry(
            "security_review",
            "Show what is stored where, who can read it, and what leaves the machine.",
            function="account",
        ),
        "purge": CommandEntry("purge", "Delete records from all files and backups; list purges."),
        "encryption": CommandEntry("encryption", "Encrypt the files of an agent, decrypt them, change the key.", None),
    },
    "Maintenance": {
        "status": CommandEntry("status", "Show how many memories there are, and problems."),
        "doctor": PlaceEntry("doctor", "Check every file of every agent; repair derived ones."),
        "agents": CommandEntry("upkeep", "List agents; rename, copy, reset or delete one; statistics.", None),
        "archive": CommandEntry("archive", "List, search and restore archived memories; tidy and compact.", None),
        "index": CommandEntry("upkeep", "Use a vector engine or a Qdrant server for search.", None),
    },
    "Setup": {
        "connect": PlaceEntry("connect", "Give an MCP host such as claude-code an agent's memory."),
        "leave": PlaceEntry("leave", "Export everything, disconnect all hosts, and delete what is stored."),
    },
}
_COMMANDS: Final = {name: entry for panel in _PANELS.values() for name, entry in panel.items()}
_HIDDEN: Final = {
    "help": CommandEntry("app", "Show this help, or that of a command.", "PlainCommand"),
    "overview": CommandEntry("search", "Show counts, pinned memories, open tasks and the newest."),
    "mcp": PlaceEntry("mcp_server", "Serve an MCP host on stdin and stdout, until it closes them."),
    "use": PlaceEntry("upkeep", "Choose the agent that commands without --agent work on."),
    "projects": CommandEntry("projects", "List projects, or move memories to another one."),
    "man": CommandEntry("man_pages", "Write a page of the manual for each command.", "PlainCommand"),
}
SUBCOMMANDS: Final[dict[str, dict[str, CommandEntry]]] = {
    "agents": {
        "use": PlaceEntry("upkeep", "Choose the agent that commands without --agent work on."),
        "projects": CommandEntry("projects", "List projects, or move memories to another one."),
        "stats": CommandEntry("stats", "Show how many memories there are, how they grew and which are used."),
        "health": CommandEntry("health", "Print one verdict for people and for monitors.", "MonitorCommand"),
    },
    "archive": {
        "tidy": CommandEntry("tidy", "Show what could be archived, merged or deleted, and why; apply or undo."),
        "compact": CommandEntry("compact", "Delete from the files what was forgotten or changed over 30 days ago."),
    },
    "encryption": {
        "on": CommandEntry("encryption", "Encrypt an agent and its backups with a key.", function="encrypt"),
        "off": CommandEntry(
            "encryption", "Decrypt the files of an agent; its backups stay encrypted.", function="decrypt"
        ),
        "rekey": CommandEntry("encryption", "Change the key of an encrypted agent; one small file is rewritten."),
    },
    "index": {
        "migrate": CommandEntry(
            "upkeep", "Search with the vector engine, faster for many memories; files stay the source."
        ),
        "rollback": CommandEntry("upkeep", "Search the files alone again."),
        "rebuild": CommandEntry("upkeep", "Rebuild the vector engine's index from the files.", function="reindex"),
        "push": CommandEntry("index_transfer", "Copy to the server what is missing there; nothing there is changed."),
        "pull": CommandEntry("index_transfer", "Copy from the server what is missing here; nothing here is changed."),
    },
    "knowledge": {
        "rebuild": CommandEntry(
            "rebuild", "Process stored documents and conversations again with this version's rules."
        ),
        "resources": CommandEntry("knowledge", "List documents and conversations, the newest first; or show one."),
        "episodes": CommandEntry(
            "entities", "List turns of conversations, newest first; or one conversation in order."
        ),
        "summaries": CommandEntry("entities", "List summaries of conversations, the newest first; or those of one."),
        "topics": CommandEntry("topics", "List topics, and how many items are on no page."),
        "topic": CommandEntry("topics", "Show the page of a topic, or declare one."),
        "entities": CommandEntry("entities", "List people and things, the most often named first."),
        "entity": CommandEntry("entities", "Show one entity and its facts in order of time."),
    },
    "workspace": {
        "check": PlaceEntry("workspace.workspace_files", "Check a declaration and print errors with line and column."),
        "init": PlaceEntry("workspace.workspace_files", "Create a workspace in this folder, or in --at."),
        "status": PlaceEntry("workspace.board", "Show phases and rows with their claims, failures and open questions."),
        "next": PlaceEntry("workspace.board", "List the steps that can run now."),
        "claim": PlaceEntry("workspace.rows", "Claim a step; --finish, --release, --renew, --fail read it from stdin."),
        "table": PlaceEntry("workspace.rows", "List the rows of a table, sorted by key."),
        "row": PlaceEntry("workspace.rows", "Show all fields of a row."),
        "save": PlaceEntry("workspace.rows", "Save rows from stdin as JSON; rows with known keys are changed."),
        "log": PlaceEntry("workspace.rows", "List changes, newest first, with their writer and step."),
        "snapshot": PlaceEntry(
            "workspace.workspace_files", "Create, list, verify or delete snapshots of rows and files."
        ),
        "diff": PlaceEntry(
            "workspace.workspace_files", "Show differences between two snapshots, or one and the present."
        ),
        "restore": PlaceEntry(
            "workspace.workspace_files", "Restore a snapshot; the present state is saved as a snapshot first."
        ),
        "resume": PlaceEntry(
            "workspace.workspace_files", "Repeat the steps of a row, starting at a phase; ends claims."
        ),
        "export": PlaceEntry("workspace.workspace_files", "Write all visible rows to a new file."),
        "import": PlaceEntry("workspace.workspace_files", "Import an export into an empty workspace, all or nothing."),
    },
}
"""Rare commands, in the group of their noun."""
_COMPLETION: Final = {"install_completion", "show_completion"}
"""Options of the shell, which `docs/reference/cli.md` describes."""
_ALIASES: Final = {"ls": "list", "add": "store", "rm": "forget"}
_OTHER_NAMES: Final = {
    "delete": "forget",
    "remove": "forget",
    "find": "search",
    "recall": "search",
    "get": "show",
    "rename": "agents rename",
    "seal": "encryption on",
    "unseal": "encryption off",
}
"""Commands by their names in other programs."""


class _RootGroup(CommandGroup):
    """Root group that imports a command when it is called."""

    def main(self, args: Any = None, *further: Any, **extra: Any) -> Any:
        """Run with the process arguments; print usage errors as other errors."""
        if not extra.get("standalone_mode", True):
            return super().main(args, *further, **extra)
        try:
            code = super().main(args, *further, **{**extra, "standalone_mode": False})
        except typer.Abort:
            sys.exit(STOPPED)
        except USAGE_ERROR as error:
            _print_usage_error(error, is_json=wants_json(args))
            sys.exit(getattr(error, "exit_code", USAGE))
        sys.exit(code if isinstance(code, int) else 0)

    @override
    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the commands by group, without frames: they fit on one screen."""
        formatter.width = min(formatter.width, max(get_terminal_size().columns, _LEAST_COLUMNS))
        formatter.write_usage(ctx.command_path, "[OPTIONS] COMMAND [ARGS]...")
        formatter.write_paragraph()
        formatter.write_text(_HELP)
        formatter.write_paragraph()
        shown = [param for param in self.get_params(ctx) if param.name not in _COMPLETION]
        options = [record for param in shown if (record := param.get_help_record(ctx))]
        width = max(len(name) for name in _COMMANDS)
        for title, rows in {
            "Options": options,
            **{
                panel: [(name.ljust(width), entry.help) for name, entry in commands.items()]
                for panel, commands in _PANELS.items()
            },
        }.items():
            formatter.write_heading(title)
            formatter.indent()
            formatter.write_dl(rows)
            formatter.dedent()
        formatter.write_paragraph()
        formatter.write_text(_EPILOG)

    @override
    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names in the order of the help."""
        return list(_COMMANDS)

    @override
    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return a placeholder with the help line of a command."""
        entry = _COMMANDS.get(cmd_name)
        return PlainCommand(cmd_name, help=entry.help) if entry else None

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Import the named command or its alias, or suggest a similar name."""
        name = _ALIASES.get(args[0], args[0])
        if name in COMMANDS:
            words = COMMANDS[name].split()
            if not ctx.resilient_parsing:
                typer.echo(f"note: {build_notice(name)}", err=True)
            return words[0], _load(words[0]), [*words[1:], *args[1:]]
        if name in _COMMANDS or name in _HIDDEN:
            return args[0], _load(name), args[1:]
        if ctx.resilient_parsing:
            return None, None, args[1:]
        near = _OTHER_NAMES.get(name) or next(iter(get_close_matches(name, [*_COMMANDS, *_ALIASES], 1)), None)
        hint = f" Did you mean `agent-memory {near}`?" if near else ""
        raise USAGE_ERROR(f"No command {name!r}.{hint}", ctx)


def _print_usage_error(error: Any, *, is_json: bool) -> None:
    """Print an error of the command line itself, or its JSON document."""
    from agent_memory.models.text import plain, to_json

    message = " ".join(str(getattr(error, "format_message", error.__str__)()).split())
    context = getattr(error, "ctx", None)
    path = context.command_path if context is not None else "agent-memory"
    if is_json:
        problem = {"code": "usage", "message": message, "recovery": f"See `{path} --help`."}
        sys.stdout.write(to_json({"error": problem}, indent=2) + "\n")
        return
    usage = " ".join(context.get_usage().split()) if context is not None else "Usage: agent-memory COMMAND"
    sys.stderr.write(plain(f"error: {message}\nhint: {usage} (see `{path} --help`)\n"))


def build() -> typer.Typer:
    """Return the application."""
    app = typer.Typer(
        name="agent-memory", cls=_RootGroup, help=_HELP, epilog=_EPILOG, invoke_without_command=True, **QUIET
    )
    app.callback()(_options)
    return app


def _load(name: str) -> Any:
    """Import a command of the first level with its subcommands."""
    entry = {**_COMMANDS, **_HIDDEN}[name]
    command = import_command(name, entry)
    if entry.kind is None and name in SUBCOMMANDS:
        entries = SUBCOMMANDS[name]
        command.offer(
            {name: entry.help for name, entry in entries.items()}, lambda word: import_command(word, entries[word])
        )
    return command


@cache
def import_command(name: str, entry: CommandEntry) -> Any:
    """Import the module of a command and build the command."""
    module, function = import_module(f"agent_memory.cli.{entry.module}"), entry.function or name
    if entry.kind is None and not hasattr(module, function):
        return CommandGroup(name=name, help=entry.help, no_args_is_help=True)
    body = getattr(module, function if hasattr(module, function) else f"{function}_")
    if entry.kind is None:
        command = get_command(body)
    else:
        single = typer.Typer(add_completion=False, **QUIET)
        kind = PlainCommand if entry.kind == PlainCommand.__name__ else _load_kind(entry.kind)
        single.command(name, cls=kind)(body)
        command = get_command(single)
    command.name = name
    return command


def _load_kind(name: str) -> type[PlainCommand]:
    """Return a class of commands that open a memory."""
    kind: type[PlainCommand] = getattr(import_module("agent_memory.cli.runtime"), name)
    return kind


def help_(
    ctx: typer.Context,
    words: Annotated[
        list[str] | None, typer.Argument(metavar="COMMAND", help="Name of a command; without it, all.")
    ] = None,
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
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False,
) -> None:
    """Show the help if no command is named."""
    del agent, root, as_json  # the command that follows looks for them
    if version:
        typer.echo(f"agent-memory {installed_version()}")
        raise typer.Exit
    if ctx.invoked_subcommand is None:
        _show_help(ctx)
