"""The archive of an account: `README.md`, a page for each kind of record, `records.jsonl` for programs, other files."""

from __future__ import annotations

import json
import re
import zipfile
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from agent_memory.care.account.records import Lines, audit_of, holdings_in, lines_of, other_files
from agent_memory.files.wording import counted
from agent_memory.language.prompt_text import fence, get_fence
from agent_memory.models import visible

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import IO

    from agent_memory.care.account.names import SearchedNames
    from agent_memory.care.account.records import Holding
    from agent_memory.files.layout import AgentFolder

_PAGES: Final[dict[str, tuple[str, str]]] = {
    "memory": ("memories.md", "Memories: what the agent remembers"),
    "archived": ("archive.md", "The archive: memories that were put away"),
    "candidate": ("inbox.md", "The inbox: what waits for a person's yes"),
    "resource": ("documents.md", "Documents and conversations that the agent was given"),
    "episode": ("turns.md", "What was said, and what happened"),
    "summary": ("summaries.md", "Summaries of conversations"),
    "entity": ("entities.md", "Persons, places and things"),
    "mentions": ("mentions.md", "Which text names whom"),
    "relation": ("relations.md", "How these have to do with each other"),
    "topic": ("topics.md", "Pages of topics"),
}
"""By kind of record: the name of its page, and its title. Other kinds have nothing to read: JSON alone has them."""
_MOMENT: Final = re.compile(r"(\d{4}-\d\d-\d\d)T(\d\d:\d\d):\d\d(?:\.\d+)?(?:Z|\+00:00)")
_FIRST: Final = ("content", "body", "name", "description", "title")
"""Fields that are shown as text; all others stand below, a line each."""
NOT_LOOKED_INTO: Final = (
    "backups in `_backups/`, which have what there was when they were made",
    "workspaces, the tables that agents share (`agent-memory workspace export`)",
    "transcripts of the host, and what a model or a provider of one was shown",
    "earlier exports, copies of the folder in other places, earlier states kept by the file system",
    "vectors and indexes, which hold numbers made of these texts and no text",
    "other agents: each has a memory of its own",
)
"""What every account says of itself."""


@dataclass(frozen=True, slots=True)
class Account:
    """What an archive has.

    Attributes:
        names: What was looked for; empty where all of an agent is told.
        by_kind: How many records there are of each kind.
        gone: How many of all of them were forgotten, and stand in the files still.
        lines: How many lines of other files.
    """

    names: tuple[str, ...]
    by_kind: Counter[str]
    gone: int
    lines: int


def write_account(folder: AgentFolder, target: IO[bytes], at: str, names: SearchedNames | None = None) -> Account:
    """Write an account as a zip file. Blocking; reads every journal whole.

    Args:
        folder: Of the agent.
        target: Where to.
        at: The moment, as text.
        names: Tell only what concerns these; everything if None.

    Raises:
        StorageError: A journal cannot be read.
    """
    every = holdings_in(folder)
    chosen = every if names is None else [each for each in every if names.concern(each)]
    ids = None if names is None else {each.id for each in chosen} | names.entities
    beside = _beside(folder, names)
    audit = audit_of(folder, ids)
    by_kind = Counter(each.kind for each in chosen)
    account = Account(
        () if names is None else names.names,
        by_kind,
        sum(each.is_gone for each in chosen),
        sum(len(each.lines) for each in beside),
    )
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("README.md", _readme(folder.agent_id, at, account, beside, audit))
        for kind, (name, title) in _PAGES.items():
            if some := [each for each in chosen if each.kind == kind]:
                archive.writestr(name, f"# {title}\n\n" + "\n".join(map(_section, some)))
        archive.writestr("records.jsonl", "".join(f"{_as_json(each)}\n" for each in chosen))
        if audit:
            archive.writestr("events.jsonl", "".join(f"{line}\n" for line in audit))
        for each in beside:
            archive.writestr(f"files/{each.file}", _of_file(each, is_whole=names is None))
    return account


def _beside(folder: AgentFolder, names: SearchedNames | None) -> list[Lines]:
    found = [lines_of(path, path.relative_to(folder.path).as_posix()) for path in other_files(folder)]
    if names is not None:
        found = [Lines(each.file, tuple(line for line in each.lines if names.are_in(line[1]))) for each in found]
    return [each for each in found if each.lines]


def _of_file(each: Lines, *, is_whole: bool) -> str:
    return "".join(f"{text}\n" if is_whole else f"{number}: {text}\n" for number, text in each.lines)


def _readme(agent_id: str, at: str, account: Account, beside: Sequence[Lines], audit: Sequence[str]) -> str:
    whom = f"about {_quote_inline(account.names[0])}" if account.names else ""
    lines = [
        f"# What the agent {agent_id} holds{' ' if whom else ''}{whom}",
        "",
        f"Written {_moment(at)} by agent-memory.",
        "",
    ]
    if account.names:
        lines.append(
            "Looked for as words of their own, in capital and small letters: "
            f"{', '.join(map(_quote_inline, account.names))}. Texts that speak of the same one by other words, such as "
            '"she" or a misspelt name, are not found. What is here may name others, too.\n'
        )
    if not account.by_kind and not beside:
        lines += ["Nothing was found.", ""]
    else:
        lines += ["| file | what it has | how many |", "|---|---|---|"]
        for kind, (name, title) in _PAGES.items():
            if account.by_kind[kind]:
                lines.append(f"| {name} | {title} | {account.by_kind[kind]} |")
        lines.append(
            f"| records.jsonl | all records with all fields, one a line, as JSON | {account.by_kind.total()} |"
        )
        if audit:
            lines.append(f"| events.jsonl | when these were stored, changed or forgotten: no texts | {len(audit)} |")
        part = "lines that have the name, with their numbers" if account.names else "the file as it is"
        lines += [f"| files/{each.file} | {part} | {len(each.lines)} |" for each in beside]
        lines.append("")
    if account.gone:
        lines.append(
            f"Forgotten: {counted(account.gone, 'record')} of these. No search finds them; their texts stay in the "
            "files for 30 days at least, and are marked here.\n"
        )
    return "\n".join([*lines, *_ENDING])


_ENDING: Final = (
    "## Not looked into",
    "",
    *(f"- {each}" for each in NOT_LOOKED_INTO),
    "",
    "## To have something gone",
    "",
    "`agent-memory forget ID` has it found no more; `agent-memory purge ID` takes it out of every file, backups too.",
    "",
)


def _section(each: Holding) -> str:
    """Return a record for a person: its texts as blocks that nothing in them can end, then its other fields."""
    gone = f" (forgotten {_moment(each.at)}, in the file still)" if each.is_gone else ""
    lines = [f"## {each.id}{gone}", ""]
    for name in _FIRST:
        if isinstance(text := each.data.get(name), str) and text:
            lines += [*([] if name in {"content", "body"} else [f"{name}:", ""]), _quote_block(text), ""]
    lines += [
        f"- {name}: {_quote_inline(_plain(name, value))}" for name, value in each.data.items() if name not in _FIRST
    ]
    lines += [f"- last change: {_moment(each.at)}", f"- file: {each.journal}", ""]
    if each.earlier:
        lines += ["Said before:", ""]
        for text in each.earlier:
            lines += [_quote_block(text), ""]
    return "\n".join(lines)


def _quote_block(text: str) -> str:
    """Return a text as a code block: nothing in it is a link, picture or HTML."""
    return fence("\n".join(map(visible, text.splitlines())), "text")


def _quote_inline(text: str) -> str:
    """Return a text as code within a line."""
    text = visible(text)
    marks = get_fence(text, 1)
    space = " " if "`" in text else ""
    return f"{marks}{space}{text}{space}{marks}".replace("|", "\\|") if text else "``"


def _plain(name: str, value: Any) -> str:
    """Return a field in words; `records.jsonl` has it to the letter."""
    match value:
        case str():
            return _moment(value)
        case {"kind": str(kind), **more} if name == "source":
            return ", ".join([kind, *map(str, more.values())])
        case [*some] if some and all(isinstance(each, str) for each in some):
            return ", ".join(some)
        case [*some] if some and all(isinstance(each, dict) and {"rel", "id"} <= each.keys() for each in some):
            return ", ".join(f"{each['rel']} {each['id']}" for each in some)
    return json.dumps(value, ensure_ascii=False)


def _moment(text: str) -> str:
    """Return a moment to the minute; any other text as it is."""
    found = _MOMENT.fullmatch(text)
    return f"{found[1]} {found[2]} UTC" if found else text


def _as_json(each: Holding) -> str:
    head = {"kind": each.kind, "id": each.id, "file": each.journal, "last_change": each.at}
    state = {"forgotten": True} if each.is_gone else {}
    before = {"earlier_texts": list(each.earlier)} if each.earlier else {}
    return json.dumps({**head, **state, **before, "fields": each.data}, ensure_ascii=False)
