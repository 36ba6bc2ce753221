"""What the modules of one session share: settings, one service, trust of the turn, an orderly end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from agent_memory.encryption import KeyFile, PersonKey
from agent_memory.errors import AgentMemoryError, ConfigurationError
from agent_memory.integrations.amplifier import MemorySession, TurnState
from agent_memory.integrations.amplifier import session as session_module
from agent_memory.journal.agent_file import PurgeState, note_purges
from agent_memory.memory import MemoryService
from agent_memory.settings import CaptureSettings, ScratchpadSettings, ToolSettings
from tests.support import coordinator_of, memory_of, raises
from tests.unit.integrations.amplifier.conftest import heard, host_of

if TYPE_CHECKING:
    from pathlib import Path

    from tests.unit.integrations.amplifier.conftest import Sessions


@pytest.fixture
def closed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the agents whose service was closed."""
    agents: list[str] = []
    close = MemoryService.close

    async def noted(self: MemoryService) -> None:
        agents.append(self.agent_id)
        await close(self)

    monkeypatch.setattr(MemoryService, "close", noted)
    return agents


def test_all_modules_of_a_session_share_one_object() -> None:
    coordinator = coordinator_of()
    assert MemorySession.of(coordinator) is MemorySession.of(coordinator)
    assert MemorySession.of(coordinator_of()) is not MemorySession.of(coordinator)


async def test_service_is_a_capability_by_its_name(root: Path) -> None:
    coordinator = coordinator_of()
    session = MemorySession.of(coordinator)
    session.configure("tool-memory-semantic", ToolSettings, {"agent_id": "bob", "storage_root": str(root)})
    assert coordinator.get_capability("agent_memory.service") is None
    assert await session.require() is coordinator.get_capability("agent_memory.service")
    await session.release()


async def test_nothing_is_opened_or_written_before_the_first_use(make_session: Sessions, root: Path) -> None:
    session = make_session(settings={"agent_id": "bob"})
    assert not root.exists()
    service = await session.require()
    assert await service.list_recent() == []
    assert not (root / "bob" / "memories.yaml").exists()


async def test_shared_settings_may_be_given_to_any_module(make_session: Sessions) -> None:
    session = make_session(settings={"agent_id": "bob"})
    session.configure("hooks-memory-capture", CaptureSettings, {"default_search_limit": 7, "agent_id": "bob"})
    assert (session.settings.default_search_limit, session.settings.agent_id) == (7, "bob")
    assert session.problem is None


async def test_two_different_values_are_an_error_that_names_both(make_session: Sessions) -> None:
    session = make_session(settings={"agent_id": "bob"})
    assert session.configure("context-memory-scratchpad", ScratchpadSettings, {"agent_id": "alice"}) is None
    with raises(ConfigurationError, "conflicting_settings") as refused:
        await session.require()
    for named in ("tool-memory-semantic", "context-memory-scratchpad", "'bob'", "'alice'", "agent_id"):
        assert named in refused.value.message
    with pytest.raises(ConfigurationError):
        await session.activate("bob")


async def test_a_conflict_does_not_tell_a_password(make_session: Sessions) -> None:
    address = "https://user:" + "pass" + "word@example.test"
    session = make_session(settings={"qdrant_url": address})
    session.configure("hooks-memory-capture", CaptureSettings, {"qdrant_url": address + "/2"})
    assert "word@" not in str(session.problem.as_dict())
    assert "word@" not in repr(session.settings)


async def test_a_wrong_value_is_the_answer_to_every_use_and_the_first_one_counts(make_session: Sessions) -> None:
    session = make_session(settings={"default_search_limit": "many", "agent_id": "bob"})
    session.configure("context-memory-scratchpad", ScratchpadSettings, {"token_budget": -1})
    for _ in range(2):
        with pytest.raises(ConfigurationError, match="default_search_limit"):
            await session.require()
    assert await session.service() is None


async def test_an_unknown_key_is_a_warning_with_the_near_name(make_session: Sessions) -> None:
    session = make_session(settings={"storage_rot": "x", "agent_id": "bob"})
    assert session.problem is None
    (warning,) = session.warnings
    assert "'storage_rot'" in warning
    assert "'storage_root'" in warning
    assert (await session.require()).agent_id == "bob"


async def test_a_storage_that_cannot_be_opened_is_told_once_and_then_answered(
    make_session: Sessions, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("x")
    session = make_session(settings={"agent_id": "bob", "storage_root": str(tmp_path / "file")})
    events = heard(session, "memory:degraded")
    for _ in range(3):
        assert await session.service() is None
    assert [event["component"] for event in events] == ["storage"]
    with pytest.raises(AgentMemoryError):
        await session.require()


async def test_a_backend_of_a_later_version_is_a_clear_error(make_session: Sessions) -> None:
    session = make_session(settings={"agent_id": "bob", "backend": "server"})
    with raises(ConfigurationError, "unsupported_backend"):
        await session.require()


async def test_a_host_that_refuses_an_event_costs_nobody_anything(make_session: Sessions) -> None:
    session = make_session(settings={"agent_id": "bob"})
    await session.conversation.emit("memory:stored", {"cannot": {"be": object()}, ("tuple", "key"): float("nan")})  # type: ignore[dict-item]
    service = await session.require()
    assert (await service.store({"content": "tea"}, session.caller)).memory.content == "tea"


async def test_events_are_declared_once_for_all_modules(make_session: Sessions) -> None:
    session = make_session()
    MemorySession.of(host_of(session))
    declared = await host_of(session).collect_contributions("observability.events")
    names = [name for names in declared for name in (names if isinstance(names, list) else [names])]
    assert "memory:stored" in names
    assert len(names) == len(set(names))
    await session.release()


@pytest.mark.parametrize("data", [{}, {"prompt": None}, {"prompt": 5}, {"prompt": ["a"]}])
async def test_odd_event_payloads_count_as_no_words(make_session: Sessions, data: dict[str, Any]) -> None:
    session = make_session()
    await host_of(session).hooks.emit("prompt:submit", data)
    await host_of(session).hooks.emit("tool:post", {"tool_name": data.get("prompt")})
    assert session.turn.prompt == ""


async def test_the_last_module_to_leave_closes_the_service(root: Path, closed: list[str]) -> None:
    coordinator = coordinator_of(config={})
    first, second = MemorySession.of(coordinator), MemorySession.of(coordinator)
    first.configure("tool", ToolSettings, {"agent_id": "bob", "storage_root": str(root), "embedder": "none"})
    leave_first, leave_second = first.leaving().aclose, second.leaving().aclose
    await first.require()
    await leave_first()
    await leave_first()
    assert closed == []
    await leave_second()
    assert closed == ["bob"]
    late = MemorySession.of(coordinator_of("child-1", parent_id="root-1"))
    assert late.taint.by == "a session of another process"
    await late.release()
    handlers = coordinator.hooks.list_handlers()
    assert not any("agent-memory" in name for names in handlers.values() for name in names)


async def test_a_child_that_ends_leaves_the_roots_service_open(make_session: Sessions, closed: list[str]) -> None:
    session = make_session("root-1", settings={"agent_id": "bob"})
    service = await session.require()
    child = MemorySession.of(coordinator_of("child-1", parent_id="root-1"))
    child.configure("tool", ToolSettings, {"storage_root": str(session.settings.storage_root), "embedder": "none"})
    assert await child.require() is service
    await child.release()
    assert (await service.store({"content": "tea"})).memory
    assert closed == []


async def test_a_switch_closes_the_memory_that_was_open(make_session: Sessions, closed: list[str]) -> None:
    session = make_session(settings={"agent_id": "bob"})
    await session.require()
    session.turn.begin("start as alice")
    await session.activate("alice")
    assert closed == ["bob"]


def test_what_the_model_was_shown_is_remembered_within_bounds() -> None:
    turn = TurnState()
    for number in range(600):
        turn.note_returned([memory_of(f"fact {number}")])
    assert len(turn.returned) == 500
    assert turn.returned[-1] == "fact 599"


def test_turn_begin_clears_the_turn_before() -> None:
    turn = TurnState()
    turn.begin("one")
    turn.stored.append("x")
    turn.begin("two")
    assert (turn.prompt, turn.prompt_before, turn.stored) == ("two", "one", [])


async def test_without_the_key_of_an_encrypted_memory_it_is_off_and_says_so_once(
    make_session: Sessions, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / "bob").mkdir(parents=True)
    KeyFile.fresh("bob", PersonKey("5e" * 32, "a test"), "encrypted")[0].write(root / "bob")
    monkeypatch.delenv("AGENT_MEMORY_KEY", raising=False)
    session = make_session(settings={"agent_id": "bob"})
    events = heard(session, "memory:degraded")
    assert await session.service() is None
    assert await session.service() is None
    assert [(event["component"], event["code"]) for event in events] == [("storage", "encrypted")]
    with raises(AgentMemoryError, "encrypted"):
        await session.require()
    assert sorted(path.name for path in (root / "bob").iterdir()) == ["encryption.json"]


async def test_the_key_of_an_encrypted_memory_comes_from_where_the_settings_say(
    make_session: Sessions, root: Path, tmp_path: Path
) -> None:
    (root / "bob").mkdir(parents=True)
    KeyFile.fresh("bob", PersonKey("5e" * 32, "a test"), "encrypted")[0].write(root / "bob")
    (tmp_path / "key").write_text("5e" * 32)
    session = make_session(settings={"agent_id": "bob", "encryption": {"key_file": str(tmp_path / "key")}})
    service = await session.require()
    await service.store("The harbour opens at nine.", session.caller)
    assert b"harbour" not in (root / "bob" / "memories.yaml").read_bytes()
    assert (await service.status(session.caller)).encrypted


async def test_lost_purge_list_turns_memory_off_and_says_so_once(make_session: Sessions, root: Path) -> None:
    (root / "bob").mkdir(parents=True)
    note_purges(root / "bob", PurgeState(2, "a purge", "0" * 16))
    session = make_session(settings={"agent_id": "bob"})
    events = heard(session, "memory:degraded")
    for _ in range(3):
        assert await session.service() is None
    assert [(event["component"], event["code"]) for event in events] == [("storage", "purge_list")]
    with raises(AgentMemoryError, "purge_list"):
        await session.require()
    assert not (root / "bob" / "memories.yaml").exists()


async def test_session_settings_are_resolved_once(make_session: Sessions, monkeypatch: pytest.MonkeyPatch) -> None:
    session = make_session(settings={"agent_id": "bob"})
    await session.require()
    merged: list[object] = []
    monkeypatch.setattr(session_module, "merge_shared", lambda given, **_: merged.append(given))
    service = await session.require()
    assert session.caller.session_id == "root-1"
    assert (session.identity().agent_id, service.settings is session.settings) == ("bob", True)
    assert merged == []


async def test_second_prompt_warms_memory_up(make_session: Sessions, monkeypatch: pytest.MonkeyPatch) -> None:
    warm_ups = list[MemoryService]()
    monkeypatch.setattr(MemoryService, "warm_up", lambda service: warm_ups.extend([service]))
    session = make_session(settings={"agent_id": "bob"})
    await host_of(session).hooks.emit("prompt:submit", {"prompt": "Hi."})
    service = await session.require()
    assert warm_ups == []
    await host_of(session).hooks.emit("prompt:submit", {"prompt": "What is due?"})
    assert warm_ups == [service]
