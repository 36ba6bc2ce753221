"""A person edits scratchpad.yaml: each edit goes through the write path, and nothing is ever lost."""

from __future__ import annotations

import asyncio
import errno
import os
import threading
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from pydantic import SecretStr

from agent_memory.errors import BusyError
from agent_memory.memories import QdrantServerStorage
from agent_memory.scratchpad import ScratchpadManager, saves
from agent_memory.scratchpad.render_lock import RenderLock
from agent_memory.service import MemoryService
from agent_memory.service.limits import Limits
from agent_memory.service.scratchpad_sync import MAX_EDITS
from agent_memory.settings import ServiceSettings
from agent_memory.storage import FileStorage

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from agent_memory.models import Scratchpad
    from tests.support import FrozenClock
    from tests.unit.service.conftest import Listener

IMPATIENT = Limits(edits_patience=0.01)


@pytest.fixture
def pad(folder: Path) -> Path:
    return folder / "scratchpad.yaml"


@pytest.fixture
def make_plain(root: Path) -> Callable[[], MemoryService]:
    """Return a function that opens bob's memory for tests that run loops of their own."""
    settings = ServiceSettings(embedder="none", storage_root=str(root))
    return lambda: MemoryService(FileStorage("bob", settings=settings), settings)


def edit(pad: Path, change: Callable[[list[dict[str, Any]]], None]) -> None:
    """Save the file as an editor would: entries changed, comments as they were."""
    text = pad.read_text()
    items = yaml.safe_load(text)
    change(items)
    comments = [line for line in text.splitlines() if line.startswith("#")]
    pad.write_text("\n".join([*comments[:-1], yaml.safe_dump(items, sort_keys=False), comments[-1]]) + "\n")


async def stored(service: MemoryService, *texts: str) -> list[str]:
    ids = [(await service.store({"content": text})).memory.id for text in texts]
    await service.settle()
    return ids


async def test_a_changed_text_is_a_patch(service: MemoryService, listener: Listener, pad: Path) -> None:
    (tea,) = await stored(service, "Prefers tea")
    edit(pad, lambda items: items[0].update(content="Prefers green tea", tags=["drink"], pinned=True))
    (entry,) = (await service.scratchpad(listener.caller)).entries
    assert (entry.id, entry.content, entry.tags, entry.pinned) == (tea, "Prefers green tea", ["drink"], True)
    assert listener.names() == ["memory:updated", "memory:scratchpad_edited"]
    told = listener.of("memory:scratchpad_edited")[0]
    assert (told["changed"], told["added"], told["removed"]) == (1, 0, 0)


async def test_a_new_entry_is_a_memory_in_the_persons_own_words(
    service: MemoryService, listener: Listener, pad: Path
) -> None:
    await stored(service, "Prefers tea")
    edit(pad, lambda items: items.append({"content": "Works in Oslo"}))
    entries = {entry.content: entry for entry in (await service.scratchpad(listener.caller)).entries}
    added = entries["Works in Oslo"]
    assert (added.trust, added.source.kind, added.source.detail) == ("high", "user", "scratchpad.yaml")
    assert added.id in pad.read_text(), "the file shows it with its id now"
    await service.scratchpad(listener.caller)
    assert await service.storage.count() == 2
    assert listener.names().count("memory:scratchpad_edited") == 1


async def test_an_entry_taken_out_leaves_the_pad_and_is_not_forgotten(
    service: MemoryService, listener: Listener, pad: Path
) -> None:
    tea, coffee = await stored(service, "Prefers tea", "Dislikes coffee")
    await service.update(tea, {"pinned": True})
    await service.settle()
    edit(pad, lambda items: items.clear())
    assert len(await service.scratchpad(listener.caller)) == 0
    assert await service.storage.count() == 2
    assert [r.memory.id for r in (await service.search("coffee")).results] == [coffee]
    await service.settle()
    assert yaml.safe_load(pad.read_text()) == []


async def test_a_secret_written_into_the_file_is_redacted(
    service: MemoryService, listener: Listener, pad: Path, secret: str
) -> None:
    await stored(service, "Prefers tea")
    edit(pad, lambda items: items.append({"content": f"The mirror takes {secret} as a token"}))
    await service.scratchpad(listener.caller)
    assert secret not in pad.read_text()
    assert "[redacted:" in pad.read_text()


@pytest.mark.parametrize("how", ["search", "list"])
async def test_whoever_searches_or_lists_finds_what_a_person_has_just_written(
    service: MemoryService, listener: Listener, pad: Path, how: str
) -> None:
    await stored(service, "Prefers tea")
    await service.search("tea")
    edit(pad, lambda items: items[0].update(content="Prefers green tea"))
    if how == "search":
        found = [result.memory for result in (await service.search("green", caller=listener.caller)).results]
        assert "memory:scratchpad_edited" in listener.names()
    else:
        found = await service.list_recent()
    assert [memory.content for memory in found] == ["Prefers green tea"]


async def test_a_file_that_is_as_it_was_is_not_read_again(
    service: MemoryService, pad: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await stored(service, "Prefers tea")
    await service.list_recent()
    monkeypatch.setattr(saves.PadFile, "look", lambda *_, **__: pytest.fail("it was read"))
    assert len(await service.list_recent()) == 1


async def test_a_broken_file_is_kept_aside_rendered_anew_and_that_is_said(
    service: MemoryService, listener: Listener, pad: Path
) -> None:
    await stored(service, "Prefers tea")
    pad.write_text("- content: [unclosed")
    assert len(await service.scratchpad(listener.caller)) == 1
    (kept,) = pad.parent.glob("scratchpad.broken-*.yaml")
    assert kept.read_text() == "- content: [unclosed"
    assert "Prefers tea" in pad.read_text()
    (told,) = listener.of("memory:degraded")
    assert told["component"] == "scratchpad"
    assert kept.name in told["message"]


@pytest.mark.parametrize(
    "item",
    [
        {"content": ""},
        {"content": "x" * 10_001},
        {"content": "x", "category": "No Form"},
        {"content": 5},
        {"content": None},
        {"content": "x", "tags": 5},
        {"content": "x", "tags": [["y"]]},
        {"content": "x", "pinned": "perhaps"},
        {"id": "mem-000000000000", "content": "of nobody"},
    ],
)
async def test_a_refused_edit_is_kept_aside_and_the_others_are_taken_over(
    service: MemoryService, listener: Listener, pad: Path, item: dict[str, Any]
) -> None:
    await stored(service, "Prefers tea")

    def change(items: list[dict[str, Any]]) -> None:
        items[0]["content"] = "Prefers green tea"
        items.append(item)

    edit(pad, change)
    saved = pad.read_text()
    assert [entry.content for entry in (await service.scratchpad(listener.caller)).entries] == ["Prefers green tea"]
    (kept,) = pad.parent.glob("scratchpad.broken-*.yaml")
    assert kept.read_text() == saved
    (told,) = listener.of("memory:degraded")
    assert "refused" in told["message"]
    await service.scratchpad(listener.caller)
    assert len(listener.of("memory:degraded")) == 1, "said once"


async def test_an_edit_survives_a_store_that_renders_the_file(service: MemoryService, pad: Path) -> None:
    await stored(service, "Prefers tea")
    edit(pad, lambda items: items[0].update(content="Prefers green tea"))
    await stored(service, "Works in Oslo")
    assert {entry.content for entry in (await service.scratchpad()).entries} == {"Prefers green tea", "Works in Oslo"}


async def test_who_stores_hears_of_an_edit_that_is_taken_over_behind_it(
    service: MemoryService, listener: Listener, pad: Path
) -> None:
    await stored(service, "Prefers tea")
    pad.write_text("- content: [unclosed")
    await service.store({"content": "Works in Oslo"}, listener.caller)
    await service.settle()
    (told,) = listener.of("memory:degraded")
    assert "scratchpad.broken-" in told["message"]


async def test_an_edit_waits_while_the_journal_is_busy_and_is_taken_over_later(
    service: MemoryService,
    listener: Listener,
    pad: Path,
    monkeypatch: pytest.MonkeyPatch,
    recwarn: pytest.WarningsRecorder,
) -> None:
    await stored(service, "Prefers tea", "Works in Oslo")

    def change(items: list[dict[str, Any]]) -> None:
        items[0]["content"] = "Works in Bergen"
        items.append({"content": "Has a dog"})
        del items[1]

    edit(pad, change)
    saved = pad.read_text()

    async def busy(*_: object, **__: object) -> None:
        raise BusyError("somebody else is writing")

    with monkeypatch.context() as patch:
        patch.setattr(service.storage, "update", busy)
        patch.setattr(service.storage, "store", busy)
        shown = await service.scratchpad(listener.caller)
        service.pad.schedule()
        await service.settle()
    assert {entry.content for entry in shown.entries} == {"Prefers tea", "Works in Oslo"}
    assert listener.of("memory:degraded")[0]["code"] == "busy"
    assert pad.read_text() == saved, "nobody rendered over the edit"
    assert {entry.content for entry in (await service.scratchpad()).entries} == {"Works in Bergen", "Has a dog"}
    assert [str(w.message) for w in recwarn if "never awaited" in str(w.message)] == []


async def test_a_pad_that_cannot_be_written_costs_nothing_but_itself(
    service: MemoryService, pad: Path, clock: FrozenClock
) -> None:
    pad.mkdir(parents=True)
    memory = (await service.store({"content": "Prefers tea"})).memory
    await service.settle()
    assert [r.memory.id for r in (await service.search("tea")).results] == [memory.id]
    assert list((await service.scratchpad()).ids()) == [memory.id]


async def test_many_changes_in_a_row_end_in_one_true_file(service: MemoryService, pad: Path) -> None:
    await stored(service, *(f"fact {number}" for number in range(20)))
    assert len(yaml.safe_load(pad.read_text())) == 20


def test_the_file_lies_where_the_settings_say_also_when_the_memories_are_elsewhere(tmp_path: Path) -> None:
    settings = ServiceSettings(
        backend="server", qdrant_url=SecretStr("http://localhost:6333"), storage_root=str(tmp_path), embedder="none"
    )
    storage = QdrantServerStorage("bob", settings=settings, client=lambda: pytest.fail("it connects"))
    service = MemoryService(storage, settings)
    assert service.pad.file == tmp_path / "bob" / "scratchpad.yaml"


def test_one_service_in_many_loops_at_once_answers_each_and_renders_all(
    make_plain: Callable[[], MemoryService],
) -> None:
    service, shown = make_plain(), []

    async def use(name: int) -> None:
        for number in range(5):
            await service.store({"content": f"thread {name} item {number}"})
            shown.append(len(await service.scratchpad()))

    threads = [threading.Thread(target=lambda name=name: asyncio.run(use(name)), daemon=True) for name in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not any(thread.is_alive() for thread in threads)
    assert len(shown) == 40
    asyncio.run(service.close())
    assert len(yaml.safe_load(service.pad.file.read_text())) == 40


def test_what_a_loop_left_undone_is_rendered_at_the_end(make_plain: Callable[[], MemoryService]) -> None:
    service = make_plain()

    async def store() -> None:
        await service.store({"content": "tea"})  # and the loop ends before anything is rendered

    asyncio.run(store())
    asyncio.run(service.close())
    assert "content: tea" in service.pad.file.read_text()


async def test_a_save_while_another_is_taken_over_is_taken_over_too(
    service: MemoryService, pad: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await stored(service, "Prefers tea")
    text, texts = pad.read_text(), iter(["Has a dog", "Has a cat"])
    pad.write_text(text.replace("# rendered", "- content: Works in Oslo\n# rendered"))
    real = ScratchpadManager.render_over

    async def render_after_a_save(manager: ScratchpadManager, shown: Scratchpad, absorbed: bytes | None) -> bool:
        if (typed := next(texts, None)) is not None:
            beside = pad.with_name("typed")
            beside.write_text(text.replace("# rendered", f"- content: {typed}\n# rendered"))
            beside.replace(pad)
        return await real(manager, shown, absorbed)

    monkeypatch.setattr(ScratchpadManager, "render_over", render_after_a_save)
    await service.scratchpad()
    await service.settle()
    told = {entry.content for entry in (await service.scratchpad()).entries}
    assert told == {"Prefers tea", "Works in Oslo", "Has a dog", "Has a cat"}
    assert list(pad.parent.glob(".scratchpad.yaml.*")) == []


async def test_what_came_out_of_the_files_place_before_a_crash_is_taken_over_later(
    service: MemoryService, pad: Path
) -> None:
    await stored(service, "Prefers tea")
    left = pad.with_name(".scratchpad.yaml.01234567.old")
    left.write_text(pad.read_text().replace("# rendered", "- content: Works in Oslo\n# rendered"))
    assert {entry.content for entry in (await service.scratchpad()).entries} == {"Prefers tea", "Works in Oslo"}
    assert not left.exists()


async def test_while_another_process_holds_the_file_its_memories_are_shown_all_the_same(
    make_service: Callable[..., MemoryService], pad: Path
) -> None:
    service = make_service(limits=IMPATIENT)
    await stored(service, "Prefers tea")
    edit(pad, lambda items: items.append({"content": "Works in Oslo"}))
    saved = pad.read_text()
    async with RenderLock(pad.parent).taken(1) as is_mine:
        assert is_mine
        assert len(await service.scratchpad()) == 1
        assert pad.read_text() == saved
    assert len(await service.scratchpad()) == 2


async def test_of_too_many_edits_the_first_are_taken_over_and_the_rest_is_kept(
    service: MemoryService, listener: Listener, pad: Path
) -> None:
    await stored(service, "Prefers tea")
    edit(pad, lambda items: items.extend({"content": f"line {number}"} for number in range(MAX_EDITS + 50)))
    saved = pad.read_text()
    await service.scratchpad(listener.caller)
    assert await service.storage.count() == MAX_EDITS + 1
    (kept,) = pad.parent.glob("scratchpad.broken-*.yaml")
    assert kept.read_text() == saved
    (told,) = listener.of("memory:degraded")
    assert "50 edits" in told["message"]
    assert str(MAX_EDITS) in told["message"]


async def test_a_secret_in_a_broken_file_is_not_kept(service: MemoryService, pad: Path, secret: str) -> None:
    await stored(service, "Prefers tea")
    pad.write_text(f"- content: [the mirror takes {secret} as a token")
    await service.scratchpad()
    (kept,) = pad.parent.glob("scratchpad.broken-*.yaml")
    assert secret not in kept.read_text()
    assert "the mirror takes" in kept.read_text()
    assert [path for path in pad.parent.iterdir() if path.is_file() and secret.encode() in path.read_bytes()] == []


async def test_a_broken_file_is_removed_by_a_rendering_after_thirty_days(
    service: MemoryService, pad: Path, clock: FrozenClock
) -> None:
    await stored(service, "Prefers tea")
    pad.write_text("- content: [unclosed")
    await service.scratchpad()
    clock.advance(days=31)
    await stored(service, "Works in Oslo")
    assert list(pad.parent.glob("scratchpad.broken-*.yaml")) == []


async def test_an_edit_that_could_not_be_taken_over_is_by_a_later_search(
    service: MemoryService, listener: Listener, pad: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await stored(service, "Prefers tea")
    edit(pad, lambda items: items.append({"content": "Works in Oslo"}))

    async def busy(*_: object, **__: object) -> None:
        raise BusyError("somebody else is writing")

    with monkeypatch.context() as patch:
        patch.setattr(service.storage, "store", busy)
        for _ in range(3):
            await service.search("Oslo", caller=listener.caller)
    assert len(listener.of("memory:degraded")) == 1, "said when it begins"
    assert [r.memory.content for r in (await service.search("Oslo")).results] == ["Works in Oslo"]
    await service.settle()  # a rendering under way has the turn
    edit(pad, lambda items: items.append({"content": "Has a dog"}))
    with monkeypatch.context() as patch:
        patch.setattr(service.storage, "store", busy)
        await service.search("dog", caller=listener.caller)
    assert len(listener.of("memory:degraded")) == 2, "it began anew"


async def test_an_edit_whose_turn_was_not_had_is_taken_over_by_a_later_search(
    make_service: Callable[..., MemoryService], pad: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    service, real, waits = make_service(limits=IMPATIENT), RenderLock.taken, list[float]()
    await stored(service, "Prefers tea")
    edit(pad, lambda items: items.append({"content": "Works in Oslo"}))
    async with RenderLock(pad.parent).taken(1) as is_mine:
        assert is_mine
        monkeypatch.setattr(RenderLock, "taken", lambda lock, patience: waits.append(patience) or real(lock, patience))
        for _ in range(2):
            assert len(await service.list_recent()) == 1
    assert waits == [IMPATIENT.edits_patience, 0], "it waits once"
    assert len(await service.list_recent()) == 2


async def test_an_edit_whose_taking_over_was_cancelled_is_taken_over_by_a_later_search(
    service: MemoryService, pad: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await stored(service, "Prefers tea")
    edit(pad, lambda items: items.append({"content": "Works in Oslo"}))

    async def cancelled(*_: object, **__: object) -> None:
        raise asyncio.CancelledError

    with monkeypatch.context() as patch:
        patch.setattr(service.storage, "store", cancelled)
        with pytest.raises(asyncio.CancelledError):
            await service.list_recent()
    assert len(await service.list_recent()) == 2


@pytest.mark.parametrize("content", ["Works in Oslo", "[unclosed"])
async def test_what_was_taken_over_on_a_full_disk_and_then_forgotten_is_not_added_again(
    service: MemoryService, pad: Path, monkeypatch: pytest.MonkeyPatch, content: str
) -> None:
    await stored(service, "Prefers tea")
    pad.write_text(pad.read_text().replace("# rendered", f"- content: {content}\n# rendered"))

    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(saves, "replace_file", full)
        for memory in await service.list_recent():
            await service.forget(memory.id)
        await service.settle()
        assert not pad.exists()
    service.pad.schedule()
    await service.settle()
    assert await service.storage.count() == 0
    assert yaml.safe_load(pad.read_text()) == []
    assert len(list(pad.parent.glob("scratchpad.broken-*.yaml"))) == (content == "[unclosed")


async def test_a_text_in_the_file_that_is_known_is_not_added_again_when_that_is_forgotten(
    service: MemoryService, pad: Path
) -> None:
    (tea,) = await stored(service, "Prefers tea")
    edit(pad, lambda items: items.append({"content": "Prefers tea"}))
    await service.forget(tea)
    await service.settle()
    assert await service.storage.count() == 0
