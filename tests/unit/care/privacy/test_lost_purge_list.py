"""A purge list that was lost, emptied or cut is noticed, and what was purged does not come back."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING, Any

import pytest

from agent_memory.care.agents import reset_agent
from agent_memory.care.backups.backup_writer import create_backup
from agent_memory.care.backups.restoration import copy_agent, restore_backup
from agent_memory.care.checks.examination import examine
from agent_memory.care.checks.repairs import repair_all
from agent_memory.errors import StorageError
from agent_memory.files.layout import folder_of
from agent_memory.files.names import AGENT, PURGE_KEY, PURGED
from agent_memory.journal import PurgeList, purge_list
from agent_memory.journal.agent_file import PurgeState, note_purges, read_purge_state
from tests.house import OTHER, SECRET, House

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

SECOND = "Peter's door code is four-eight-one-five today."


def empty(path: Path) -> None:
    path.write_bytes(b"")


def cut(path: Path) -> None:
    """Leave the first purge of a list."""
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:2]))


def damage(path: Path) -> None:
    content = path.read_bytes()
    path.write_bytes(content[:40] + b"_" + content[41:])


def replace_key(path: Path) -> None:
    path.write_text("ab" * 32)


LOSSES: list[Any] = [
    pytest.param(PURGED, lambda path: path.unlink(), id="list deleted"),
    pytest.param(PURGED, empty, id="list emptied"),
    pytest.param(PURGED, cut, id="list cut"),
    pytest.param(PURGED, damage, id="list damaged"),
    pytest.param(PURGE_KEY, lambda path: path.unlink(), id="key deleted"),
    pytest.param(PURGE_KEY, empty, id="key emptied"),
    pytest.param(PURGE_KEY, replace_key, id="another key"),
]


async def purged_twice(bobs: House) -> bytes:
    """Purge two memories; return the journal of before."""
    first, second = await bobs.keep(SECRET), await bobs.keep(SECOND)
    await bobs.keep(OTHER)
    await bobs.service.settle()
    earlier = (bobs.folder / "memories.yaml").read_bytes()
    assert (await bobs.purge(first)).is_clean
    assert (await bobs.purge(second)).is_clean
    await bobs.service.close()
    return earlier


@pytest.mark.parametrize(("name", "lose"), LOSSES)
async def test_lost_purge_list_refuses_to_open(bobs: House, name: str, lose: Callable[[Path], None]) -> None:
    earlier = await purged_twice(bobs)
    lose(bobs.folder / name)
    (bobs.folder / "memories.yaml").write_bytes(earlier)
    await bobs.again()
    service = bobs.service
    for question in (
        service.list_recent(),
        service.search("salary"),
        service.scratchpad(),
        service.history.forgotten(),
    ):
        with pytest.raises(StorageError) as caught:
            await question
        assert caught.value.code in {"purge_list", "purge_key"}
        assert f"agent-memory doctor --repair -a bob --root {bobs.root}" in caught.value.recovery
    with pytest.raises(StorageError):
        await bobs.keep("The crane is repaired.")
    with pytest.raises(StorageError):
        create_backup(folder_of("bob", bobs.root), clock=bobs.clock)
    with pytest.raises(StorageError):
        copy_agent(folder_of("bob", bobs.root), "eve", bobs.root)
    assert (bobs.folder / "memories.yaml").read_bytes() == earlier


@pytest.mark.parametrize(("name", "lose"), LOSSES)
async def test_doctor_restores_a_lost_purge_list_from_a_backup(
    bobs: House, name: str, lose: Callable[[Path], None]
) -> None:
    earlier = await purged_twice(bobs)
    create_backup(folder_of("bob", bobs.root), clock=bobs.clock)
    lose(bobs.folder / name)
    (bobs.folder / "memories.yaml").write_bytes(earlier)
    findings = examine(bobs.root, now=bobs.clock()).agents[0].findings
    assert "purges_unusable" in {finding.code for finding in findings}
    actions = repair_all(bobs.root, ["bob"], now=bobs.clock())
    assert [action.done for action in actions if action.code == "purges_unusable"] == [True]
    await bobs.again()
    assert [memory.content for memory in await bobs.service.searcher.list_all()] == [OTHER]
    await bobs.service.writer.compact()
    assert bobs.holding() == []


async def test_doctor_without_a_whole_list_names_the_reset(bobs: House) -> None:
    first, second = await bobs.keep(SECRET), await bobs.keep(OTHER)
    await bobs.purge(first)
    create_backup(folder_of("bob", bobs.root), clock=bobs.clock)
    await bobs.keep(SECOND)
    third = await bobs.keep("The crane is repaired.")
    await bobs.purge(third)
    await bobs.service.close()
    (bobs.folder / PURGED).unlink()
    (action,) = [
        action for action in repair_all(bobs.root, ["bob"], now=bobs.clock()) if action.code == "purges_unusable"
    ]
    assert not action.done
    assert f"agent-memory agents reset bob --root {bobs.root}" in action.sentence
    reset_agent(folder_of("bob", bobs.root), bobs.clock())
    made = next((bobs.root / "_backups").glob("bob-*.zip"))
    restore_backup(made, bobs.root, clock=bobs.clock)
    await bobs.again()
    assert [memory.id for memory in await bobs.service.searcher.list_all()] == [second]
    assert PurgeList(bobs.folder).names(first)


async def test_restore_brings_a_lost_purge_list_back(bobs: House) -> None:
    earlier = await purged_twice(bobs)
    made = create_backup(folder_of("bob", bobs.root), clock=bobs.clock)
    (bobs.folder / PURGED).unlink()
    restore_backup(made.path, bobs.root, clock=bobs.clock)
    (bobs.folder / "memories.yaml").write_bytes(earlier)
    await bobs.again()
    assert [memory.content for memory in await bobs.service.searcher.list_all()] == [OTHER]


@pytest.mark.parametrize("new", [None, "eve"])
async def test_restore_elsewhere_brings_the_purge_list(bobs: House, new: str | None) -> None:
    await purged_twice(bobs)
    made = create_backup(folder_of("bob", bobs.root), clock=bobs.clock)
    restored = restore_backup(made.path, bobs.root.parent / "other", new=new, clock=bobs.clock).folder.path
    assert PurgeList(restored).is_noted
    assert len(PurgeList(restored).purges()) == 2
    (restored / PURGED).unlink()
    with pytest.raises(StorageError):
        PurgeList(restored).check_key()


async def test_purge_updates_the_list_in_a_backup(bobs: House) -> None:
    secret = await bobs.keep(SECRET)
    await bobs.keep(OTHER)
    made = create_backup(folder_of("bob", bobs.root), clock=bobs.clock)
    await bobs.purge(secret)
    await bobs.service.close()
    (bobs.folder / PURGED).unlink()
    restore_backup(made.path, bobs.root, clock=bobs.clock)
    assert PurgeList(bobs.folder).names(secret)


async def test_restore_keeps_a_longer_purge_list(bobs: House) -> None:
    await purged_twice(bobs)
    made = create_backup(folder_of("bob", bobs.root), clock=bobs.clock)
    await bobs.again()
    third = await bobs.keep("The crane is repaired.")
    await bobs.purge(third)
    await bobs.service.close()
    restore_backup(made.path, bobs.root, clock=bobs.clock)
    assert PurgeList(bobs.folder).names(third)
    assert PurgeList(bobs.folder).is_noted


async def test_older_folder_without_the_field_opens_and_gets_it(bobs: House) -> None:
    await purged_twice(bobs)
    content = (bobs.folder / AGENT).read_bytes()
    value = json.loads(content.removeprefix(b"--- "))
    del value["purges"], value["crc"]
    (bobs.folder / AGENT).write_text(f"--- {json.dumps(value)}\n")
    assert read_purge_state(bobs.folder) is None
    await bobs.again()
    assert len(await bobs.service.searcher.list_all()) == 1
    await bobs.service.close()
    assert PurgeList(bobs.folder).is_noted


async def test_earlier_agent_file_with_a_longer_list_opens(bobs: House) -> None:
    await bobs.keep(OTHER)
    await bobs.purge(await bobs.keep(SECRET))
    await bobs.service.close()
    earlier = (bobs.folder / AGENT).read_bytes()
    await bobs.again()
    await bobs.purge(await bobs.keep(SECOND))
    await bobs.service.close()
    (bobs.folder / AGENT).write_bytes(earlier)
    await bobs.again()
    assert len(await bobs.service.searcher.list_all()) == 1
    await bobs.service.close()
    assert PurgeList(bobs.folder).is_noted


async def test_process_killed_between_list_and_agent_file_is_taken_up(
    bobs: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    await bobs.purge(await bobs.keep(SECRET))
    second = await bobs.keep(SECOND)
    await bobs.service.settle()

    def die(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(purge_list, "note_purges", die)
        with pytest.raises(KeyboardInterrupt):
            PurgeList(bobs.folder).begin([second], [SECOND], "2026-03-01T12:00:00+00:00")
    await bobs.again()
    assert len(PurgeList(bobs.folder).purges()) == 2
    assert await bobs.keep(OTHER)
    await bobs.service.close()
    assert PurgeList(bobs.folder).is_noted


async def test_open_session_notices_a_lost_list(bobs: House) -> None:
    earlier = await purged_twice(bobs)
    await bobs.again()
    assert len(await bobs.service.searcher.list_all()) == 1
    (bobs.folder / PURGED).unlink()
    (bobs.folder / "memories.yaml").write_bytes(earlier)
    with pytest.raises(StorageError):
        await bobs.service.list_recent()
    with pytest.raises(StorageError):
        await bobs.keep("The crane is repaired.")


async def test_reset_notes_the_list_that_stays(bobs: House) -> None:
    await purged_twice(bobs)
    reset_agent(folder_of("bob", bobs.root), bobs.clock())
    assert PurgeList(bobs.folder).is_noted
    await bobs.again()
    assert await bobs.keep(OTHER)


def test_note_purges_never_lowers_the_count(tmp_path: Path) -> None:
    note_purges(tmp_path, PurgeState(3, "c", "key"))
    note_purges(tmp_path, PurgeState(2, "b", "key"))
    assert read_purge_state(tmp_path) == PurgeState(3, "c", "key")


async def test_copied_agent_notes_its_list(bobs: House) -> None:
    await purged_twice(bobs)
    copy = copy_agent(folder_of("bob", bobs.root), "eve", bobs.root).path
    assert PurgeList(copy).is_noted
    shutil.rmtree(bobs.folder)
    assert len(PurgeList(copy).purges()) == 2
