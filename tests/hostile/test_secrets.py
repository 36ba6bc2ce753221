"""Planted secrets: none reaches a file below the storage root or an event, whoever says it, however it is wrapped."""

from __future__ import annotations

import asyncio
import json
import time
from typing import TYPE_CHECKING, Any

import pytest
from amplifier_core.testing import MockContextManager, MockCoordinator
from typer.testing import CliRunner

from agent_memory.cli.app import build
from agent_memory.embeddings.testing import HashEmbedder
from agent_memory.errors import DeclarationError
from agent_memory.memory import AuditLog, Caller, MemoryService
from agent_memory.models import MEMORY, Memory
from agent_memory.redaction import SecretRedactor
from agent_memory.scratchpad import ScratchpadManager
from agent_memory.settings import ServiceSettings
from agent_memory.storage import FileStorage, VectorStorage, detect_storage
from agent_memory.store.record_redaction import text_fields
from agent_memory.workspace import Workspace
from amplifier_module_hooks_memory_capture import mount as capture
from amplifier_module_hooks_memory_ingestion import mount as ingestion
from tests.hostile.attacks import attack
from tests.qdrant_server import QUIET, QdrantServer
from tests.rows import check_rows
from tests.support import memory_of, put_unchecked, read_files

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from tests.support import FrozenClock

pytestmark = QUIET
CARD = 4929420573595709
EVENTS = (
    *("memory:stored", "memory:captured", "memory:capture_skipped", "memory:degraded"),
    *("memory:resource_stored", "memory:episodes_stored", "memory:items_extracted", "memory:ingestion_skipped"),
)
ALNUM = "aB3dE5gH7jK9mN1pQ2rS4tU6vW8xY0zA"

CANARIES = {
    "github": "gh" + "p_" + ALNUM + "Zz12",
    "openai": "sk" + "-proj-" + ALNUM + ALNUM,
    "slack": "xo" + "xb-123456789012-" + ALNUM,
    "aws": "AK" + "IA" + "IOSFODNN7EXAMPLQ",
    "google": "AI" + "za" + ALNUM + "abc",
    "jwt": "ey" + "J" + ALNUM + ".ey" + "J" + ALNUM + "." + ALNUM,
    "password": "Mango" + "#fest77",
    "card": "5412 7534" + " 8821 0093",
    "backup code": "8842-1190" + "-3307",
}
HINTS = {"password": "the password is ", "card": "the company card is ", "backup code": "the backup code is "}
FRAMES = [
    "Remember that the staging cluster lives in Frankfurt and {}.",
    "We decided to use the shared account for the build, {} for now.",
    "From now on use this for every deployment:\n\n```ini\nsetting = {}\n```",
    "TODO after the launch: rotate what we use on the build server, {}",
    "note for later: our org slug is kestrel-io, project edge-agent, {}",
    "{} - please remember it, we always need it in this project",
]


CONFIG = {"agent_id": "bob", "embedder": "none"}
MOUNTS: dict[str, Callable[[Any, dict[str, Any]], Awaitable[Any]]] = {
    "capture": lambda coordinator, config: capture(coordinator, {**CONFIG, **config}),
    "ingestion": lambda coordinator, config: ingestion(coordinator, {**CONFIG, **config, "observe_tools": ["bash"]}),
}


async def said(root: Path, texts: list[str], source: str, listening: str) -> list[str]:
    """Send texts through a mounted hook, each in a turn of its own; return what was emitted."""
    coordinator, context, emitted = MockCoordinator(), MockContextManager(), []

    async def listen(event: str, data: dict[str, Any]) -> None:
        emitted.append(json.dumps([event, data], ensure_ascii=False))

    for event in EVENTS:
        coordinator.hooks.register(event, listen, name="canary")
    await coordinator.mount("context", context)
    cleanup = await MOUNTS[listening](coordinator, {"storage_root": str(root)})
    for text in texts:
        if source == "user":
            await coordinator.hooks.emit("prompt:submit", {"prompt": text})
        elif source == "assistant":
            await context.add_message({"role": "assistant", "content": f"As we agreed: {text}"})
        else:
            result = f"author: tess (member)\n--\nDecision: {text}"
            await coordinator.hooks.emit("tool:post", {"tool_name": "bash", "result": result})
        await coordinator.hooks.emit("orchestrator:complete", {"status": "success"})
    await coordinator.hooks.emit("session:end", {})
    await cleanup()
    return emitted


@pytest.mark.parametrize("listening", MOUNTS)
@pytest.mark.parametrize("source", ["user", "assistant", "tool"])
@pytest.mark.parametrize("canary", CANARIES)
@attack("planted-secret")
async def test_a_planted_secret_is_in_no_byte_and_no_event(
    root: Path, canary: str, source: str, listening: str
) -> None:
    secret = CANARIES[canary]
    texts = [frame.format(HINTS.get(canary, "") + secret) for frame in FRAMES]
    emitted = await said(root, texts, source, listening)
    assert emitted, "nothing was kept: the test would prove nothing"
    assert not [text for text in emitted if secret in text]
    files = contents(root)
    assert files
    assert not [name for name, content in files.items() if secret.encode() in content]


def contents(root: Path) -> dict[str, bytes]:
    """Return every file below `root`."""
    return {str(path): content for path, content in read_files(root)}


SHORT = ["a", "A1", "eyJ", "eyJa.", "sk-", "password ", "password is ", "password:", '"', "://", "https://a:", "1234 "]
LONG = [
    "-----BEGIN RSA PRIVATE " + "KEY-----\n",
    "mysql -p",
    "パスワードは",
    "[redacted:password] password: ",
    "seed phrase: abc abc ",
    "-----END RSA PRIVATE " + "KEY-----\n",
    "<p>pass&#119;ord&#58; Mango#1234</p>",
    "key=",
    "pin ",
    "p a s s w o r d : ",
    "name,password\na,",
    "a B 1 ",
    "aB3d ",
    "112,",
    "code for the door ",
    "Falcon@4563 ",
    "key q7Vt2mX9bK4d ",
    "ABCD2345",
    "recovery codes: 1234-",
    "https://a/login/",
    "passport AB ",
]


@check_rows("seed", SHORT + LONG)
@attack("text-that-slows-the-redactor")
def test_hostile_repetition_costs_linear_work_and_stays_idempotent(seed: str) -> None:
    """Ten times the text may cost thirty times the CPU, where quadratic work would cost a hundred."""
    redactor = SecretRedactor()
    short, long = ((seed * (size // len(seed) + 1))[:size] for size in (2_000, 20_000))
    (once, short_cost), (long_once, long_cost) = (_redact_timed(redactor, text) for text in (short, long))
    assert redactor.redact(once).text == once
    assert redactor.redact(long_once).text == long_once
    # The least of several: other programs evict caches, and make one measurement many times another.
    assert long_cost <= 30 * max(short_cost, 0.01) or any(
        _redact_timed(redactor, long)[1] <= 30 * max(_redact_timed(redactor, short)[1], 0.01) for _ in range(4)
    )


def _redact_timed(redactor: SecretRedactor, text: str) -> tuple[str, float]:
    """Return the redacted text and the CPU seconds that it took."""
    started = time.process_time()
    redacted = redactor.redact(text).text
    return redacted, time.process_time() - started


# -- every door --------------------------------------------------------------------------------------------------------

TOKEN = "gh" + "p_" + "x7Kq2mZ9" * 4 + "aB3d"
FIELDS: dict[str, Any] = {
    "content": f"the deploy token is {TOKEN}",
    "category": f"x_{TOKEN.lower()}",
    "topic": f"x_{TOKEN.lower()}",
    "tags": [TOKEN],
    "created_by_session": TOKEN,
    "group": TOKEN,
    "project": TOKEN,
    "source": {"kind": "tool", "detail": TOKEN},
    "links": [{"rel": TOKEN, "id": "mem-00000000000b"}],
    "metadata": {TOKEN: {"deep": [TOKEN]}},
}
FIXED = {"created_by_session"}
OFFLINE = ServiceSettings(embedder="none")


def memory_with(field: str) -> Memory:
    return memory_of(**{"content": "The ledger is in PostgreSQL.", field: FIELDS[field]})


async def by_file_storage(root: Path, field: str) -> None:
    storage = FileStorage("bob", root, settings=OFFLINE)
    await storage.store(memory_with(field))
    await storage.close()


async def by_detected_storage(root: Path, field: str) -> None:
    storage = detect_storage("bob", root, settings=OFFLINE)
    await storage.store_many([memory_with(field), memory_of("another")])
    await storage.close()


async def by_change_of_storage(root: Path, field: str) -> None:
    storage = FileStorage("bob", root, settings=OFFLINE)
    memory_id = await storage.store(memory_of("The ledger is in PostgreSQL."))
    if field not in FIXED:
        await storage.update(memory_id, {field: FIELDS[field]})
    await storage.close()


async def by_vector_storage(root: Path, field: str) -> None:
    storage = VectorStorage("bob", root, embedder=HashEmbedder())
    await storage.store(memory_with(field))
    await storage.close()


async def by_the_scratchpad_manager(root: Path, field: str) -> None:
    storage = FileStorage("bob", root, settings=OFFLINE)
    manager = ScratchpadManager("bob", storage=storage)
    await manager.add_memory(memory_with(field))
    await manager.save(await manager.load())
    await storage.close()


async def by_the_service(root: Path, field: str) -> None:
    service = service_of(root)
    caller = Caller("s1")
    await service.storage.store(memory_of("what links lead to", id="mem-00000000000b"))
    stored = await service.store({"content": "The ledger is in PostgreSQL.", field: FIELDS[field]}, caller)
    if field not in FIXED:
        await service.update(stored.memory.id, {field: FIELDS[field], "pinned": True}, caller)
    await service.scratchpad(caller)
    await service.close()


async def by_restoring(root: Path, field: str) -> None:
    service = service_of(root)
    await service.writer.import_memories([memory_with(field)], lambda _: None, Caller("cli"))
    await service.close()


async def by_import(root: Path, field: str) -> None:
    file = root.parent / "in.jsonl"
    file.write_text(json.dumps({"content": "The ledger is in PostgreSQL.", field: FIELDS[field]}) + "\n")
    command = ["import", str(file), "--root", str(root), "--agent", "bob"]
    result = await asyncio.to_thread(CliRunner().invoke, build(), command)
    assert result.exit_code == 0, result.output
    file.unlink()


def service_of(root: Path) -> MemoryService:
    storage = FileStorage("bob", root, settings=OFFLINE)
    return MemoryService(storage, OFFLINE, audit=AuditLog(storage.folder.audit))


DOORS = [
    by_file_storage, by_detected_storage, by_change_of_storage, by_vector_storage, by_the_scratchpad_manager,
    by_the_service, by_restoring, by_import,
]  # fmt: skip


@pytest.mark.parametrize("field", FIELDS)
@pytest.mark.parametrize("door", DOORS)
@attack("secret-in-any-field")
async def test_no_field_takes_a_secret_through_any_door(
    root: Path, home: Path, door: Callable[[Path, str], Awaitable[None]], field: str
) -> None:
    await door(root, field)
    files = contents(root.parent) | contents(home)
    assert [name for name in files if name.endswith("memories.yaml")], "nothing was stored: the test proves nothing"
    assert not [name for name, content in files.items() if TOKEN.lower().encode() in content.lower()]


def test_each_field_that_takes_text_is_tried_at_the_doors() -> None:
    assert FIELDS.keys() == set(text_fields(MEMORY))


@attack("secret-to-a-server")
async def test_nothing_that_is_pushed_to_a_server_takes_a_secret_along(root: Path, clock: FrozenClock) -> None:
    there = QdrantServer().open(clock=clock)
    here = FileStorage("bob", root, settings=OFFLINE)
    for field in FIELDS:  # as a version before this one, or a person with an editor, could leave them
        put_unchecked(here, [memory_with(field)])
        await there.store(memory_with(field))
    memories = [memory async for memory in here.iter_all()]
    await MemoryService(here, OFFLINE).writer.transfer(memories, lambda _: None, Caller("cli"), to=there)
    there_now = [memory.model_dump_json() async for memory in there.iter_all()]
    await here.close()
    await there.close()
    assert len(there_now) == 2 * len(FIELDS)
    assert not [text for text in there_now if TOKEN.lower() in text.lower()]


@attack("secret-in-a-public-form")
async def test_no_public_form_hides_a_secret_from_the_files(root: Path) -> None:
    storage = FileStorage("bob", root, settings=OFFLINE)
    forms = (
        f"arn:aws:iam::123456789012:role/x,{TOKEN}",
        f"arn:aws:iam::123456789012:role/{TOKEN}",
        f"did:web:{TOKEN}",
        f"data:image/png;base64,{TOKEN}",
        f"[redacted:{TOKEN}]",
        f"-----BEGIN CERTIFICATE-----\n{TOKEN}\n-----END CERTIFICATE-----",
    )
    for number, form in enumerate(forms):
        await storage.store(Memory(agent_id="bob", content=f"The build server in Lisbon uses {form} in case {number}."))
    await storage.close()
    assert not [name for name, content in contents(root).items() if TOKEN.encode() in content]


@attack("secret-in-a-number")
async def test_card_as_number_is_in_no_file(root: Path) -> None:
    storage = FileStorage("bob", root, settings=OFFLINE)
    memory = Memory(
        agent_id="bob", content="The crane was paid.", metadata={"card": CARD, "pin_code": 4711, "n": [CARD]}
    )
    await storage.store(memory)
    await storage.close()
    files = contents(root)
    assert any(b"crane" in content for content in files.values())
    assert not [name for name, content in files.items() if str(CARD).encode() in content]


@attack("secret-in-a-declaration")
def test_declaration_with_a_secret_begins_no_workspace(tmp_path: Path) -> None:
    columns = f"{{name: {{type: text}}, token: {{type: text, default: {TOKEN}}}}}"
    declared = tmp_path / "declared.yaml"
    declared.write_text(f"workspace: book\ntables:\n  a: {{key: name, columns: {columns}}}\n")
    with pytest.raises(DeclarationError) as refused:
        Workspace.create(tmp_path / "book", declared)
    assert refused.value.code == "secret_in_declaration"
    assert not (tmp_path / "book").exists()
