"""Accounts: zip files for people with all that an agent holds."""

from __future__ import annotations

import contextlib
import json
import re
import unicodedata
import zipfile
from collections import Counter
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from agent_memory.encryption import AgentBlobs
from agent_memory.errors import StorageError
from agent_memory.files.atomic import read_file, translated
from agent_memory.files.names import AUDIT, OLDER_AUDIT, PURGE_KEY, PURGED, VECTORS, classify_name
from agent_memory.files.wording import counted
from agent_memory.journal import PurgeList, Records, apply_change, list_texts
from agent_memory.journal.reader import JournalReader
from agent_memory.language.prompt_text import fence, get_fence
from agent_memory.language.words import fold
from agent_memory.models import ENTITY, MERGED_INTO, visible
from agent_memory.models.text import iter_strings

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path
    from typing import IO

    from agent_memory.files.layout import AgentFolder


PAGES: Final[dict[str, tuple[str, str]]] = {
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
    "verbatim": ("frameworks.md", "What other frameworks store"),
}
"""By kind of record: the name of its page, and its title. Other kinds have nothing to read: JSON alone has them."""
_MOMENT: Final = re.compile(r"(\d{4}-\d\d-\d\d)T(\d\d:\d\d):\d\d(?:\.\d+)?(?:Z|\+00:00)")
_FIRST: Final = ("content", "body", "name", "description", "title")
"""Fields that are shown as text; all others follow, a line each."""
NOT_SEARCHED: Final = (
    "backups in `_backups/`, which have what there was when they were made",
    "workspaces, the tables that agents share (`agent-memory workspace export`)",
    "transcripts of the host, and what a model or a provider of one was shown",
    "earlier exports, copies of the folder in other places, earlier states kept by the file system",
    "vectors and indexes, which hold numbers made of these texts and no text",
    "other agents: each has a memory of its own",
)
"""What every account says of itself."""


@dataclass(frozen=True, slots=True)
class AccountSummary:
    """Counts of a written archive.

    Attributes:
        names: Names that were searched; empty for a whole agent.
        by_kind: Number of records of each kind.
        gone: Number of forgotten records that are still in the files.
        lines: Number of lines of other files.
    """

    names: tuple[str, ...]
    by_kind: Counter[str]
    gone: int
    lines: int


def write_account(
    folder: AgentFolder, target: IO[bytes], moment: str, names: SearchedNames | None = None
) -> AccountSummary:
    """Write an account as a zip file. Blocking; reads every journal whole.

    Args:
        folder: Folder of the agent.
        target: Open binary file to write to.
        moment: Moment of writing, as text.
        names: Tell only what concerns these; everything if None.

    Raises:
        StorageError: A journal cannot be read.
    """
    holdings = list_held_records(folder)
    chosen = holdings if names is None else [item for item in holdings if names.concern(item)]
    ids = None if names is None else {item.id for item in chosen} | names.entities
    files = _read_other_files(folder, names)
    audit = read_audit_lines(folder, ids)
    gone, lines = sum(item.is_gone for item in chosen), sum(map(len, files.values()))
    searched = () if names is None else names.names
    account = AccountSummary(searched, Counter(item.kind for item in chosen), gone, lines)
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("README.md", _readme(folder.agent_id, moment, account, files, audit))
        for kind, (name, title) in PAGES.items():
            if of_kind := [item for item in chosen if item.kind == kind]:
                archive.writestr(name, f"# {title}\n\n" + "\n".join(map(_section, of_kind)))
        archive.writestr("records.jsonl", "".join(f"{_as_json(item)}\n" for item in chosen))
        if audit:
            archive.writestr("events.jsonl", "".join(f"{line}\n" for line in audit))
        for name, numbered in files.items():
            shown = (text if names is None else f"{number}: {text}" for number, text in numbered)
            archive.writestr(f"files/{name}", "".join(f"{line}\n" for line in shown))
    return account


def _read_other_files(folder: AgentFolder, names: SearchedNames | None) -> dict[str, list[tuple[int, str]]]:
    """Return numbered lines of files that are not journals, by name."""
    files = {
        path.relative_to(folder.path).as_posix(): list(enumerate(read_lines(path), 1)) for path in other_files(folder)
    }
    if names is not None:
        files = {name: [line for line in lines if names.are_in(line[1])] for name, lines in files.items()}
    return {name: lines for name, lines in files.items() if lines}


def _readme(
    agent_id: str, moment: str, account: AccountSummary, files: Mapping[str, Sequence[object]], audit: Sequence[str]
) -> str:
    whom = f" about {_quote_inline(account.names[0])}" if account.names else ""
    lines = [f"# What the agent {agent_id} holds{whom}", "", f"Written {_format_moment(moment)} by agent-memory.", ""]
    if account.names:
        lines.append(
            f"Searched for these whole words, in any case: {', '.join(map(_quote_inline, account.names))}. Texts that "
            'use other words for the same person, such as "she" or a misspelled name, are not found. These texts can '
            "also name other people.\n"
        )
    if not account.by_kind and not files:
        lines += ["Nothing was found.", ""]
    else:
        lines += ["| file | what it has | how many |", "|---|---|---|"]
        counts = account.by_kind
        lines += [f"| {name} | {title} | {counts[kind]} |" for kind, (name, title) in PAGES.items() if counts[kind]]
        lines.append(f"| records.jsonl | all records with all fields, one a line, as JSON | {counts.total()} |")
        if audit:
            lines.append(f"| events.jsonl | when these were stored, changed or forgotten: no texts | {len(audit)} |")
        part = "lines that have the name, with their numbers" if account.names else "the file as it is"
        lines += [f"| files/{name} | {part} | {len(numbered)} |" for name, numbered in files.items()]
        lines.append("")
    if account.gone:
        lines.append(
            f"Forgotten: {counted(account.gone, 'record')} of these. No search finds them; their texts stay in the "
            "files for 30 days at least, and are marked here.\n"
        )
    return "\n".join([*lines, *_ENDING])


_ENDING: Final = (
    "## Not searched",
    "",
    *(f"- {place}" for place in NOT_SEARCHED),
    "",
    "## How to remove something",
    "",
    "`agent-memory forget ID` hides a record from every search.",
    "`agent-memory purge ID` deletes its text from every file, backups included.",
    "",
)


def _section(holding: HeldRecord) -> str:
    """Return a record as Markdown: texts as code blocks, then other fields."""
    gone = f" (forgotten {_format_moment(holding.at)}, in the file still)" if holding.is_gone else ""
    lines = [f"## {holding.id}{gone}", ""]
    for name in _FIRST:
        if isinstance(text := holding.data.get(name), str) and text:
            lines += [*([] if name in {"content", "body"} else [f"{name}:", ""]), _quote_block(text), ""]
    fields = [(name, value) for name, value in holding.data.items() if name not in _FIRST]
    lines += [f"- {name}: {_quote_inline(_describe_value(name, value))}" for name, value in fields]
    lines += [f"- last change: {_format_moment(holding.at)}", f"- file: {holding.journal}", ""]
    if holding.earlier:
        lines += ["Said before:", "", *(line for text in holding.earlier for line in (_quote_block(text), ""))]
    return "\n".join(lines)


def _quote_block(text: str) -> str:
    """Return a text as a code block, without links, pictures or HTML."""
    return fence("\n".join(map(visible, text.splitlines())), "text")


def _quote_inline(text: str) -> str:
    """Return a text as code within a line."""
    text = visible(text)
    marks = get_fence(text, 1)
    space = " " if "`" in text else ""
    return f"{marks}{space}{text}{space}{marks}".replace("|", "\\|") if text else "``"


def _describe_value(name: str, value: Any) -> str:
    """Return a field in words; `records.jsonl` has the exact value."""
    match value:
        case str():
            return _format_moment(value)
        case {"kind": str(kind), **more} if name == "source":
            return ", ".join([kind, *map(str, more.values())])
        case [*some] if some and all(isinstance(item, str) for item in some):
            return ", ".join(some)
        case [*some] if some and all(isinstance(item, dict) and {"rel", "id"} <= item.keys() for item in some):
            return ", ".join(f"{item['rel']} {item['id']}" for item in some)
    return json.dumps(value, ensure_ascii=False)


def _format_moment(text: str) -> str:
    """Return a moment to the minute; any other text as it is."""
    match = _MOMENT.fullmatch(text)
    return f"{match[1]} {match[2]} UTC" if match else text


def _as_json(holding: HeldRecord) -> str:
    head = {"kind": holding.kind, "id": holding.id, "file": holding.journal, "last_change": holding.at}
    state = {"forgotten": True} if holding.is_gone else {}
    before = {"earlier_texts": list(holding.earlier)} if holding.earlier else {}
    return json.dumps({**head, **state, **before, "fields": holding.data}, ensure_ascii=False)


_UNSPACED: Final = "⺀"
"""First character of scripts without spaces, where a name may touch another word."""


@dataclass(frozen=True, slots=True)
class SearchedNames:
    """Names and entities to search for.

    Attributes:
        names: Requested name, then other names of the same entity.
        entities: IDs of the entities with these names.
    """

    names: tuple[str, ...]
    entities: frozenset[str] = frozenset()

    def are_in(self, text: str) -> bool:
        """Return True if a text has a name as a word."""
        return _pattern(self.names).search(_normal(text)) is not None

    def concern(self, holding: HeldRecord) -> bool:
        """Return True if a record has a name or concerns an entity."""
        if holding.id in self.entities:
            return True
        pattern = _pattern(self.names)
        return any(text in self.entities or pattern.search(_normal(text)) for text in holding.strings())


def find_known_names(name: str, holdings: Iterable[HeldRecord]) -> SearchedNames:
    """Return all names of an entity, including aliases and merged entities.

    Args:
        name: Name or ID of an entity.
        holdings: All records.
    """
    entities = {entity.id: entity for entity in holdings if entity.kind == ENTITY.name}
    ids = {
        entity_id
        for entity_id, entity in entities.items()
        if entity_id == name or fold(name) in map(fold, _names_in(entity))
    }
    merges = [{entity_id, target} for entity_id, entity in entities.items() for target in _merged_into(entity)]
    while more := {merged_id for pair in merges if pair & ids for merged_id in pair & entities.keys()} - ids:
        ids |= more
    also = [alias for entity_id in sorted(ids) for alias in _names_in(entities[entity_id])]
    unique: dict[str, str] = {}
    for alias in filter(str.strip, [*([] if name in entities else [name]), *also]):
        unique.setdefault(fold(alias), alias)
    return SearchedNames(tuple(unique.values()), frozenset(ids))


def _names_in(entity: HeldRecord) -> Sequence[str]:
    aliases = entity.data.get("aliases")
    names = [entity.data.get("name"), *(aliases if isinstance(aliases, list) else [])]
    return [name for name in names if isinstance(name, str)]


def _merged_into(entity: HeldRecord) -> set[str]:
    links = entity.data.get("links")
    known_links = [link for link in links if isinstance(link, dict)] if isinstance(links, list) else []
    return {str(link.get("id")) for link in known_links if link.get("rel") == MERGED_INTO}


@lru_cache(maxsize=1)
def _pattern(names: tuple[str, ...]) -> re.Pattern[str]:
    """Return a pattern for names, also with an `s` of the genitive."""
    return re.compile("|".join(_compile_name(name) for name in names), re.IGNORECASE)


def _compile_name(name: str) -> str:
    words = r"\s+".join(map(re.escape, _normal(name).split()))
    if any(character >= _UNSPACED for character in name):
        return words
    return rf"(?<!\w){words}(?:['\u2019]?s)?(?!\w)"


def _normal(text: str) -> str:
    return text if text.isascii() else unicodedata.normalize("NFKC", text)


_IDS: Final = re.compile(r"\b[a-z]{3}-[0-9a-f]{12}\b")
_READ: Final = frozenset(
    {"rejected", "lost", "rewritten", "before_repair", "broken_pad", "broken", "conflict", "copy", "stray"}
)
"""Sorts of other files with words; see `agent_memory.files.names`."""
_NO_WORDS: Final = frozenset({PURGED, PURGE_KEY})


@dataclass(frozen=True, slots=True)
class HeldRecord:
    """One record that a journal has.

    Attributes:
        kind, id, journal: Kind, ID and file name of the journal.
        data: Present or last fields, with the complete long text.
        at: Moment of the last change in the journal.
        earlier: Earlier texts in the file, oldest first.
        is_gone: True if it was forgotten and is still in the file.
    """

    kind: str
    id: str
    journal: str
    data: Mapping[str, Any]
    at: str
    earlier: tuple[str, ...] = ()
    is_gone: bool = False

    def strings(self) -> Iterator[str]:
        """Yield all texts of a record, earlier ones too."""
        yield from iter_strings(self.data)
        yield from self.earlier


def list_held_records(folder: AgentFolder) -> list[HeldRecord]:
    """Return all records of an agent's journals, forgotten ones too. Blocking.

    Raises:
        StorageError: One cannot be read.
    """
    with translated(folder.path, "list"):
        journals = folder.journals()
    holdings = [holding for journal in journals for holding in _in_journal(journal, AgentBlobs(folder))]
    live = {holding.id for holding in holdings if not holding.is_gone}
    purged = PurgeList(folder.path)  # that may be unfinished
    # A record is also in `live` after a move to another journal and back.
    return [item for item in holdings if not (item.is_gone and (item.id in live or purged.names(item.id)))]


def other_files(folder: AgentFolder) -> list[Path]:
    """Return other files with words: scratchpad, pages and quarantined copies."""
    with translated(folder.path, "list"):
        journals = {path.name for path in folder.journals()}
        paths = [path for path in sorted(folder.path.iterdir()) if path.name not in journals | _NO_WORDS]
        sorts = {path: classify_name(path.name) for path in paths if not path.name.startswith(VECTORS)}
        chosen = [path for path, sort in sorts.items() if path == folder.scratchpad or sort in _READ]
    return [path for path in (*chosen, *folder.list_pages()) if path.is_file() and not path.is_symlink()]


def read_lines(path: Path) -> list[str]:
    """Return all lines of a file.

    Raises:
        StorageError: It cannot be read.
    """
    with translated(path, "read"):
        return read_file(path).decode("utf-8", "replace").splitlines()


def read_audit_lines(folder: AgentFolder, ids: Iterable[str] | None) -> list[str]:
    """Return audit lines about records; all lines for None."""
    wanted = None if ids is None else set(ids)
    result = []
    for name in (OLDER_AUDIT, AUDIT):
        with contextlib.suppress(StorageError):
            if (path := folder.path / name).is_file() and not path.is_symlink():
                lines = read_lines(path)
                result += [line for line in lines if wanted is None or wanted & set(_IDS.findall(line))]
    return result


def _in_journal(path: Path, blobs: AgentBlobs) -> Iterator[HeldRecord]:
    records: Records = {}
    last: dict[str, tuple[str, str, Mapping[str, Any]]] = {}
    texts: dict[str, dict[str, None]] = {}
    for entry in JournalReader(path).poll().entries:
        for change in entry.changes:
            apply_change(records, change, entry.at)
            if change.id in records:
                kind = last[change.id][0] if change.op != "put" and change.id in last else change.kind
                last[change.id] = kind, entry.at, records[change.id]
                texts.setdefault(change.id, {}).update(dict.fromkeys(list_texts(change.data)))
            elif change.id in last and change.op == "delete":
                kind, _, data = last[change.id]
                last[change.id] = kind, entry.at, data
    for record_id, (kind, changed_at, data) in last.items():
        texts_now = list_texts(data)
        earlier = tuple(text for text in texts[record_id] if text not in texts_now)
        yield HeldRecord(kind, record_id, path.name, _whole(data, blobs), changed_at, earlier, record_id not in records)


def _whole(data: Mapping[str, Any], blobs: AgentBlobs) -> Mapping[str, Any]:
    """Return fields with the complete long text."""
    if isinstance(name := data.get("blob"), str) and name:
        with contextlib.suppress(StorageError):  # the doctor tells of it; its beginning is here
            return {**data, "content": blobs.read(name)}
    return data
