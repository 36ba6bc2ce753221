"""What may be stored in a session: every source limits, the strictest counts, and a request holds for the session."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pytest

from agent_memory.errors import IdentityError, ValidationError
from agent_memory.memory import consent
from agent_memory.tools.consent import check_not_stopped, get_mode
from tests.support import plan, raises
from tests.unit.integrations.amplifier.conftest import host_of

if TYPE_CHECKING:
    from pathlib import Path

    from agent_memory.integrations.amplifier import MemorySession
    from tests.unit.integrations.amplifier.conftest import Sessions

STOP = "Please don't store any of this conversation."


async def say(session: MemorySession, prompt: Any) -> None:
    await host_of(session).hooks.emit("prompt:submit", {"prompt": prompt})


def with_module(module: str, **config: Any) -> dict[str, Any]:
    section = "hooks" if module.startswith("hooks") else "tools"
    return {**plan(agent_identity="bob"), section: [{"module": module, "config": config}]}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "kestrel"
    (folder / ".git").mkdir(parents=True)
    return folder


def work_in(session: MemorySession, folder: Path) -> None:
    host_of(session).register_capability("session.working_dir", str(folder))


# -- settings of modules ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("module", consent.MODULES)
async def test_limit_of_any_module_holds_for_the_session(make_session: Sessions, module: str) -> None:
    session = make_session(config=with_module(module, mode="ask", categories={"note": "manual"}))
    assert (get_mode(session), get_mode(session, "note")) == ("ask", "manual")
    assert session.identity().consent.decided_by() == f"the configuration of {module}"


async def test_limits_of_several_sources_take_the_strictest(make_session: Sessions) -> None:
    config = with_module("hooks-memory-capture", mode="manual")
    config["session"]["capabilities"]["memory"] = {"mode": "autonomous"}
    assert get_mode(make_session(config=config, settings={"mode": "ask"})) == "manual"


async def test_module_that_is_disabled_switches_memory_off(make_session: Sessions, root: Path) -> None:
    session = make_session(settings={"agent_id": "bob", "enabled": False})
    assert session.consent.is_switched_off(session.settings)
    with raises(IdentityError, "switched_off", match="configuration of tool-memory-semantic"):
        await session.require()
    assert not root.exists()


async def test_projects_setting_limits_only_as_mapping(make_session: Sessions, project: Path) -> None:
    limited = make_session(settings={"agent_id": "bob", "projects": {"Kestrel": "manual"}})
    unnoted = make_session("other", settings={"agent_id": "bob", "projects": False})
    for session in (limited, unnoted):
        work_in(session, project)
    assert (get_mode(limited), get_mode(unnoted)) == ("manual", "autonomous")
    assert not unnoted.settings.projects


async def test_misspelt_module_limit_switches_off_and_is_reported(make_session: Sessions) -> None:
    session = make_session(settings={"agent_id": "bob", "enable": False})
    with raises(IdentityError, "switched_off", match="did you mean 'enabled'"):
        await session.require()


async def test_place_of_a_module_setting_is_file_and_line(make_session: Sessions, home: Path) -> None:
    (home / ".amplifier").mkdir()
    (home / ".amplifier" / "settings.yaml").write_text(
        "overrides:\n  hooks-memory-capture:\n    config:\n      mode: ask\n"
    )
    session = make_session(config=with_module("hooks-memory-capture", mode="ask"))
    assert session.identity().consent.decided_by() == "~/.amplifier/settings.yaml:4"


async def test_session_block_in_settings_is_warned_about_once(make_session: Sessions, home: Path) -> None:
    (home / ".amplifier").mkdir()
    (home / ".amplifier" / "settings.yaml").write_text("session:\n  capabilities:\n    memory: {enabled: false}\n")
    session = make_session(settings={"agent_id": "bob"})
    assert session.identity().enabled
    assert session.identity().enabled
    (warning,) = session.warnings
    assert warning.startswith("~/.amplifier/settings.yaml:3: session.capabilities.memory has no effect")


@pytest.mark.parametrize("mode", ["manual", "ask"])
async def test_memory_on_restores_configured_mode(make_session: Sessions, mode: str) -> None:
    session = make_session(settings={"agent_id": "bob", "mode": mode})
    for prompt, expected in (("memory off", "stopped"), ("memory on", mode), ("memory on", mode)):
        await say(session, prompt)
        assert get_mode(session) == expected


# -- files ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("place", ["", "bob"])
async def test_consent_file_limits_at_once_with_its_line(make_session: Sessions, root: Path, place: str) -> None:
    session = make_session(settings={"agent_id": "bob"})
    assert get_mode(session) == "autonomous"
    (root / place).mkdir(parents=True, exist_ok=True)
    (root / place / "consent.yaml").write_text("enabled: true\nmode: manual\n")
    assert session.identity().consent.decided_by() == f"{root / place / 'consent.yaml'}:2"
    assert get_mode(session) == "manual"
    (root / place / "consent.yaml").write_text("enabled: false\n")
    with pytest.raises(IdentityError, match="switched off"):
        await session.require()


async def test_identity_without_a_change_is_the_same_object(make_session: Sessions, root: Path) -> None:
    session = make_session(settings={"agent_id": "bob"})
    child = make_session("root-1-c_coder", parent_id="root-1", settings={"agent_id": "bob"})
    before = session.identity(), child.identity()
    await say(session, "Good morning.")
    await session.require()
    resolved = session.identity(), child.identity()
    assert before == resolved
    await session.require()
    assert (session.identity(), child.identity()) == resolved
    assert session.identity() is session.current_identity is resolved[0]
    assert child.current_identity is resolved[1]


async def test_consent_file_of_same_size_and_time_is_read_again(make_session: Sessions, root: Path) -> None:
    session = make_session(settings={"agent_id": "bob"})
    root.mkdir()
    file = root / "consent.yaml"
    file.write_text("enabled: true\n")
    status = file.stat()
    child = make_session("root-1-c_coder", parent_id="root-1", settings={"agent_id": "bob"})
    assert (session.identity().enabled, child.identity().enabled) == (True, True)
    file.write_text("enabled: 'no'\n")
    os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert file.stat().st_size == status.st_size
    assert (child.identity().enabled, session.identity().enabled) == (False, False)


async def test_broken_link_to_a_policy_after_the_first_use_is_seen(
    make_session: Sessions, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    policy = tmp_path / "policy.yaml"
    session = make_session(settings={"agent_id": "bob"})
    monkeypatch.setattr(session.consent, "_files", consent.ConsentFiles(policy))
    assert session.identity().enabled
    policy.symlink_to(tmp_path / "missing.yaml")
    assert not session.identity().enabled
    policy.unlink()
    assert session.identity().enabled


@pytest.mark.parametrize(
    "text", ["mode: [", "a: &x 1\nb: *x", "5", "enabled: maybe", "mod: ask", "mode: asks", "\udcff", "x" * 2_000_000]
)
async def test_policy_with_an_error_switches_memory_off(
    make_session: Sessions, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    policy = tmp_path / "policy.yaml"
    policy.write_text(text, errors="surrogateescape")
    session = make_session(settings={"agent_id": "bob"})
    monkeypatch.setattr(session.consent, "_files", consent.ConsentFiles(policy))
    with raises(IdentityError, "switched_off", match=r"policy\.yaml"):
        await session.require()


async def test_policy_limits_and_is_not_widened(
    make_session: Sessions, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    policy = tmp_path / "policy.yaml"
    policy.write_text("categories:\n  note: manual\nmode: ask\n")
    root.mkdir(exist_ok=True)
    (root / "consent.yaml").write_text("mode: autonomous\ncategories: {note: autonomous}\n")
    session = make_session(settings={"agent_id": "bob"})
    monkeypatch.setattr(session.consent, "_files", consent.ConsentFiles(policy))
    assert (get_mode(session), get_mode(session, "note")) == ("ask", "manual")
    assert session.identity().consent.decided_by("note") == f"{policy}:2"


@pytest.mark.parametrize(
    ("text", "mode", "enabled"),
    [
        ("mode: manual\n", "manual", True),
        ("mode: autonomous\n", "ask", True),
        ("enabled: false\n", "ask", False),
        ("hosts: [claude-code]\n", "ask", False),
        ("hosts: [Amplifier, claude-code]\n", "ask", True),
        ("retain_days: 7\n", "ask", True),
        ("retain_days: 6\n", "stopped", True),
        ("retain_days: true\n", "stopped", True),
        ("hosts: 5\n", "stopped", True),
        ("projects: {x: ask}\n", "stopped", True),
        ("mode: asks\n", "stopped", True),
        ("mode: [\n", "stopped", True),
        ("- a\n", "stopped", True),
    ],
)
async def test_file_of_a_project_only_narrows(
    make_session: Sessions, project: Path, text: str, mode: str, enabled: bool
) -> None:
    session = make_session(settings={"agent_id": "bob", "mode": "ask"})
    (project / ".agent-memory.yaml").write_text(text)
    assert get_mode(session) == "ask", "it works elsewhere"
    work_in(session, project / "src")
    (project / "src").mkdir()
    assert (get_mode(session), session.identity().enabled) == (mode, enabled)
    assert len(session.warnings) == (mode == "stopped")


def test_project_file_with_broken_link_stops_storing(make_session: Sessions, project: Path) -> None:
    session = make_session(settings={"agent_id": "bob"})
    (project / ".agent-memory.yaml").symlink_to(project / "missing.yaml")
    work_in(session, project)
    assert get_mode(session) == "stopped"


async def test_project_with_an_error_still_shows_memories(make_session: Sessions, project: Path) -> None:
    session = make_session(settings={"agent_id": "bob"})
    await (await session.require()).store({"content": "tea"})
    (project / ".agent-memory.yaml").write_text("retain_days: x\n")
    work_in(session, project)
    with raises(ValidationError, "stopped", match=r"stored before stay"):
        check_not_stopped(session)
    assert len(await (await session.require()).list_recent(5)) == 1


# -- what the user says -----------------------------------------------------------------------------------------------


async def test_request_stops_storing_until_it_is_lifted(make_session: Sessions) -> None:
    session = make_session(settings={"agent_id": "bob", "mode": "ask"})
    await say(session, STOP)
    assert get_mode(session) == "stopped"
    await say(session, "We decided to move to Kubernetes.")
    with raises(ValidationError, "stopped") as refused:
        check_not_stopped(session)
    assert "you can store again" in refused.value.recovery
    await say(session, "You can store again.")
    assert get_mode(session) == "ask", "the configured mode, and no more"


async def test_request_in_a_list_of_blocks_is_heard(make_session: Sessions) -> None:
    session = make_session(settings={"agent_id": "bob"})
    await say(session, [{"type": "text", "text": STOP}])
    assert get_mode(session) == "stopped"


@pytest.mark.parametrize("agent", [{"agent_id": "bob"}, {}])
async def test_request_holds_after_a_resume(make_session: Sessions, agent: dict[str, str]) -> None:
    first = make_session(settings=agent)
    await say(first, STOP)
    await first.release()
    again = make_session(settings={"agent_id": "bob"}, is_resumed=True)
    assert get_mode(again) == "stopped"
    await say(again, "You can store again.")
    await again.release()
    assert get_mode(make_session(settings={"agent_id": "bob"}, is_resumed=True)) == "autonomous"


async def test_request_before_first_use_survives_a_resume(make_session: Sessions) -> None:
    first = make_session(settings={"agent_id": "bob"})
    await say(first, STOP)
    await first.release()
    again = make_session(settings={"agent_id": "bob"}, is_resumed=True)
    await say(again, "Good morning.")
    assert again.consent.is_stopped


async def test_request_holds_in_sub_sessions_here_and_elsewhere(make_session: Sessions) -> None:
    root_session = make_session(settings={"agent_id": "bob"})
    child = make_session("root-1-c_coder", parent_id="root-1", settings={"agent_id": "bob"})
    await say(root_session, STOP)
    assert get_mode(child) == "stopped"
    await child.release()
    await root_session.release()
    elsewhere = make_session("root-1-d_coder", parent_id="root-1", settings={"agent_id": "bob"})
    assert get_mode(elsewhere) == "stopped"
    await elsewhere.release()
    below = make_session("root-1-e_coder", parent_id="root-1-d_coder", settings={"agent_id": "bob"})
    assert get_mode(below) == "stopped"


async def test_instruction_of_sub_session_is_not_a_request(make_session: Sessions) -> None:
    root_session = make_session(settings={"agent_id": "bob"})
    child = make_session("root-1-c_coder", parent_id="root-1", settings={"agent_id": "bob"})
    await say(child, STOP)
    assert get_mode(root_session) == get_mode(child) == "autonomous"
    await say(root_session, STOP)
    await say(child, "You can store again.")
    assert get_mode(child) == "stopped"


async def test_own_limit_of_a_sub_session_narrows_it_alone(make_session: Sessions) -> None:
    root_session = make_session(settings={"agent_id": "bob", "mode": "ask"})
    strict = make_session("root-1-c_coder", parent_id="root-1", settings={"mode": "manual"})
    loose = make_session("root-1-d_coder", parent_id="root-1", settings={"mode": "autonomous"})
    assert [get_mode(session) for session in (root_session, strict, loose)] == ["ask", "manual", "ask"]
