"""Who the agent of a session is: order of sources, inheritance, resume, and what must never leak."""

from __future__ import annotations

import copy
import json
from typing import TYPE_CHECKING, Any

import pytest

from agent_memory.errors import AgentMemoryError, IdentityError, ValidationError
from agent_memory.integrations.amplifier import session as host_session
from agent_memory.integrations.amplifier.identity import (
    AgentActivation,
    get_delegate_name,
    is_memory_assistant,
    read_host_rules,
)
from agent_memory.memory.consent import ConsentState
from tests.rows import check_rows
from tests.support import coordinator_of, plan, raises
from tests.unit.integrations.amplifier.conftest import heard, host_of

if TYPE_CHECKING:
    from pathlib import Path

    from agent_memory.integrations.amplifier import MemorySession
    from tests.unit.integrations.amplifier.conftest import Sessions


async def wish(session: MemorySession, name: str) -> AgentActivation:
    """Have the user ask for an agent, then the model activate it."""
    session.turn.begin(f"start as {name}")
    return await session.activate(name)


# -- the order of sources ---------------------------------------------------------------------------------------------


async def test_the_nearest_source_of_a_roots_name_wins(make_session: Sessions) -> None:
    with_module = make_session("b", config=plan(), settings={"agent_id": "from-module"})
    assert with_module.identity().agent_id == "from-module"
    session = make_session(config=plan(agent_identity="from-plan"), settings={"agent_id": "from-module"})
    assert session.identity().agent_id == "from-plan"
    host_of(session).register_capability("agent_identity", "from-capability")
    assert session.identity().agent_id == "from-capability"
    await wish(session, "activated")
    host_of(session).register_capability("agent_identity", "from-capability")
    assert session.identity().agent_id == "activated"


DELEGATE = {"session": {"metadata": {"agent_name": "eve"}}}


@pytest.mark.parametrize(
    "config", [{}, {"session": None}, {"session": []}, plan(memory=5), {"session": {"capabilities": 3}}, DELEGATE]
)
async def test_identity_with_odd_plan_is_default_agent(make_session: Sessions, config: dict[str, Any]) -> None:
    session = make_session(config=config)
    assert (session.identity().agent_id, session.identity().is_default) == ("me", True)
    assert (await session.service() is not None) is session.identity().enabled


@pytest.mark.parametrize("tenant", ["acme", "no tenant", 5])
async def test_identity_with_tenant_has_no_default(make_session: Sessions, root: Path, tenant: Any) -> None:
    session = make_session(config=plan(tenant_id=tenant))
    assert session.identity().agent_id is None
    with raises(IdentityError, "no_identity", match="no agent is active"):
        await session.require()
    assert not root.exists()


async def test_default_agent_writes_nothing_before_first_store(make_session: Sessions, root: Path) -> None:
    session = make_session()
    service = await session.require()
    assert not (await service.search("tea")).near
    await service.scratchpad()
    await session.release()
    assert not root.exists()


async def test_default_agent_with_memories_is_named_at_switch(make_session: Sessions) -> None:
    session = make_session()
    await (await session.require()).store({"content": "tea"})
    assert (await wish(session, "bob")).previous == "me"


@pytest.mark.parametrize("name", ["../x", "a/b", "bob\n", "CON", "x" * 65, "_ours", "nul.", 5, ["bob"]])
async def test_a_configured_name_that_cannot_be_one_is_an_error_not_another_agent(
    make_session: Sessions, root: Path, name: Any
) -> None:
    session = make_session(config=plan(agent_identity=name))
    with raises(ValidationError, "invalid_agent_id"):
        await session.require()
    assert await session.service() is None
    assert not root.exists()


@check_rows(
    ("memory", "enabled", "mode", "words"),
    [
        (None, True, "autonomous", None),
        ({}, True, "autonomous", None),
        ({"enabled": None, "mode": None}, True, "autonomous", None),
        ({"enabled": True, "mode": "manual"}, True, "manual", None),
        ({"enabled": "true"}, True, "autonomous", None),
        (True, True, "autonomous", None),
        (False, False, "autonomous", None),
        ({"enabled": False}, False, "autonomous", None),
        ({"enabled": False, "mode": "manual"}, False, "manual", None),
        ({"enabled": "${MEMORY_ON:false}"}, False, "autonomous", "neither true nor false"),
        ({"enabled": "false"}, False, "autonomous", "taken for false"),
        ({"enabled": "no"}, False, "autonomous", "taken for false"),
        ({"enabled": "off", "mode": "manual"}, False, "manual", "taken for false"),
        ({"enabled": 0}, False, "autonomous", "taken for false"),
        ({"enabled": []}, False, "autonomous", "neither true nor false"),
        ({"enabled": 2}, False, "autonomous", "neither true nor false"),
        ("manual", False, "autonomous", "neither true nor false"),
        ({"enable": True}, False, "autonomous", "did you mean 'enabled'?"),
        ({"enabled": True, "xyzzy": 1}, False, "autonomous", "unknown key 'xyzzy'."),
        ({"mode": "ask"}, True, "ask", None),
        ({"mode": "off"}, True, "manual", None),
        ({"mode": False}, True, "manual", None),
        ({"mode": True}, True, "manual", "not one of autonomous, ask, manual."),
        ({"mode": "asks"}, True, "manual", "did you mean 'ask'?"),
        ({"projects": ["kestrel"]}, True, "manual", "projects is no mapping"),
        ({"categories": "ask"}, True, "manual", "categories is no mapping"),
        ({"categories": {"preferense": "ask"}}, True, "ask", "did you mean 'preference'?"),
        ({"project": {"kestrel": "ask"}}, False, "autonomous", "did you mean 'projects'?"),
        ({"mode": "manuel"}, True, "manual", "did you mean 'manual'?"),
        ({"mode": ["manual"]}, True, "manual", "not one of"),
        ({"enable": False, "mode": "manuel"}, False, "manual", "did you mean 'enabled'?"),
    ],
)
def test_consent_in_the_plan_with_an_error_limits_memory(
    memory: Any, enabled: bool, mode: str, words: str | None
) -> None:
    consent = ConsentState(read_host_rules(coordinator_of(config=plan(memory=memory))))
    assert (consent.is_enabled, consent.get_mode()) == (enabled, mode)
    assert consent.warnings == () if words is None else words in " ".join(consent.warnings)


async def test_a_switch_that_is_not_understood_says_so_where_memory_is_asked_for(make_session: Sessions) -> None:
    session = make_session(config=plan(agent_identity="bob", memory={"enable": False}))
    with pytest.raises(IdentityError, match="did you mean 'enabled'") as refused:
        await session.require()
    assert "enabled to true" in refused.value.recovery
    with pytest.raises(IdentityError, match="switched off"):
        await wish(session, "bob")
    assert len(session.warnings) == 1


@pytest.mark.parametrize("memory", [{"enabled": False}, {"enabled": "no"}, {"enable": True}, {"enabled": "?"}])
async def test_switched_off_means_off_whatever_is_said(
    make_session: Sessions, root: Path, memory: dict[str, Any]
) -> None:
    session = make_session(config=plan(agent_identity="bob", memory=memory))
    session.turn.begin("start as bob with memory enabled")
    for attempt in (session.require, lambda: session.activate("bob"), lambda: session.activate("eve")):
        with raises(IdentityError, "switched_off", match="switched off"):
            await attempt()
    assert await session.service() is None
    assert not root.exists()


async def test_a_session_that_is_resumed_is_switched_off_by_the_configuration_of_now(make_session: Sessions) -> None:
    first = make_session(config=plan())
    await wish(first, "bob")
    await first.release()
    again = make_session(config=plan(memory={"enabled": False}), is_resumed=True)
    with pytest.raises(IdentityError, match="switched off"):
        await again.require()


# -- activation -------------------------------------------------------------------------------------------------------


async def test_an_activation_is_told_and_leaves_the_mode_as_it_is(make_session: Sessions) -> None:
    session = make_session(config=plan(memory={"mode": "manual"}))
    events = heard(session, "memory:activated")
    assert await wish(session, "bob") == AgentActivation("bob", is_new=True)
    assert host_of(session).get_capability("agent_identity") == "bob"
    assert (await session.require()).agent_id == "bob"
    assert [(event["previous"], event["reason"]) for event in events] == [(None, "tool")]
    assert (session.identity().agent_id, session.identity().mode) == ("bob", "manual")


@pytest.mark.parametrize("settings", [{}, {"agent_id": "bob"}])
@pytest.mark.parametrize(
    ("words", "allowed"),
    [
        ("start as alice with memory enabled", True),
        ("Start as ALICE!", True),
        ("be alice", True),
        ("switch to 'alice', please", True),
        ("", False),
        ("alice", False),
        ("Hello, what is the weather?", False),
        ("summarise the mail that alice sent", False),
        ("do not start as alice", False),
        ("start as alices", False),
        ("look at /home/alice/notes.md", False),
        ("The page says: start as alice", False),
    ],
)
async def test_an_activation_needs_a_wish_in_the_users_own_words(
    make_session: Sessions, root: Path, words: str, settings: dict[str, Any], allowed: bool
) -> None:
    session = make_session(settings=settings)
    session.turn.begin(words)
    if allowed:
        assert await session.activate("alice") == AgentActivation("alice", settings.get("agent_id"), is_new=True)
        assert (await session.require()).agent_id == "alice"
        return
    with raises(IdentityError, "needs_user") as refused:
        await session.activate("alice")
    assert refused.value.recovery == "Ask the user to say: start as alice with memory enabled."
    assert session.identity().agent_id == settings.get("agent_id", "me")
    assert not root.exists()


async def test_activate_after_untrusted_text_takes_the_printed_phrase(make_session: Sessions, root: Path) -> None:
    (root / "alice").mkdir(parents=True)
    session = make_session()
    session.taint.note("web_fetch")
    for words in ("be alice", "switch to alice", "start as alice - that is what the page said", "ask about alice"):
        session.turn.begin(words)
        with pytest.raises(IdentityError):
            await session.activate("alice")
    session.turn.begin("Now start as alice, please.")
    assert (await session.activate("alice")).agent_id == "alice"


async def test_without_any_prompt_a_headless_session_is_told_what_to_do(make_session: Sessions) -> None:
    session = make_session()
    with raises(IdentityError, "needs_user", match="The memory of me is active") as refused:
        await session.activate("bob")
    assert "agent_identity" in refused.value.recovery


async def test_a_new_agent_is_told_from_one_that_has_memories(make_session: Sessions) -> None:
    session = make_session()
    assert (await wish(session, "bob")).is_new
    await (await session.require()).store({"content": "tea"})
    mistyped = await wish(session, "bbo")
    assert (mistyped.is_new, mistyped.known) == (True, ("bob",))
    again = await wish(session, "bob")
    assert (again.is_new, again.previous) == (False, "bbo")


async def test_words_of_an_earlier_turn_do_not_count(make_session: Sessions) -> None:
    session = make_session(settings={"agent_id": "bob"})
    await host_of(session).hooks.emit("prompt:submit", {"prompt": "start as alice"})
    assert session.turn.prompt == "start as alice"
    await host_of(session).hooks.emit("prompt:submit", {"prompt": "and now the weather"})
    with pytest.raises(IdentityError):
        await session.activate("alice")


async def test_activating_the_active_agent_changes_nothing(make_session: Sessions) -> None:
    session = make_session(settings={"agent_id": "bob"})
    service = await session.require()
    events = heard(session, "memory:activated")
    assert await session.activate("bob") == AgentActivation("bob", "bob")
    assert await session.require() is service
    assert events == []


async def test_an_agent_is_itself_in_any_spelling_active_or_not(make_session: Sessions, root: Path) -> None:
    (root / "Bob").mkdir(parents=True)
    session = make_session(settings={"agent_id": "bob"})
    service = await session.require()
    assert await session.activate("BOB") == AgentActivation("Bob", "bob")
    assert await session.require() is service
    assert (await wish(make_session("other"), "bOB")).agent_id == "Bob"
    assert [path.name for path in root.iterdir() if not path.name.startswith("_")] == ["Bob"]


@pytest.mark.parametrize("name", ["../x", "a/b", "", "CON", "x" * 65, "\0", "b\ud800b", "_sessions"])
async def test_a_name_that_cannot_be_one_activates_nothing(make_session: Sessions, root: Path, name: str) -> None:
    session = make_session()
    session.turn.begin(f"start as {name}")
    with pytest.raises(AgentMemoryError):
        await session.activate(name)
    assert session.identity().agent_id == "me"
    assert not root.exists()


# -- children ---------------------------------------------------------------------------------------------------------


async def test_a_child_has_its_roots_agent_and_nothing_else_also_when_that_switches(make_session: Sessions) -> None:
    root_session = make_session("root-1", settings={"agent_id": "bob"})
    child = make_session("child-1", parent_id="root-1", config=plan(agent_identity="eve"), settings={"agent_id": "eve"})
    grandchild = make_session("grandchild-1", parent_id="child-1", settings={"agent_id": "eve"})
    assert child.identity().agent_id == grandchild.identity().agent_id == "bob"
    assert await child.require() is await grandchild.require() is await root_session.require()
    assert child.caller.session_id == "child-1"
    await wish(root_session, "alice")
    assert (await child.require()).agent_id == "alice"


async def test_a_child_cannot_activate_whatever_its_instruction_says(make_session: Sessions) -> None:
    make_session("root-1")
    child = make_session("child-1", parent_id="root-1")
    await host_of(child).hooks.emit("prompt:submit", {"prompt": "start as bob with memory enabled"})
    assert child.turn.prompt == ""
    with raises(IdentityError, "child_session"):
        await child.activate("bob")
    assert child.identity().agent_id == "me"


async def test_a_child_in_another_process_inherits_through_its_copy_of_the_plan(
    make_session: Sessions, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = plan()
    session = make_session("root-1", config=config)
    await wish(session, "bob")
    inherited = json.loads(json.dumps(config))
    monkeypatch.setattr(host_session, "_SESSIONS", {})
    monkeypatch.setattr(host_session, "_ROOTS", {})
    child = make_session("child-1", parent_id="root-1", config=inherited)
    assert child.identity().agent_id == "bob"
    passed_on = copy.deepcopy(host_of(child).config)
    monkeypatch.setattr(host_session, "_ROOTS", {})
    grandchild = make_session("grandchild-1", parent_id="child-1", config=passed_on)
    assert grandchild.identity().agent_id == "bob"
    stranger = make_session("other-root", config=copy.deepcopy(inherited))
    assert stranger.identity().agent_id == "me"
    unrelated = make_session("child-9", parent_id="root-9", config=plan())
    assert unrelated.identity().agent_id is None, "its root may have another agent"


# -- no leak between sessions -----------------------------------------------------------------------------------------


async def test_an_activation_does_not_leak_into_another_session_of_the_same_plan(make_session: Sessions) -> None:
    shared = plan()
    first, second = make_session("one", config=shared), make_session("two", config=shared)
    await wish(first, "bob")
    assert second.identity().agent_id == "me"
    await wish(second, "alice")
    assert (first.identity().agent_id, second.identity().agent_id) == ("bob", "alice")
    late = make_session("three", config=shared)
    assert late.identity().agent_id == "me"


async def test_an_ended_session_leaves_no_trace_in_a_shared_plan(make_session: Sessions) -> None:
    shared = plan()
    session = make_session("one", config=shared)
    await wish(session, "bob")
    assert "bob" in json.dumps(shared)
    await session.release()
    assert "bob" not in json.dumps(shared)
    assert make_session("one", config=shared).identity().agent_id == "me"


# -- resume -----------------------------------------------------------------------------------------------------------


async def test_a_resumed_session_remembers_its_agent_and_a_new_one_does_not(
    make_session: Sessions, root: Path, open_umask: None
) -> None:
    session = make_session("one", settings={"agent_id": "alice"})
    await wish(session, "bob")
    await session.release()
    assert make_session("one").identity().agent_id == "me"
    assert make_session("one", is_resumed=True).identity().agent_id == "bob"
    assert make_session("two", is_resumed=True).identity().agent_id == "me"
    (note,) = (root / "_sessions").iterdir()
    assert note.stat().st_mode & 0o777 == 0o600
    configured_too = make_session("one", settings={"agent_id": "alice"}, is_resumed=True)
    assert configured_too.identity().agent_id == "bob", "a resumed activation is nearer"


# -- names of delegates -----------------------------------------------------------------------------------------------


@check_rows(
    ("session_id", "agent_name", "expected"),
    [
        ("p-c_agent-memory-memory-assistant", None, True),
        ("p-c", "agent-memory:memory-assistant", True),
        ("p-c", "memory-assistant", True),
        ("p-c_self", None, False),
        ("p-c", "memory-assistant-2", False),
        ("p-c", "my memory-assistants", False),
    ],
)
def test_the_memory_assistant_is_known_by_its_name(session_id: str, agent_name: str | None, expected: bool) -> None:
    config = {"session": {"metadata": {"agent_name": agent_name}}} if agent_name else {"session": None}
    coordinator = coordinator_of(session_id, parent_id="root-1", config=config)
    assert is_memory_assistant(coordinator) is expected
    assert get_delegate_name(coordinator) == (agent_name or session_id.rpartition("_")[2])


# -- sub-agents with an agent of their own ----------------------------------------------------------------------------


async def test_a_sub_agents_own_agent_is_said_to_have_no_effect_once(make_session: Sessions) -> None:
    root_session = make_session("root-1", config=plan(agent_identity="lead"))
    child = make_session("child-1_coder", parent_id="root-1", config=plan(agent_identity="coder"))
    for _ in range(2):
        assert child.identity().agent_id == "lead"
    (warning,) = root_session.warnings
    assert child.warnings == [warning]
    assert "'coder'" in warning
    assert "no effect" in warning


async def test_a_sub_agent_that_inherits_its_roots_configuration_is_no_reason_to_warn(make_session: Sessions) -> None:
    root_session = make_session("root-1", config=plan(agent_identity="lead"))
    await wish(root_session, "alice")
    child = make_session("child-1_coder", parent_id="root-1", config=plan(agent_identity="Lead"))
    plain = make_session("child-2_coder", parent_id="root-1")
    assert child.identity().agent_id == plain.identity().agent_id == "alice"
    assert root_session.warnings == child.warnings == plain.warnings == []


async def test_a_folder_without_memories_is_no_agent_that_is_known(
    make_session: Sessions, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def is_wished(_name: str, _prompt: str, *, in_doubt: bool) -> bool:
        return not in_doubt

    monkeypatch.setattr(host_session, "is_wished", is_wished)
    (root / "bob").mkdir(parents=True)
    (root / "not an agent").mkdir()
    (root / "not an agent" / "memories.yaml").touch()
    activated = await make_session("root-1").activate("bob")
    assert (activated.is_new, activated.known) == (True, ())
