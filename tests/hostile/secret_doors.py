"""Every way into the memory: secrets are sent through it, and then every byte that it left anywhere is searched.

A door takes many secrets at once, in a home of its own. What is searched: all files below that home (databases with
their logs, archives member by member, packed files of snapshots unpacked), all that was logged, every event, and all
that commands printed. Files that a person gave lie elsewhere. No core file may be there.
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
import logging
import os
import re
import tempfile
import zipfile
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import yaml
from typer.testing import CliRunner

from agent_memory.cli.app import build
from agent_memory.compat.sigil import MemoryManager
from agent_memory.errors import AgentMemoryError
from agent_memory.ingestion import MemoryIngestor
from agent_memory.ingestion import Turn as Said
from agent_memory.memory import AuditLog, Caller, MemoryService
from agent_memory.memory.features import attach_withdrawals
from agent_memory.memory.inbox import Inbox
from agent_memory.models import Memory, Observation, Source
from agent_memory.redaction import SecretRedactor
from agent_memory.settings import ServiceSettings
from agent_memory.storage import FileStorage
from agent_memory.workspace import Workspace

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Sequence

    from benchmarks.secrets.kinds import PlantedSecret

_BOOK: Final = """\
workspace: book
tables:
  chapters:
    key: name
    columns: {name: {type: text, required: true}, title: text, parts: {type: json}}
    search: [title]
"""
_SEEN: Final = 8
"""Characters of a secret that is looked for: four digits stand in many times of the day and ids."""
_AT_ONCE: Final = 40
"""Entries written into the scratchpad's file at once; it shows no more than fifty."""


class SecretHome:
    """A home with the memory of bob, and all that was told of it."""

    def __init__(self, folder: Path) -> None:
        self.home, self.given = folder / "home", folder / "given"
        self.root = self.home / "memory"
        self.root.mkdir(parents=True)
        self.given.mkdir()
        self.told: list[str] = []
        self.settings = ServiceSettings(embedder="none", storage_root=str(self.root))
        self.caller = Caller("session-1", self._hear)
        self._app, self._runner = build(), CliRunner()

    async def _hear(self, event: str, data: dict[str, Any]) -> None:
        self.told.append(json.dumps([event, data], ensure_ascii=False, default=str))

    def service(self) -> MemoryService:
        """Return the service of bob, with everything that keeps watch on it."""
        storage = FileStorage("bob", settings=self.settings)
        audit = AuditLog(storage.folder.audit)
        return attach_withdrawals(MemoryService(storage, self.settings, audit=audit))

    async def cli(self, *arguments: str) -> None:
        """Run a command; what it prints is told."""
        where = {"AGENT_MEMORY_ROOT": str(self.root), "AGENT_MEMORY_AGENT": "bob"}
        result = await asyncio.to_thread(self._runner.invoke, self._app, list(arguments), env=where)
        self.told.append(result.output)

    async def trying(self, each: Awaitable[Any]) -> None:
        """Wait for something that may be refused; the words of the refusal are told."""
        with self.refusing():
            await each

    @contextlib.contextmanager
    def refusing(self) -> Any:
        """Tell the words of a refusal."""
        try:
            yield
        except (AgentMemoryError, ValueError, OSError) as error:
            self.told.append(f"{error!r} {error}")

    def given_file(self, name: str, text: str) -> str:
        """Write a file as a person gives one, and return where it is."""
        path = self.given / name
        path.write_text(text, encoding="utf-8")
        return str(path)


async def _content(house: SecretHome, all_: Sequence[PlantedSecret]) -> None:
    service = house.service()
    for each in all_:
        await house.trying(service.store({"content": each.text}, house.caller))
    await service.scratchpad(house.caller)
    await service.close()


async def _changes(house: SecretHome, all_: Sequence[PlantedSecret]) -> None:
    service = house.service()
    stored = await service.store({"content": "The ledger is in PostgreSQL.", "pinned": True}, house.caller)
    memory_id = stored.memory.id
    for number, each in enumerate(all_):
        if number % 2:
            await house.trying(service.update(memory_id, {"content": each.text}, house.caller))
            continue
        with house.refusing():
            memory_id = (await service.store({"content": each.text, "supersedes": memory_id}, house.caller)).memory.id
    await service.close()


async def _metadata(house: SecretHome, all_: Sequence[PlantedSecret]) -> None:
    service = house.service()
    for number, each in enumerate(all_):
        metadata = {"notes": [{"deep": each.text}], each.text[:200]: 1}
        await house.trying(service.store({"content": f"Fact {number} of many.", "metadata": metadata}, house.caller))
    await service.close()


async def _asked(house: SecretHome, all_: Sequence[PlantedSecret]) -> None:
    service = house.service()
    await service.store({"content": "The ledger is in PostgreSQL."}, house.caller)
    for each in all_:
        await house.trying(service.search(each.text, filters={"tags": [each.secrets[0]]}, caller=house.caller))
        await house.trying(service.forget(each.text, house.caller))
    await service.close()


async def _inbox(house: SecretHome, all_: Sequence[PlantedSecret]) -> None:
    service = house.service()
    inbox = Inbox(service)
    source = Source(kind="user")
    for each in all_:
        seen = Observation(content=each.text, category="decision", confidence=0.8, source=source, trust="high")
        await house.trying(inbox.hold([seen], house.caller))
    await service.close()
    await house.cli("inbox", "--list")


async def _conversations(house: SecretHome, all_: Sequence[PlantedSecret]) -> None:
    service = house.service()
    ingestor = MemoryIngestor(service=service, settings=house.settings, agent_id="bob", caller=house.caller)

    class ConversationSession:
        tenant_id, id = "acme", "7f3a"

    for each in all_:
        await house.trying(ingestor.ingest_turn(Said(each.text, f"I noted: {each.text}"), ConversationSession()))
        await house.trying(ingestor.ingest_event("tool_execution", each.text, "acme:7f3a", {"output": each.text}))
    await ingestor.background.settle()
    await ingestor.close()
    await service.close()
    for command in ("episodes", "entities", "summaries"):
        await house.cli(command)


async def _documents(house: SecretHome, all_: Sequence[PlantedSecret]) -> None:
    for place in range(0, len(all_), _AT_ONCE):
        some = all_[place : place + _AT_ONCE]
        text = "\n\n".join(each.text for each in some)
        files = {
            f"notes-{place}.md": f"# Notes\n\n{text}\n",
            f"settings-{place}.ini": text,
            f"chat-{place}.jsonl": "\n".join(json.dumps({"role": "user", "content": each.text}) for each in some),
            f"conversations-{place}.json": json.dumps([_exported(place, some)]),
        }
        for name, content in files.items():
            await house.cli("ingest", house.given_file(name, content))
    await house.cli("topics")
    await house.cli("resources")


def _exported(number: int, some: Iterable[PlantedSecret]) -> dict[str, Any]:
    messages = [{"uuid": f"m{at}", "sender": "human", "text": each.text} for at, each in enumerate(some)]
    return {"uuid": f"c{number}", "name": messages[0]["text"][:80], "chat_messages": messages}


async def _imports(house: SecretHome, all_: Sequence[PlantedSecret]) -> None:
    rows = [{"content": each.text, "metadata": {"note": each.text}} for each in all_]
    await house.cli("import", house.given_file("in.jsonl", "".join(json.dumps(row) + "\n" for row in rows)))
    others = [{"content": f"Note {number}: {each.text}"} for number, each in enumerate(all_)]
    await house.cli("import", house.given_file("in.yaml", yaml.safe_dump(others, allow_unicode=True)))


async def _scratchpad(house: SecretHome, all_: Sequence[PlantedSecret]) -> None:
    await house.cli("store", "The ledger is in PostgreSQL.")
    pad = house.root / "bob" / "scratchpad.yaml"
    for place in range(0, len(all_), _AT_ONCE):
        entries = [{"content": each.text} for each in all_[place : place + _AT_ONCE]]
        pad.write_text(pad.read_text(encoding="utf-8") + yaml.safe_dump(entries, allow_unicode=True), encoding="utf-8")
        await house.cli("search", "ledger")
        await house.cli("status")


async def _topics(house: SecretHome, all_: Sequence[PlantedSecret]) -> None:
    service = house.service()
    manager = MemoryManager(service=service)
    for number, each in enumerate(all_):
        await house.trying(manager.create_category(f"topic_{number}", each.text[:480].ljust(12)))
        if number % 8 == 0:
            await house.trying(manager.remember(each.text, f"topic_{number}"))
            await house.trying(manager.consolidate_category(f"topic_{number}"))
    pages = sorted((house.root / "bob" / "topics").glob("*.md"))
    for page, each in zip(pages, all_, strict=False):
        page.write_text(page.read_text(encoding="utf-8") + f"\nBy hand: {each.text}\n", encoding="utf-8")
        await house.trying(manager.get_category_content(page.stem))
    await manager.close()
    await service.close()
    await house.cli("topics")
    for page, each in zip(pages, all_, strict=False):  # what a person writes there is theirs: taken back for the search
        page.write_text(page.read_text(encoding="utf-8").replace(f"\nBy hand: {each.text}\n", ""), encoding="utf-8")


async def _topic_names(house: SecretHome, all_: Sequence[PlantedSecret]) -> None:
    service = house.service()
    manager = MemoryManager(service=service)
    await manager.create_category("home_network", "What belongs to the house.")
    for each in all_:
        await house.trying(manager.create_category(_as_topic(each.secrets[0]), "What belongs to the house."))
    await manager.close()
    await service.close()


async def _rows(house: SecretHome, all_: Sequence[PlantedSecret]) -> None:
    declaration = Path(house.given_file("book.yaml", _BOOK))
    told: Callable[[str, dict[str, Any]], None] = lambda event, data: house.told.append(f"{event} {data!r}")  # noqa: E731
    book = Workspace.create(house.home / "book", declaration, on_event=told)
    for number, each in enumerate(all_):
        with house.refusing():
            book.tables.save("chapters", {"name": f"n{number}", "title": each.text, "parts": [each.text]})
        with house.refusing():
            book.tables.update("chapters", f"n{number}", {"title": f"again {each.text}"})
        with house.refusing():
            book.tables.search("chapters", each.text[:200])
    with house.refusing():
        book.snapshots.make("before", dump=True)
    book.export(house.home / "book.jsonl")
    book.close()


async def _declarations(house: SecretHome, all_: Sequence[PlantedSecret]) -> None:
    columns = {"name": {"type": "text"}, "title": {"type": "text"}}
    for number, each in enumerate(all_):
        columns["title"]["default"] = each.text[:200]
        declared = {"workspace": "book", "description": each.text, "tables": {"a": {"key": "name", "columns": columns}}}
        file = Path(house.given_file("declared.yaml", yaml.safe_dump(declared, allow_unicode=True)))
        with house.refusing():
            Workspace.create(house.home / f"declared-{number}", file).close()


def _as_topic(secret: str) -> str:
    return f"x_{re.sub(r'[^a-z0-9]+', '_', secret[:50].lower()).strip('_')}"


def _fields(secret: str) -> dict[str, dict[str, Any]]:
    return {
        "tags": {"tags": [secret[:64]]},
        "category": {"category": f"x_{secret[:60].lower()}"},
        "topic": {"topic": _as_topic(secret)},
        "session": {"created_by_session": secret[:200]},
        "group": {"group": secret[:120]},
        "source": {"source": {"kind": "tool", "detail": secret[:200]}},
        "links": {"links": [{"rel": secret[:64], "id": "mem-00000000000b"}]},
        "metadata keys": {"metadata": {secret[:200]: {secret[:200]: 1}}},
    }


def _labelled(field: str) -> Callable[[SecretHome, Sequence[PlantedSecret]], Awaitable[None]]:
    async def door(house: SecretHome, all_: Sequence[PlantedSecret]) -> None:
        storage = FileStorage("bob", settings=house.settings)
        for number, each in enumerate(all_):
            with house.refusing():
                given = _fields(each.secrets[0])[field]
                await storage.store(Memory(agent_id="bob", content=f"Fact {number} of many.", **given))
        await storage.close()

    return door


async def _names(house: SecretHome, all_: Sequence[PlantedSecret]) -> None:
    for number, each in enumerate(all_):
        name = each.secrets[0].replace("/", "_").replace("\n", " ").replace("\0", "")[:80]
        with house.refusing():
            file = house.given_file(f"{name}.md", f"# Notes\n\nFact {number} of many, about the garden.\n")
            if number % 4 == 0:
                await house.cli("ingest", file)


class SecretDoor(NamedTuple):
    """A way in; `bare` when what goes in is the secret alone, with no words around it."""

    go: Callable[[SecretHome, Sequence[PlantedSecret]], Awaitable[None]]
    bare: bool = False


DOORS: Final[dict[str, SecretDoor]] = {
    "content": SecretDoor(_content),
    "update and supersede": SecretDoor(_changes),
    "metadata": SecretDoor(_metadata),
    "search, forget": SecretDoor(_asked),
    "inbox": SecretDoor(_inbox),
    "conversations and events": SecretDoor(_conversations),
    "documents of four forms": SecretDoor(_documents),
    "imports of two forms": SecretDoor(_imports),
    "scratchpad.yaml": SecretDoor(_scratchpad),
    "topics and pages": SecretDoor(_topics),
    "rows of a workspace": SecretDoor(_rows),
    "declarations of workspaces": SecretDoor(_declarations),
    **{field: SecretDoor(_labelled(field), bare=True) for field in _fields("x")},
    "names of topics": SecretDoor(_topic_names, bare=True),
    "names of files": SecretDoor(_names, bare=True),
}


def through(name: str, all_: Sequence[PlantedSecret]) -> dict[str, Any]:
    """Send secrets through a door; return how many are left, and how many of these the redactor finds in their text.

    Whatever comes after is done as well: backup, export in each form, account, tidying, briefing, health and doctor.
    """
    door = DOORS[name]
    with tempfile.TemporaryDirectory() as folder, _logged() as log:
        house = SecretHome(Path(folder))
        before = os.environ.copy()
        os.environ["HOME"] = os.environ["TMPDIR"] = str(house.home)
        tempfile.tempdir = None
        try:
            asyncio.run(_all_of(door, house, all_))
        finally:
            os.environ.clear()
            os.environ.update(before)
            tempfile.tempdir = None
        files = dict(_bytes_below(house.home))
        assert not [file for file in files if Path(file).name.startswith("core")], "a core file was left"
    places = {**files, "log, events and output": "\n".join([*house.told, *log]).encode("utf-8", "replace")}
    return left_of(all_, places, bare=door.bare)


async def _all_of(door: SecretDoor, house: SecretHome, all_: Sequence[PlantedSecret]) -> None:
    await door.go(house, all_)
    await _afterwards(house)


async def _afterwards(house: SecretHome) -> None:
    for command in (
        ("list", "--all"),
        ("backup", "create"),
        ("export", str(house.home / "all.jsonl")),
        ("export", str(house.home / "all.yaml")),
        ("export", str(house.home / "all.zip")),
        ("tidy", "--apply"),
        ("briefing",),
        ("health",),
        ("doctor",),
    ):
        await house.cli(*command)


@contextlib.contextmanager
def _logged() -> Any:
    log: list[str] = []

    class LogKeeper(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            log.append(f"{record.getMessage()} {record.exc_info}")

    keep, root = LogKeeper(), logging.getLogger()
    level = root.level
    root.addHandler(keep)
    root.setLevel(logging.DEBUG)
    try:
        yield log
    finally:
        root.removeHandler(keep)
        root.setLevel(level)


def _bytes_below(folder: Path) -> Iterable[tuple[str, bytes]]:
    """Yield every file and what is in it; of an archive each member, too."""
    for path in folder.rglob("*"):
        if path.is_symlink() or not path.is_file():
            continue
        data = path.read_bytes()
        yield str(path), data
        with contextlib.suppress(zlib.error):
            yield f"{path}, unpacked", zlib.decompress(data)
        if zipfile.is_zipfile(io.BytesIO(data)):
            with zipfile.ZipFile(io.BytesIO(data)) as archive:
                for member in archive.namelist():
                    yield f"{path}:{member}", archive.read(member)


def left_of(all_: Sequence[PlantedSecret], places: dict[str, bytes], *, bare: bool) -> dict[str, Any]:
    """Return the number of secrets left in some byte, and the files."""
    read = {name: _read(data).lower() for name, data in places.items()}
    text = "\n".join(read.values())
    redactor = SecretRedactor()
    known = "\n".join(redactor.redact(each.text).text for each in all_).lower() if not bare else ""
    all_ = [each for each in all_ if all(len(secret) >= _SEEN for secret in each.secrets)]
    left = [each for each in all_ if any(_is_in(secret, text) for secret in each.secrets[: 1 if bare else None])]
    beyond = [each for each in left if bare or not any(_is_in(secret, known) for secret in each.secrets)]
    where = sorted({
        Path(name).name for name, data in read.items() for each in beyond
        if any(_is_in(secret, data) for secret in each.secrets)
    })  # fmt: skip
    return {
        "secrets": len(all_),
        "left": len(left),
        "beyond": None if bare else len(beyond),
        "files": len(places),
        "bytes": sum(map(len, places.values())),
        "where": where,
        "examples": [each.text[:120] for each in beyond[:5]],
    }


def _read(data: bytes) -> str:
    """Return bytes as text, with the escapes of JSON and YAML undone beside it."""
    text = data.decode("utf-8", "replace")
    plain = text.replace('\\"', '"').replace("\\\\", "\\") if "\\" in text else ""
    return text + "\n" + plain


def _is_in(secret: str, text: str) -> bool:
    """Return True if half of a secret is in a lower-case text, in one piece."""
    secret = secret.lower()
    size = min(len(secret), max(10, (len(secret) + 1) // 2))
    step = max(1, size // 2)
    block = max(1, size - step)
    if not any(secret[number : number + block] in text for number in range(0, len(secret) - block + 1, step)):
        return False
    return any(secret[number : number + size] in text for number in range(len(secret) - size + 1))
