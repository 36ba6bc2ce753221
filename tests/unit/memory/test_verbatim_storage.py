"""Verbatim records: unchanged, bounded, without secrets, and in everything that care does with records."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_memory.care.account import list_held_records
from agent_memory.care.privacy.purge import Purging
from agent_memory.care.privacy.purge_survey import find_stored_secrets
from agent_memory.errors import ValidationError
from agent_memory.files.layout import folder_of
from agent_memory.memory.caller import NOBODY
from agent_memory.memory.service import open_service
from agent_memory.memory.verbatim_storage import VerbatimStorage, load_value
from agent_memory.models.verbatim import MAX_VERBATIM_CHARS, VERBATIM
from agent_memory.settings import ServiceSettings
from tests.concurrency.processes import REPOSITORY, environment
from tests.support import resealed

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from agent_memory.memory import MemoryService
    from tests.support import FrozenClock

SECRET = "gh" + "p_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
NAMES = ("session",)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-999, 999) | st.text('abc é\n"\\\0\ud800', max_size=8),
    lambda values: st.lists(values, max_size=3) | st.dictionaries(st.text("xyz", max_size=4), values, max_size=3),
    max_leaves=8,
)


@pytest.fixture
async def storage(root: Path, clock: FrozenClock) -> AsyncIterator[VerbatimStorage]:
    storage = VerbatimStorage("bob", "test", root, clock=clock)
    yield storage
    await storage.close()


async def add(storage: VerbatimStorage, *values: Any, key: str | None = None, names: tuple[str, ...] = NAMES) -> None:
    await storage.put([storage.draft(names, value, key=key) for value in values])


async def load(storage: VerbatimStorage, names: tuple[str, ...] = NAMES, limit: int | None = None) -> list[Any]:
    return [load_value(record) for record in await storage.list_in(names, limit)]


@given(value=st.dictionaries(st.text("xyz", max_size=4), JSON, max_size=3))
def test_draft_without_secret_is_unchanged(value: Any, tmp_path_factory: pytest.TempPathFactory) -> None:
    storage = VerbatimStorage("bob", "test", tmp_path_factory.getbasetemp())
    record = storage.draft(NAMES, value).value
    assert load_value(record) == value
    record.content.encode()


async def test_text_keeps_case_spaces_and_line_ends(storage: VerbatimStorage) -> None:
    text = "  Ⅳ\tA  b\r\n\n Ünï\u200bcode \n"
    await add(storage, text, key="a")
    await storage.close()
    assert await load(storage) == [text]


async def test_secret_is_replaced_and_the_rest_is_equal(storage: VerbatimStorage, root: Path) -> None:
    item = {"role": "user", "content": [{"type": "text", "text": f"  Use {SECRET} at  night\n"}], "n": 1.5}
    await add(storage, item)
    (stored,) = await load(storage)
    marker = stored["content"][0]["text"].removeprefix("  Use ").removesuffix(" at  night\n")
    assert marker.startswith("[redacted:")
    assert stored == json.loads(json.dumps(item).replace(SECRET, marker))
    assert SECRET.encode() not in (root / "bob" / VERBATIM.journal).read_bytes()


async def test_content_that_is_only_a_secret_becomes_a_marker(storage: VerbatimStorage) -> None:
    await add(storage, SECRET, key="a")
    assert (await load(storage))[0].startswith("[redacted:")


async def test_refusing_storage_stores_no_secret(root: Path) -> None:
    storage = VerbatimStorage("bob", "test", root, refuse_secrets=True)
    with pytest.raises(ValidationError) as caught:
        await add(storage, {"text": "fine"}, {"text": SECRET})
    assert caught.value.code == "secret_refused"
    assert await load(storage) == []
    await storage.close()


async def test_name_with_a_secret_is_refused(storage: VerbatimStorage) -> None:
    with pytest.raises(ValidationError):
        storage.draft((SECRET,), "x")
    await add(storage, 1, names=("sess_8f3kdk39Xk2LqP0z",))
    await add(storage, 2, names=("sess_8f3kdk39Xk2LqP0y",))
    assert await load(storage, ("sess_8f3kdk39Xk2LqP0z",)) == [1]


@pytest.mark.parametrize("value", ["x" * (MAX_VERBATIM_CHARS + 1), "half \ud800", "nul \0"])
def test_draft_of_unusable_text_is_refused(value: str, root: Path) -> None:
    with pytest.raises(ValidationError):
        VerbatimStorage("bob", "test", root).draft(NAMES, value)


def test_draft_of_deep_json_is_refused(root: Path) -> None:
    value: Any = 1
    for _ in range(49):
        value = [value]
    with pytest.raises(ValidationError, match="48 levels"):
        VerbatimStorage("bob", "test", root).draft(NAMES, value)


def test_draft_of_an_object_raises_type_error(root: Path) -> None:
    with pytest.raises(TypeError):
        VerbatimStorage("bob", "test", root).draft(NAMES, {"x": object()})


async def test_items_come_in_order_and_pop_from_the_end(storage: VerbatimStorage) -> None:
    await add(storage, *range(4))
    await add(storage, "inner", names=(*NAMES, "inner"))
    assert await load(storage) == [0, 1, 2, 3, "inner"]
    assert await load(storage, limit=2) == [3, "inner"]
    assert [load_value(record) for record in [await storage.pop_last(NAMES)] if record is not None] == ["inner"]
    await storage.compact(timedelta(0))
    assert await load(storage) == [0, 1, 2, 3]
    assert await storage.clear(NAMES) == 4
    assert await storage.pop_last(NAMES) is None


async def test_adapters_and_names_do_not_see_each_other(storage: VerbatimStorage, root: Path) -> None:
    rival = VerbatimStorage("bob", "rival", root)
    await add(storage, 1, key="k", names=("a", "b"))
    await add(rival, 2, key="k", names=("a", "b"))
    assert await load(storage, ()) == [1]
    assert await load(storage, ("a", "b", "c")) == await load(storage, ("b",)) == []
    assert await storage.find(("a",), "b") is None
    await rival.close()


async def test_replaced_record_keeps_its_time(storage: VerbatimStorage, clock: FrozenClock) -> None:
    await add(storage, {"v": 1}, key="k")
    first = clock.now
    clock.advance(hours=1)
    await add(storage, {"v": 2}, key="k")
    record = await storage.find(NAMES, "k")
    assert record is not None
    assert (load_value(record), record.timestamp, record.moment) == ({"v": 2}, first, clock.now)


async def test_damaged_json_is_skipped(storage: VerbatimStorage, root: Path) -> None:
    await add(storage, {"v": 1}, {"v": 2})
    await storage.close()
    journal = root / "bob" / VERBATIM.journal
    content = journal.read_bytes().replace(b'{\\"v\\": 2}', b'{\\"v\\": 2,')
    journal.write_bytes(resealed(content))
    reader = VerbatimStorage("bob", "test", root)
    assert await load(reader) == [{"v": 1}]
    last = await reader.pop_last(NAMES)
    assert last is not None
    assert load_value(last) == {"v": 1}
    await reader.close()


async def test_sealed_records_are_listed_in_order(storage: VerbatimStorage, root: Path) -> None:
    await add(storage, *range(300))
    await add(storage, 300)
    for _ in range(100):
        if folder_of("bob", root).has_segments(VERBATIM.name):
            break
        await asyncio.sleep(0.1)
    await storage.close()
    again = VerbatimStorage("bob", "test", root)
    await add(again, 301)
    assert await load(again) == list(range(302))
    assert await load(again, limit=3) == [299, 300, 301]
    await again.close()


WRITER = """
import asyncio, sys
from agent_memory.memory.verbatim_storage import VerbatimStorage
async def main(root, name):
    storage = VerbatimStorage("bob", "test", root)
    for number in range(40):
        await storage.put([storage.draft(("session",), [name, number])])
        if number % 4 == 3:
            print(sum([await storage.pop_last(("queue",)) is not None for _ in range(2)]))
    await storage.close()
asyncio.run(main(*sys.argv[1:]))
"""


async def test_two_processes_lose_and_double_nothing(storage: VerbatimStorage, root: Path) -> None:
    await add(storage, *range(30), names=("queue",))
    commands = [[sys.executable, "-c", WRITER, str(root), name] for name in "ab"]
    processes = [
        await asyncio.create_subprocess_exec(*command, cwd=REPOSITORY, env=environment(), stdout=subprocess.PIPE)
        for command in commands
    ]
    outputs = [(await process.communicate())[0].decode() for process in processes]
    items = await load(storage)
    assert sorted(items) == [[name, number] for name in "ab" for number in range(40)]
    for name in "ab":
        assert [number for writer, number in items if writer == name] == list(range(40))
    assert sum(map(int, "".join(outputs).split())) == 30
    assert await load(storage, ("queue",)) == []


@pytest.fixture
async def service(root: Path) -> AsyncIterator[MemoryService]:
    service = open_service("bob", ServiceSettings(storage_root=str(root), embedder="none"))
    yield service
    await service.close()


async def test_search_and_briefing_do_not_read_it(storage: VerbatimStorage, service: MemoryService) -> None:
    await service.store({"content": "Kate owns the ledger"})
    await add(storage, {"text": "The zebra ledger belongs to Kate"})
    assert [hit.memory.content for hit in await service.search("zebra ledger Kate")] == ["Kate owns the ledger"]
    assert [memory.content for memory in await service.storage.list_recent(10)] == ["Kate owns the ledger"]


async def test_purge_removes_it_and_the_name_can_be_used_again(
    storage: VerbatimStorage, service: MemoryService, root: Path
) -> None:
    await add(storage, "The giraffe budget of the harbour city is nine", key="plan")
    purging = Purging(service)
    receipt = await purging.run(await purging.plan([storage.get_id(NAMES, "plan")]), NOBODY)
    assert receipt.is_clean
    assert not any(b"giraffe" in path.read_bytes() for path in root.rglob("*") if path.is_file())
    assert await load(storage) == []
    await add(storage, "A new plan", key="plan")
    await storage.close()
    assert await load(storage) == ["A new plan"]


async def test_account_and_secret_search_see_it(storage: VerbatimStorage, root: Path) -> None:
    await add(storage, {"text": "Kate owns the ledger"})
    folder = folder_of("bob", root)
    assert [(record.kind, "Kate" in str(record.data)) for record in list_held_records(folder)] == [("verbatim", True)]
    assert find_stored_secrets(folder) == []
