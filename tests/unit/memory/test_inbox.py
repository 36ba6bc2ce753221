"""The inbox: what waits there is nowhere else, becomes a memory by a yes alone, and is gone by a no."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from agent_memory.care.checks.codes import Severity
from agent_memory.care.checks.examination import examine_agent
from agent_memory.care.privacy.purge import Purging
from agent_memory.errors import ConfigurationError, StorageError, UnknownIdError, ValidationError
from agent_memory.journal import PurgeList
from agent_memory.memory import Caller, MemoryService
from agent_memory.memory.features import attach_withdrawals
from agent_memory.memory.inbox import Inbox
from agent_memory.memory.inbox_access import has_journal
from agent_memory.models import CANDIDATE, Candidate, Observation, Source
from agent_memory.settings import ServiceSettings
from agent_memory.storage import FileStorage
from tests.support import raises, read_files

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from agent_memory.models import SourceKind, Trust
    from tests.support import FrozenClock

FACT, OTHER = "We decided to use Postgres for the ledger.", "Maria takes her tea without sugar."


def seen(content: str, **fields: Any) -> Observation:
    """Return what capture would have seen."""
    given = {"category": "decision", "confidence": 0.8, "source": Source(kind="user"), "trust": "high", **fields}
    return Observation(content=content, **given)


class House:
    """Bob's memory with an inbox; `events` is what was told."""

    def __init__(self, root: Path, clock: FrozenClock) -> None:
        self.settings = ServiceSettings(embedder="none", storage_root=str(root))
        self.clock, self.folder = clock, root / "bob"
        self.service = attach_withdrawals(
            MemoryService(FileStorage("bob", settings=self.settings, clock=clock), self.settings, clock=clock)
        )
        self.inbox = Inbox(self.service, clock=clock)
        self.events: list[tuple[str, dict[str, Any]]] = []
        self.caller = Caller("session-1", self._hear)

    async def hold(self, content: str, **fields: Any) -> str:
        held = await self.inbox.hold([seen(content, **fields)], self.caller)
        return held.ids[0]

    async def skipped(self, content: str, **fields: Any) -> dict[str, int]:
        return dict((await self.inbox.hold([seen(content, **fields)], self.caller)).skipped)

    async def texts(self) -> list[str]:
        return [each.content for each in await self.inbox.waiting()]

    def told(self, event: str) -> list[dict[str, Any]]:
        return [data for name, data in self.events if name == event]

    def bytes_with(self, text: str) -> list[str]:
        """Return the files in which a text stands."""
        return [path.name for path, content in read_files(self.folder) if text.encode() in content]

    def inbox_findings(self, root: Path) -> list[str]:
        """Return what the doctor finds of the inbox."""
        report = examine_agent(root, "bob", now=self.clock(), settings=self.settings)
        return [
            str(each)
            for each in report.findings
            if CANDIDATE.journal in str(each) and each.severity >= Severity.WARNING
        ]

    async def close(self) -> None:
        await self.inbox.close()
        await self.service.close()

    async def _hear(self, event: str, data: dict[str, Any]) -> None:
        self.events.append((event, data))


@pytest.fixture
async def house(root: Path, clock: FrozenClock) -> AsyncIterator[House]:
    """Return Bob's memory."""
    opened = House(root, clock)
    yield opened
    await opened.close()


async def test_what_waits_is_in_its_own_file_and_found_by_nothing(house: House) -> None:
    held = await house.hold(FACT, tags=["ledger"], rule="decided")
    (waiting,) = await house.inbox.waiting()
    assert (waiting.id, waiting.content, waiting.tags, waiting.rule, waiting.via) == (
        held, FACT, ["ledger"], "decided", "capture",
    )  # fmt: skip
    assert house.bytes_with("Postgres") == [CANDIDATE.journal]
    assert (await house.service.search("Postgres ledger")).results == []
    assert len(await house.service.scratchpad()) == 0
    assert await house.service.list_recent(5) == []
    assert house.told("memory:held")[0]["candidate_id"] == held


async def test_a_yes_makes_it_a_memory_with_all_it_had(house: House) -> None:
    held = await house.hold(FACT, tags=["ledger"], observed_at=house.clock() - timedelta(days=1))
    stored = await house.inbox.accept(held, house.caller)
    memory = stored.memory
    assert (memory.content, memory.category, memory.tags, memory.trust) == (FACT, "decision", ["ledger"], "high")
    assert memory.observed_at == house.clock() - timedelta(days=1)
    assert await house.texts() == []
    assert CANDIDATE.journal not in house.bytes_with("Postgres")
    [decided] = house.told("memory:decided")
    assert (decided["outcome"], decided["memory_id"]) == ("accepted", memory.id)
    with raises(UnknownIdError, "unknown_id"):
        await house.inbox.accept(held)


async def test_an_edited_text_is_the_words_of_who_edited_it(house: House) -> None:
    held = await house.hold(FACT, trust="low", source=Source(kind="tool", detail="web_fetch"))
    stored = await house.inbox.accept(held, house.caller, {"content": "The ledger is in Postgres."})
    assert (stored.memory.content, stored.memory.trust, stored.memory.source.kind) == (
        "The ledger is in Postgres.", "high", "user",
    )  # fmt: skip
    assert house.told("memory:decided")[0]["outcome"] == "edited"


async def test_a_yes_makes_a_strangers_words_no_more_than_they_were(house: House) -> None:
    held = await house.hold(FACT, trust="low", source=Source(kind="tool", detail="web_fetch"))
    assert (await house.inbox.accept(held, house.caller)).memory.trust == "low"


async def test_persons_yes_vouches_for_a_text_of_their_message_that_may_be_pasted(house: House) -> None:
    held = await house.hold(FACT, trust="low", source=Source(kind="import", detail="pasted"))
    assert (await house.inbox.accept(held, house.caller)).memory.trust == "medium"


async def test_a_no_leaves_no_byte_and_the_text_is_not_offered_again(house: House) -> None:
    held = await house.hold(FACT)
    await house.hold(OTHER)
    await house.inbox.reject([held], house.caller)
    assert await house.texts() == [OTHER]
    assert house.bytes_with("Postgres") == []
    assert await house.skipped(f" {FACT.upper()} ") == {"rejected": 1}
    outcome = await house.service.capture([seen(FACT)], house.caller)
    assert (outcome.stored, outcome.skipped) == ([], {"rejected": 1})
    assert PurgeList(house.folder).purges() == []
    assert (await house.service.store(FACT)).memory.content == FACT  # who stores it means it


async def test_what_is_known_or_waits_or_was_forgotten_does_not_wait_again(house: House) -> None:
    await house.hold(FACT)
    assert await house.skipped("We decided to use Postgres for the ledger!") == {"waiting": 1}
    kept = await house.service.store(OTHER)
    assert await house.skipped(OTHER) == {"duplicate": 1}
    await house.service.forget(kept.memory.id)
    assert await house.skipped(OTHER) == {"forgotten": 1}


async def test_a_strangers_words_that_wait_do_not_stand_for_a_persons(house: House) -> None:
    await house.hold(FACT, trust="low")
    assert await house.skipped(FACT, trust="low") == {"waiting": 1}
    assert (await house.inbox.hold([seen(f"{FACT[:-1]} now.")])).ids


async def test_secrets_do_not_wait(house: House) -> None:
    assert await house.skipped("AKIAIOSFODNN7EXAMPLE") == {"only_secret": 1}
    await house.hold("The key of the staging bucket is AKIAIOSFODNN7EXAMPLE, as decided.")
    assert house.bytes_with("AKIAIOSFODNN7EXAMPLE") == []
    assert house.told("memory:held")[0]["redacted"] != []


async def test_what_nobody_decides_on_is_dropped_after_its_time(house: House) -> None:
    await house.hold(FACT)
    house.clock.advance(days=house.settings.inbox_days)
    assert await house.texts() == []
    await house.hold(OTHER)
    assert house.bytes_with("Postgres") == []
    assert [each["outcome"] for each in house.told("memory:decided")] == ["expired"]
    assert (await house.inbox.hold([seen(FACT)])).ids  # nobody said no


async def test_waiting_note_after_its_time_is_archived_and_restorable(house: House) -> None:
    (note_id,) = (await house.inbox.hold([seen(FACT)], as_notes=True)).ids
    house.clock.advance(days=house.settings.inbox_days)
    await house.hold(OTHER)
    assert await house.texts() == [OTHER]
    assert [note.content for note in await house.inbox.archived()] == [FACT]
    (restored,) = await house.inbox.restore([note_id])
    assert restored.timestamp < house.clock()
    assert await house.texts() == [FACT, OTHER]
    assert await house.inbox.archived() == []
    house.clock.advance(days=house.settings.inbox_days - 1)
    assert await house.texts() == [FACT, OTHER]


@pytest.mark.parametrize(
    ("kind", "trust", "by_person", "by_model"),
    [("user", "medium", "high", "medium"), ("user", "low", "low", "low"), ("assistant", "medium", "medium", "medium")],
)
async def test_accept_typed_candidate_gets_high_trust_from_a_person_alone(
    house: House, kind: SourceKind, trust: Trust, by_person: Trust, by_model: Trust
) -> None:
    for content, caller, expected in ((FACT, house.caller, by_person), (OTHER, Caller("m", trust="medium"), by_model)):
        held = await house.hold(content, source=Source(kind=kind), trust=trust)
        assert (await house.inbox.accept(held, caller)).memory.trust == expected


async def test_archived_note_can_be_accepted_and_forgotten(house: House) -> None:
    ids = (await house.inbox.hold([seen(FACT), seen(OTHER)], as_notes=True)).ids
    house.clock.advance(days=house.settings.inbox_days)
    stored = await house.inbox.accept(ids[0], house.caller)
    assert stored.memory.content == FACT
    await house.inbox.reject(ids[1:], house.caller)
    assert await house.inbox.archived() == []
    assert house.bytes_with(OTHER) == []


async def test_stored_text_leaves_the_inbox(house: House) -> None:
    held = await house.hold(FACT)
    stored = await house.service.store(FACT)
    assert await house.inbox.drop_stored(stored.memory, house.caller) == [held]
    assert await house.texts() == []
    [decided] = house.told("memory:decided")
    assert (decided["outcome"], decided["memory_id"]) == ("accepted", stored.memory.id)


async def test_inbox_has_no_count_limit(house: House) -> None:
    numbers = range(520)
    await house.inbox.take_in(
        [Candidate(agent_id="bob", content=f"Fact number {number}.", is_note=True) for number in numbers]
    )
    assert (await house.inbox.hold([seen(FACT)], as_notes=True)).ids
    assert len(await house.inbox.waiting()) == len(numbers) + 1


async def test_what_is_forgotten_leaves_the_inbox_too(house: House) -> None:
    kept = await house.service.store("Our ledger is kept in Postgres by decision of the board.")
    held = await house.hold(OTHER)
    await house.inbox.take_in([(await house.inbox.get(held)).model_copy(update={"id": "cnd-0123456789ab", "content": (
        "Our ledger is kept in Postgres, by decision of the board")})])  # fmt: skip
    assert len(await house.texts()) == 2
    await house.service.forget(kept.memory.id, house.caller)
    assert await house.texts() == [OTHER]
    assert house.told("memory:decided")[0]["outcome"] == "forgotten"


async def test_a_purge_takes_a_candidate_and_all_who_say_the_same(house: House) -> None:
    held = await house.hold(FACT)
    purging = Purging(house.service)
    receipt = await purging.run(await purging.plan([held]), house.caller)
    assert receipt.is_clean
    assert await house.texts() == []
    assert house.bytes_with("Postgres") == []
    assert await house.skipped(FACT) == {"forgotten": 1}


async def test_the_doctor_knows_it(house: House, root: Path) -> None:
    await house.hold(FACT)
    assert house.inbox_findings(root) == []
    with (house.folder / CANDIDATE.journal).open("a") as file:
        file.write("--- {broken\n")
    assert house.inbox_findings(root) != []


async def test_a_yes_that_cannot_be_stored_leaves_it_waiting(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    held = await house.hold(FACT)
    with pytest.raises(ValidationError):
        await house.inbox.accept(held, house.caller, {"category": "No Such!"})

    async def fails(*_: Any, **__: Any) -> None:
        raise StorageError("disk is full")

    monkeypatch.setattr(house.service, "store", fails)
    with pytest.raises(StorageError):
        await house.inbox.accept(held)
    assert await house.texts() == [FACT]


async def test_nothing_is_made_before_something_waits(house: House) -> None:
    assert await house.inbox.waiting() == []
    assert not has_journal("bob", house.settings, CANDIDATE)
    assert not house.folder.exists()


def test_memories_on_a_server_have_no_inbox(house: House) -> None:
    house.service.settings = house.settings.model_copy(update={"backend": "server"})
    with raises(ConfigurationError, "inbox_needs_files"):
        Inbox(house.service)
    assert not has_journal("bob", house.service.settings, CANDIDATE)


async def test_who_can_read_the_list_of_rejected_texts_cannot_try_words_against_it(house: House) -> None:
    await house.inbox.reject([await house.hold(FACT)])
    others = PurgeList(house.folder)
    assert others.has_rejected(FACT)
    assert not others.has(FACT)
    (house.folder / "purge.key").unlink()
    assert not PurgeList(house.folder).has_rejected(FACT)
