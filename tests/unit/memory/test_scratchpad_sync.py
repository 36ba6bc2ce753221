"""A person edits scratchpad.yaml: each edit goes through the write path, and nothing is ever lost."""

from __future__ import annotations

import asyncio
import errno
import os
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from pydantic import SecretStr

from agent_memory.errors import BusyError
from agent_memory.memories import QdrantServerStorage
from agent_memory.memory import MemoryService, scratchpad
from agent_memory.memory import scratchpad_file as saves
from agent_memory.memory.scratchpad import MAX_EDITS, ServiceLimits
from agent_memory.memory.scratchpad_manager import RenderLock
from agent_memory.scratchpad import ScratchpadManager
from agent_memory.settings import ServiceSettings

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from agent_memory.models import Scratchpad
    from tests.support import FrozenClock
    from tests.unit.memory.conftest import Listener, Services

IMPATIENT = ServiceLimits(edits_patience=0.01)


@dataclass
class Pad:
    """The file that a person edits, the service that reads it, and a session that hears of it.

    Attributes:
        tea: The id of the first memory.
    """

    service: MemoryService
    listener: Listener
    file: Path
    tea: str = ""

    def edit(self, change: Callable[[list[dict[str, Any]]], None]) -> None:
        """Save the file as an editor would: entries changed, comments as they were."""
        text = self.file.read_text()
        items = yaml.safe_load(text)
        change(items)
        comments = [line for line in text.splitlines() if line.startswith("#")]
        self.file.write_text("\n".join([*comments[:-1], yaml.safe_dump(items, sort_keys=False), comments[-1]]) + "\n")

    async def contents(self) -> set[str]:
        return {entry.content for entry in (await self.service.scratchpad()).entries}

    async def stored(self, *texts: str) -> list[str]:
        ids = [(await self.service.store({"content": text})).memory.id for text in texts]
        await self.service.settle()
        return ids


@pytest.fixture
def bare(service: MemoryService, listener: Listener, folder: Path) -> Pad:
    """Return an agent of whom nothing is known yet."""
    return Pad(service, listener, folder / "scratchpad.yaml")


@pytest.fixture
async def pad(bare: Pad) -> Pad:
    """Return an agent who knows that somebody prefers tea."""
    (bare.tea,) = await bare.stored("Prefers tea")
    return bare


@pytest.fixture
def impatient(make_service: Services, pad: Pad) -> Pad:
    """Return the same with a service that soon gives up its turn."""
    return replace(pad, service=make_service(limits=IMPATIENT))


async def busy(*_: object, **__: object) -> None:
    raise BusyError("somebody else is writing")


async def test_a_changed_text_is_a_patch(pad: Pad) -> None:
    pad.edit(lambda items: items[0].update(content="Prefers green tea", tags=["drink"], pinned=True))
    (entry,) = (await pad.service.scratchpad(pad.listener.caller)).entries
    assert (entry.id, entry.content, entry.tags, entry.pinned) == (pad.tea, "Prefers green tea", ["drink"], True)
    assert pad.listener.names() == ["memory:updated", "memory:scratchpad_edited"]
    told = pad.listener.of("memory:scratchpad_edited")[0]
    assert (told["changed"], told["added"], told["removed"]) == (1, 0, 0)


async def test_a_new_entry_is_a_memory_in_the_persons_own_words(pad: Pad) -> None:
    pad.edit(lambda items: items.append({"content": "Works in Oslo"}))
    entries = {entry.content: entry for entry in (await pad.service.scratchpad(pad.listener.caller)).entries}
    added = entries["Works in Oslo"]
    assert (added.trust, added.source.kind, added.source.detail) == ("high", "user", "scratchpad.yaml")
    assert added.id in pad.file.read_text(), "the file shows it with its id now"
    await pad.service.scratchpad(pad.listener.caller)
    assert await pad.service.storage.count() == 2
    assert pad.listener.names().count("memory:scratchpad_edited") == 1


async def test_an_entry_taken_out_leaves_the_pad_and_is_not_forgotten(bare: Pad) -> None:
    tea, coffee = await bare.stored("Prefers tea", "Dislikes coffee")
    await bare.service.update(tea, {"pinned": True})
    await bare.service.settle()
    bare.edit(lambda items: items.clear())
    assert len(await bare.service.scratchpad(bare.listener.caller)) == 0
    assert await bare.service.storage.count() == 2
    assert [r.memory.id for r in (await bare.service.search("coffee")).results] == [coffee]
    await bare.service.settle()
    assert yaml.safe_load(bare.file.read_text()) == []


async def test_a_secret_written_into_the_file_is_redacted(pad: Pad, secret: str) -> None:
    pad.edit(lambda items: items.append({"content": f"The mirror takes {secret} as a token"}))
    await pad.service.scratchpad(pad.listener.caller)
    assert secret not in pad.file.read_text()
    assert "[redacted:" in pad.file.read_text()


@pytest.mark.parametrize("how", ["search", "list"])
async def test_whoever_searches_or_lists_finds_what_a_person_has_just_written(pad: Pad, how: str) -> None:
    await pad.service.search("tea")
    pad.edit(lambda items: items[0].update(content="Prefers green tea"))
    if how == "search":
        found = [result.memory for result in (await pad.service.search("green", caller=pad.listener.caller)).results]
        assert "memory:scratchpad_edited" in pad.listener.names()
    else:
        found = await pad.service.list_recent()
    assert [memory.content for memory in found] == ["Prefers green tea"]


async def test_a_file_that_is_as_it_was_is_not_read_again(pad: Pad, monkeypatch: pytest.MonkeyPatch) -> None:
    await pad.service.list_recent()
    monkeypatch.setattr(saves.PadFile, "look", lambda *_, **__: pytest.fail("it was read"))
    assert len(await pad.service.list_recent()) == 1


async def test_a_broken_file_is_kept_aside_for_thirty_days_rendered_anew_and_that_is_said(
    pad: Pad, clock: FrozenClock
) -> None:
    pad.file.write_text("- content: [unclosed")
    assert len(await pad.service.scratchpad(pad.listener.caller)) == 1
    (kept,) = pad.file.parent.glob("scratchpad.broken-*.yaml")
    assert kept.read_text() == "- content: [unclosed"
    assert "Prefers tea" in pad.file.read_text()
    (told,) = pad.listener.of("memory:degraded")
    assert told["component"] == "scratchpad"
    assert kept.name in told["message"]
    clock.advance(days=31)
    await pad.stored("Works in Oslo")
    assert list(pad.file.parent.glob("scratchpad.broken-*.yaml")) == []


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
async def test_a_refused_edit_is_kept_aside_and_the_others_are_taken_over(pad: Pad, item: dict[str, Any]) -> None:

    def change(items: list[dict[str, Any]]) -> None:
        items[0]["content"] = "Prefers green tea"
        items.append(item)

    pad.edit(change)
    saved = pad.file.read_text()
    assert [entry.content for entry in (await pad.service.scratchpad(pad.listener.caller)).entries] == [
        "Prefers green tea"
    ]
    (kept,) = pad.file.parent.glob("scratchpad.broken-*.yaml")
    assert kept.read_text() == saved
    (told,) = pad.listener.of("memory:degraded")
    assert "refused" in told["message"]
    await pad.service.scratchpad(pad.listener.caller)
    assert len(pad.listener.of("memory:degraded")) == 1, "said once"


async def test_an_edit_survives_a_store_that_renders_the_file(pad: Pad) -> None:
    pad.edit(lambda items: items[0].update(content="Prefers green tea"))
    await pad.stored("Works in Oslo")
    assert await pad.contents() == {
        "Prefers green tea",
        "Works in Oslo",
    }


async def test_who_stores_hears_of_an_edit_that_is_taken_over_behind_it(pad: Pad) -> None:
    pad.file.write_text("- content: [unclosed")
    await pad.service.store({"content": "Works in Oslo"}, pad.listener.caller)
    await pad.service.settle()
    (told,) = pad.listener.of("memory:degraded")
    assert "scratchpad.broken-" in told["message"]


async def test_an_edit_waits_while_the_journal_is_busy_and_is_taken_over_later(
    bare: Pad, monkeypatch: pytest.MonkeyPatch, recwarn: pytest.WarningsRecorder
) -> None:
    await bare.stored("Prefers tea", "Works in Oslo")

    def change(items: list[dict[str, Any]]) -> None:
        items[0]["content"] = "Works in Bergen"
        items.append({"content": "Has a dog"})
        del items[1]

    bare.edit(change)
    saved = bare.file.read_text()
    with monkeypatch.context() as patch:
        patch.setattr(bare.service.storage, "update", busy)
        patch.setattr(bare.service.storage, "store_compared", busy)
        shown = await bare.service.scratchpad(bare.listener.caller)
        bare.service.pad.schedule()
        await bare.service.settle()
    assert {entry.content for entry in shown.entries} == {"Prefers tea", "Works in Oslo"}
    assert bare.listener.of("memory:degraded")[0]["code"] == "busy"
    assert bare.file.read_text() == saved, "nobody rendered over the edit"
    assert await bare.contents() == {"Works in Bergen", "Has a dog"}
    assert [str(w.message) for w in recwarn if "never awaited" in str(w.message)] == []


async def test_a_pad_that_cannot_be_written_costs_nothing_but_itself(bare: Pad, clock: FrozenClock) -> None:
    bare.file.mkdir(parents=True)
    memory = (await bare.service.store({"content": "Prefers tea"})).memory
    await bare.service.settle()
    assert [r.memory.id for r in (await bare.service.search("tea")).results] == [memory.id]
    assert list((await bare.service.scratchpad()).ids()) == [memory.id]


async def test_many_changes_in_a_row_end_in_one_true_file(bare: Pad) -> None:
    await bare.stored(*(f"fact {number}" for number in range(20)))
    assert len(yaml.safe_load(bare.file.read_text())) == 20


async def test_forget_renders_the_file_without_a_pause(pad: Pad, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scratchpad, "_RENDERING_PAUSE", 3600.0)
    monkeypatch.setattr(scratchpad, "_LONGEST_DELAY", 3600.0)
    await pad.service.forget(pad.tea)
    async with asyncio.timeout(60):
        while "Prefers tea" in pad.file.read_text():  # noqa: ASYNC110 - a task writes the file
            await asyncio.sleep(0.01)


def test_the_file_lies_where_the_settings_say_also_when_the_memories_are_elsewhere(tmp_path: Path) -> None:
    settings = ServiceSettings(
        backend="server", qdrant_url=SecretStr("http://localhost:6333"), storage_root=str(tmp_path), embedder="none"
    )
    storage = QdrantServerStorage("bob", settings=settings, client=lambda: pytest.fail("it connects"))
    service = MemoryService(storage, settings)
    assert service.pad.file == tmp_path / "bob" / "scratchpad.yaml"


async def test_a_save_while_another_is_taken_over_is_taken_over_too(pad: Pad, monkeypatch: pytest.MonkeyPatch) -> None:
    text, texts = pad.file.read_text(), iter(["Has a dog", "Has a cat"])
    pad.file.write_text(text.replace("# rendered", "- content: Works in Oslo\n# rendered"))
    real = ScratchpadManager.render_over

    async def render_after_a_save(manager: ScratchpadManager, shown: Scratchpad, absorbed: bytes | None) -> bool:
        if (typed := next(texts, None)) is not None:
            beside = pad.file.with_name("typed")
            beside.write_text(text.replace("# rendered", f"- content: {typed}\n# rendered"))
            beside.replace(pad.file)
        return await real(manager, shown, absorbed)

    monkeypatch.setattr(ScratchpadManager, "render_over", render_after_a_save)
    await pad.service.scratchpad()
    await pad.service.settle()
    told = await pad.contents()
    assert told == {"Prefers tea", "Works in Oslo", "Has a dog", "Has a cat"}
    assert list(pad.file.parent.glob(".scratchpad.yaml.*")) == []


async def test_what_came_out_of_the_files_place_before_a_crash_is_taken_over_later(pad: Pad) -> None:
    left = pad.file.with_name(".scratchpad.yaml.01234567.old")
    left.write_text(pad.file.read_text().replace("# rendered", "- content: Works in Oslo\n# rendered"))
    assert await pad.contents() == {"Prefers tea", "Works in Oslo"}
    assert not left.exists()


async def test_while_another_process_holds_the_file_its_memories_are_shown_all_the_same(impatient: Pad) -> None:
    impatient.edit(lambda items: items.append({"content": "Works in Oslo"}))
    saved = impatient.file.read_text()
    async with RenderLock(impatient.file.parent).taken(1) as is_mine:
        assert is_mine
        assert len(await impatient.service.scratchpad()) == 1
        assert impatient.file.read_text() == saved
    assert len(await impatient.service.scratchpad()) == 2


async def test_of_too_many_edits_the_first_are_taken_over_and_the_rest_is_kept(pad: Pad) -> None:
    pad.edit(lambda items: items.extend({"content": f"line {number}"} for number in range(MAX_EDITS + 50)))
    saved = pad.file.read_text()
    await pad.service.scratchpad(pad.listener.caller)
    assert await pad.service.storage.count() == MAX_EDITS + 1
    (kept,) = pad.file.parent.glob("scratchpad.broken-*.yaml")
    assert kept.read_text() == saved
    (told,) = pad.listener.of("memory:degraded")
    assert "50 edits" in told["message"]
    assert str(MAX_EDITS) in told["message"]


async def test_a_secret_in_a_broken_file_is_not_kept(pad: Pad, secret: str) -> None:
    pad.file.write_text(f"- content: [the mirror takes {secret} as a token")
    await pad.service.scratchpad()
    (kept,) = pad.file.parent.glob("scratchpad.broken-*.yaml")
    assert secret not in kept.read_text()
    assert "the mirror takes" in kept.read_text()
    assert [path for path in pad.file.parent.iterdir() if path.is_file() and secret.encode() in path.read_bytes()] == []


async def test_an_edit_that_could_not_be_taken_over_is_by_a_later_search(
    pad: Pad, monkeypatch: pytest.MonkeyPatch
) -> None:
    pad.edit(lambda items: items.append({"content": "Works in Oslo"}))
    with monkeypatch.context() as patch:
        patch.setattr(pad.service.storage, "store_compared", busy)
        for _ in range(3):
            await pad.service.search("Oslo", caller=pad.listener.caller)
    assert len(pad.listener.of("memory:degraded")) == 1, "said when it begins"
    assert [r.memory.content for r in (await pad.service.search("Oslo")).results] == ["Works in Oslo"]
    await pad.service.settle()  # a rendering under way has the turn
    pad.edit(lambda items: items.append({"content": "Has a dog"}))
    with monkeypatch.context() as patch:
        patch.setattr(pad.service.storage, "store_compared", busy)
        await pad.service.search("dog", caller=pad.listener.caller)
    assert len(pad.listener.of("memory:degraded")) == 2, "it began anew"


async def test_an_edit_whose_turn_was_not_had_is_taken_over_by_a_later_search(
    impatient: Pad, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, waits = RenderLock.taken, list[float]()
    impatient.edit(lambda items: items.append({"content": "Works in Oslo"}))
    async with RenderLock(impatient.file.parent).taken(1) as is_mine:
        assert is_mine
        monkeypatch.setattr(RenderLock, "taken", lambda lock, patience: waits.append(patience) or real(lock, patience))
        for _ in range(2):
            assert len(await impatient.service.list_recent()) == 1
    assert waits == [IMPATIENT.edits_patience, 0], "it waits once"
    assert len(await impatient.service.list_recent()) == 2


async def test_an_edit_whose_taking_over_was_cancelled_is_taken_over_by_a_later_search(
    pad: Pad, monkeypatch: pytest.MonkeyPatch
) -> None:
    pad.edit(lambda items: items.append({"content": "Works in Oslo"}))

    async def cancelled(*_: object, **__: object) -> None:
        raise asyncio.CancelledError

    with monkeypatch.context() as patch:
        patch.setattr(pad.service.storage, "store_compared", cancelled)
        with pytest.raises(asyncio.CancelledError):
            await pad.service.list_recent()
    assert len(await pad.service.list_recent()) == 2


@pytest.mark.parametrize("content", ["Works in Oslo", "[unclosed"])
async def test_what_was_taken_over_on_a_full_disk_and_then_forgotten_is_not_added_again(
    pad: Pad, monkeypatch: pytest.MonkeyPatch, content: str
) -> None:
    pad.file.write_text(pad.file.read_text().replace("# rendered", f"- content: {content}\n# rendered"))

    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(saves, "replace_file", full)
        for memory in await pad.service.list_recent():
            await pad.service.forget(memory.id)
        await pad.service.settle()
        assert not pad.file.exists()
    pad.service.pad.schedule()
    await pad.service.settle()
    assert await pad.service.storage.count() == 0
    assert yaml.safe_load(pad.file.read_text()) == []
    assert len(list(pad.file.parent.glob("scratchpad.broken-*.yaml"))) == (content == "[unclosed")


async def test_a_text_in_the_file_that_is_known_is_not_added_again_when_that_is_forgotten(pad: Pad) -> None:
    pad.edit(lambda items: items.append({"content": "Prefers tea"}))
    await pad.service.forget(pad.tea)
    await pad.service.settle()
    assert await pad.service.storage.count() == 0


async def test_edit_of_stale_entry_is_refused_and_newer_text_stays(pad: Pad) -> None:
    saved_before = pad.file.read_text()
    await pad.service.update(pad.tea, {"content": "Prefers coffee since May"})
    await pad.service.settle()
    edited = saved_before.replace("Prefers tea", "Prefers green tea")
    pad.file.write_text(edited.replace("# rendered", "- content: Works in Oslo\n# rendered"))
    shown = await pad.service.scratchpad(pad.listener.caller)
    assert {entry.content for entry in shown.entries} == {"Prefers coffee since May", "Works in Oslo"}
    (copy,) = pad.file.parent.glob("scratchpad.broken-*.yaml")
    assert "Prefers green tea" in copy.read_text()
    (event,) = pad.listener.of("memory:degraded")
    assert event["code"] == "conflict"
    for part in (pad.tea, "newer text stays", "all other edits were applied", copy.name, "edit scratchpad.yaml again"):
        assert part in event["message"]
    assert "Prefers coffee since May" in pad.file.read_text(), "the person sees the newer text"


async def test_edit_saved_during_an_update_does_not_overwrite_it(pad: Pad) -> None:
    pad.edit(lambda items: items[0].update(content="Prefers green tea"))
    await pad.service.writer.update(pad.tea, {"content": "Prefers coffee since May"}, pad.listener.caller)
    await pad.service.settle()
    assert await pad.contents() == {"Prefers coffee since May"}


async def test_second_save_of_the_same_editor_is_applied(pad: Pad) -> None:
    opened = pad.file.read_text()
    for text in ("Prefers green tea", "Prefers black tea"):
        pad.file.write_text(opened.replace("Prefers tea", text))
        assert await pad.contents() == {text}
    assert list(pad.file.parent.glob("scratchpad.broken-*.yaml")) == []


async def test_edit_applied_before_a_crash_is_not_refused(pad: Pad) -> None:
    edited = pad.file.read_text().replace("Prefers tea", "Prefers green tea")
    await pad.service.update(pad.tea, {"content": "Prefers green tea"})
    await pad.service.settle()
    pad.file.write_text(edited)
    assert await pad.contents() == {"Prefers green tea"}
    assert list(pad.file.parent.glob("scratchpad.broken-*.yaml")) == []


async def test_edit_of_replaced_entry_is_refused_and_replacement_stays(pad: Pad) -> None:
    edited = pad.file.read_text().replace("Prefers tea", "Prefers green tea")
    new = (await pad.service.store({"content": "Prefers coffee since May", "supersedes": pad.tea})).memory.id
    await pad.service.settle()
    pad.file.write_text(edited)
    assert await pad.contents() == {"Prefers coffee since May"}
    await pad.service.scratchpad(pad.listener.caller)
    (copy,) = pad.file.parent.glob("scratchpad.broken-*.yaml")
    assert "Prefers green tea" in copy.read_text()
    assert (await pad.service.get(pad.tea)).content == "Prefers tea"
    assert new in pad.file.read_text()


async def test_old_copy_without_comments_does_not_bring_old_text_back(pad: Pad) -> None:
    entries = yaml.safe_load(pad.file.read_text())
    await pad.service.update(pad.tea, {"content": "Prefers coffee since May"})
    await pad.service.settle()
    pad.file.write_text(yaml.safe_dump([*entries, {"content": "Works in Oslo"}]))
    assert await pad.contents() == {"Prefers coffee since May", "Works in Oslo"}
