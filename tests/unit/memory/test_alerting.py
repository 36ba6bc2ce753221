"""What turned bad in a session is told once for each time, behind what the session does."""

from __future__ import annotations

from enum import IntEnum
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agent_memory.memory import Caller, MemoryService
    from tests.support import FrozenClock
    from tests.unit.memory.conftest import Listener


class Level(IntEnum):
    """As those of a check."""

    OK, WARNING, CRITICAL, UNKNOWN = range(4)


class Looks:
    """Says what it is told to, and counts how often it was asked."""

    def __init__(self, **levels: Level) -> None:
        self.levels, self.count = levels, 0

    async def __call__(self, caller: Caller) -> list[Any]:
        self.count += 1
        return [
            SimpleNamespace(code=code, level=level, sentence=f"{code} is {level.name}.", advice="Do it.")
            for code, level in self.levels.items()
        ]


async def _act(service: MemoryService, listener: Listener) -> list[str]:
    """Search once, wait for what that begins, and return which checks were told until now."""
    await service.search("ledger", caller=listener.caller)
    await service.settle()
    return [f"{data['check']} {data['level']}" for data in listener.of("memory:alert")]


async def test_without_a_look_nothing_is_told(service: MemoryService, listener: Listener) -> None:
    assert await _act(service, listener) == []
    assert "alerts" not in (await service.status(listener.caller)).health


async def test_it_is_told_once_and_again_when_it_has_been_well_in_between(
    service: MemoryService, listener: Listener, clock: FrozenClock
) -> None:
    looks = Looks(disk=Level.WARNING, files=Level.OK)
    service.monitor.set_checks(looks)
    assert await _act(service, listener) == ["disk warning"]
    clock.advance(minutes=10)
    assert await _act(service, listener) == ["disk warning"]
    looks.levels = {"disk": Level.OK}
    clock.advance(minutes=10)
    assert await _act(service, listener) == ["disk warning"]
    looks.levels = {"disk": Level.WARNING}
    clock.advance(minutes=10)
    assert await _act(service, listener) == ["disk warning", "disk warning"]


async def test_what_gets_worse_is_told_and_what_gets_better_or_is_unknown_is_not(
    service: MemoryService, listener: Listener, clock: FrozenClock
) -> None:
    looks = Looks()
    service.monitor.set_checks(looks)
    for level in (Level.WARNING, Level.CRITICAL, Level.WARNING, Level.UNKNOWN):
        looks.levels = {"disk": level}
        clock.advance(minutes=10)
        told = await _act(service, listener)
    assert told == ["disk warning", "disk critical"]


async def test_a_look_is_ten_minutes_apart_from_the_next(
    service: MemoryService, listener: Listener, clock: FrozenClock
) -> None:
    looks = Looks(disk=Level.WARNING)
    service.monitor.set_checks(looks)
    for minutes, count in ((0, 1), (9, 1), (1, 2), (-30, 3)):
        clock.advance(minutes=minutes)
        await _act(service, listener)
        await service.store({"content": f"At {clock()}"}, listener.caller)
        await service.settle()
        assert looks.count == count


async def test_the_status_tells_what_is_bad_with_what_to_do(service: MemoryService, listener: Listener) -> None:
    service.monitor.set_checks(Looks(disk=Level.CRITICAL))
    health = (await service.status(listener.caller)).health
    assert health["status"] == "attention"
    assert health["alerts"] == [
        {"check": "disk", "level": "critical", "message": "disk is CRITICAL.", "advice": "Do it."}
    ]
    assert [data["check"] for data in listener.of("memory:alert")] == ["disk"]


async def test_times_of_twenty_calls_are_known_and_of_fewer_not(service: MemoryService, listener: Listener) -> None:
    for _ in range(19):
        await service.search("ledger", caller=listener.caller)
    assert service.monitor.list_durations() == {}
    await service.search("ledger", caller=listener.caller)
    await service.store("One store is not enough.", listener.caller)
    times = service.monitor.list_durations()
    assert list(times) == ["searches"]
    assert len(times["searches"]) == 20
    assert all(each > 0 for each in times["searches"])


async def test_only_the_last_two_hundred_times_are_kept(service: MemoryService, listener: Listener) -> None:
    for place in range(300):
        service.monitor.note_duration("searches", float(place), listener.caller)
    assert service.monitor.list_durations() == {"searches": [float(place) for place in range(100, 300)]}
