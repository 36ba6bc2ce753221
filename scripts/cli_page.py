"""docs/reference/cli.md, made of the commands and their help."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

import typer

from agent_memory.cli.app import build
from agent_memory.cli.exit_codes import MEANINGS
from agent_memory.earlier_name_tables import COMMANDS, JSON_KEYS, LAST_VERSION, RENAMED_SETTINGS, SETTINGS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_COMMON: Final = {"--agent", "--root", "--json", "--help", "--format", "--fields", "--no-pager", "--yes"}
_WORKSPACE: Final = {"--at", "--url"}
"""Options of the commands of `workspace`, which the introduction describes."""
_ID_HELP: Final = re.compile(r"Ids? of a memory, e\.g\. .*")
_INTRODUCTION: Final = """\
# Command line

Generated from the commands by `make docs`. `agent-memory help COMMAND` prints the same text.

Every command takes `--agent NAME`, `--root PATH`, `--json` and `--help`, before or after its name. `agents`
and `backup` name agents in their arguments. `agent-memory --version` prints the version.

Commands of `workspace` take no agent, but (except `check`) `--at FOLDER`, by default the workspace around this folder,
and `--url URL`, its PostgreSQL database. `AGENT_MEMORY_WORKSPACE_URL` is safer: hidden from process lists.

`ls`, `add` and `rm` are short for `list`, `store` and `forget`.

| variable | meaning |
|---|---|
| `AGENT_MEMORY_AGENT`, `AGENT_MEMORY_ROOT` | as `--agent` and `--root` |
| `AGENT_MEMORY_KEY`, `_KEY_FILE`, `_KEY_COMMAND`, `_KEY_KEYRING` | source of the [key](../how-to/encrypt.md) |
| `AGENT_MEMORY_NEW_KEY` | new key for `encryption rekey` |
| `AGENT_MEMORY_WORKSPACE_URL` | PostgreSQL database of a workspace |
| `QDRANT_URL`, `QDRANT_API_KEY` | server of `index push` and `index pull`, and its key |
| `VISUAL`, `EDITOR` | editor of `edit` |
| `NO_COLOR`, `COLUMNS` | no colors; width of the output, at most 100 |

- **IDs.** The first characters of an ID are enough if they are unambiguous. A change needs at least four.
- **Output.** Results go to stdout, messages to stderr. Control characters in memories are shown as codes.
- **JSON.** With `--json`, stdout is exactly one document. An error is
  `{{"error": {{"code", "message", "recovery"}}}}`; [Errors](errors.md) lists the codes.
- **Dates.** `2026-03-01`, `2026-03`, and words such as `yesterday`, `last week` or `7d`. An ambiguous date is refused.
- **Questions.** Commands that ask take `--yes` (`-y`). Without a terminal and without it, nothing is changed.
- **Forms.** Commands that print rows take `--format` (`text`, `table`, `csv`, `jsonl` or `json`) and
  `--fields id,content`.
- **Completion.** `agent-memory --install-completion` for bash, zsh, fish and PowerShell.
- **Pager.** Lists longer than the terminal open in `AGENT_MEMORY_PAGER`, `PAGER` or less; `--no-pager` prints them.
- **Manual.** `agent-memory man` writes pages to `~/.local/share/man/man1`.

| exit code | meaning |
|---|---|
{codes}

`agents health` has the codes of monitoring plugins: 0 ok, 1 warning, 2 critical, 3 unknown.
"""
DOCUMENTS: Final = {
    "search": "agent_id, match, results, total_found, search_latency_ms, mode, answer_confidence, not_known",
    "list": "agent_id, count, total, memories",
    "show --history": "memory_id, versions",
    "briefing": "agent_id, text, tokens, sources",
    "projects": "agent_id, count, without, projects",
    "undo": "agent_id, changes, imports",
    "inbox": "agent_id, waiting",
    "conflicts": "agent_id, suspects",
    "topics": "agent_id, count, unfiled, topics",
    "entities": "agent_id, count, total, entities",
    "knowledge resources": "agent_id, count, total, resources",
    "consent": "agent_id, enabled, mode, decided_by, sources, warnings",
    "status": "agent_id, backend, counts, embedder, health, last_write, suggestions, folder, encrypted, background, "
    "consent",
    "doctor": "root, healthy, findings, agents, repairs",
    "agents": "root, agents",
    "agents stats": "agent_id, memories, items, superseded, expired, pinned, by_category, by_trust, by_source, "
    "by_project, by_group, others, accesses, never_used, never_used_share, most_used, weeks, embedded, captures, "
    "sizes, plot",
    "agents health": "root, level, code, agents",
    "archive tidy": "agent_id, applied, run, budget, waiting, memories, archived, left_out, suggestions",
    "backup list": "folder, backups",
}
"""Keys of the JSON document of commands that only read."""
_DOCUMENTS: Final = """\
## JSON documents

`show ID --json` is the record. Each finding of `doctor` has `code`, `severity`, `area`, `sentence`, `advice`, `bytes`,
`repair` and `details`. Each agent of `agents health` has `agent_id`, `folder`, `level` and `checks`: `code`, `level`,
`sentence`, `advice`, `value`, `unit`, `warning`, `critical`, `settings`.

"""


def list_earlier_names() -> str:
    """Return the list of earlier names, for docs/reference/cli.md and the changelog."""
    keys = ", ".join(f"`{key}` of `{name}`" for key, (name, _) in JSON_KEYS.items())
    renamed = "".join(f"- The setting `{name}` is called `{present}`.\n" for name, present in RENAMED_SETTINGS.items())
    ended = "".join(f"- The setting `{name}` has no effect.\n" for name in SETTINGS)
    return (
        f"These commands work until version {LAST_VERSION}; a notice names the present one.\n\n"
        f"`{'`, `'.join(COMMANDS)}`, `overview`.\n\n"
        f"- With `--json`, these keys have a constant value, for older programs: {keys}.\n{renamed}{ended}"
    )


def update_changelog(text: str) -> str:
    """Return the changelog with the present list of earlier names."""
    return re.sub(
        r"(?<=### Deprecated\n\n).*?(?=\n### )", lambda _: list_earlier_names(), text, count=1, flags=re.DOTALL
    )


def document() -> str:
    """Return docs/reference/cli.md."""
    root: Any = typer.main.get_command(build())
    context = typer.Context(root, info_name="agent-memory")
    sections = [
        "\n".join(_command_lines(command, words))
        for words, command in _walk(root, context, [])
        if not hasattr(command, "list_commands") or _own_params(command)
    ]
    documents = "".join(f"- `{name}`: `{keys}`\n" for name, keys in DOCUMENTS.items())
    codes = "\n".join(f"| {code} | {meaning} |" for code, meaning in MEANINGS.items())
    earlier = f"## Earlier names\n\n{list_earlier_names()}"
    return "\n".join([_INTRODUCTION.format(codes=codes), *sections, _DOCUMENTS + documents, earlier])


def _walk(group: Any, context: Any, words: Sequence[str]) -> Iterator[tuple[list[str], Any]]:
    """Yield the words and the command of each command and subcommand."""
    for name in group.list_commands(context):
        _, command, _ = group.resolve_command(context, [name])
        path = [*words, name]
        yield path, command
        if hasattr(command, "list_commands"):
            yield from _walk(command, typer.Context(command, info_name=name, parent=context), path)


def _own_params(command: Any) -> list[Any]:
    """Return the parameters that not every command has."""
    return [
        param
        for param in command.params
        if not (_COMMON & set(param.opts) or getattr(param, "hidden", False) or param.name == "help")
    ]


def _command_lines(command: Any, words: Sequence[str]) -> list[str]:
    """Return heading, help and parameters of one command."""
    help_text = " ".join((command.help or "").replace("\b", "").replace("\\[", "[").split())
    lines = [f"## {' '.join(words)}", "", help_text, ""]
    for param in _own_params(command):
        if words[0] == "workspace" and _WORKSPACE & set(param.opts):
            continue
        text = _ID_HELP.sub("", param.help or "")
        lines.append(f"- {_signature(param)}: {text}" if text else f"- {_signature(param)}")
    return [*lines, ""] if lines[-1] else lines


def _signature(param: Any) -> str:
    """Return how a parameter is written on the command line."""
    if param.param_type_name == "argument":
        return f"`{param.metavar or param.name.upper()}`"
    names = ", ".join(f"`{name}`" for name in (*param.opts, *param.secondary_opts))
    metavar = f" `{param.metavar}`" if param.metavar and not param.is_flag else ""
    return names + metavar
