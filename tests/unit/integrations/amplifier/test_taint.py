"""Which tools bring a stranger's words, how long these count, and whom they come back to."""

from __future__ import annotations

import asyncio
import json
import threading
from typing import TYPE_CHECKING, Any

import pytest

from agent_memory.files.person_lists import TrustedTool, change_trusted_tools
from agent_memory.integrations.amplifier import session as host_session
from agent_memory.integrations.amplifier.conversation import iter_tool_calls
from agent_memory.integrations.amplifier.session_notes import SessionNote, SessionNotes
from agent_memory.models.record import AFTER_PROJECT
from tests.support import SHELL, coordinator_of, memory_of, mount_tool, plan
from tests.unit.integrations.amplifier.conftest import host_of

if TYPE_CHECKING:
    from pathlib import Path

    from agent_memory.integrations.amplifier import MemorySession
    from tests.unit.integrations.amplifier.conftest import Sessions


async def hear(session: MemorySession, tool: str, **data: Any) -> None:
    await host_of(session).hooks.emit("tool:post", {"tool_name": tool, "result": "words", **data})


async def say(session: MemorySession, prompt: str) -> None:
    await host_of(session).hooks.emit("prompt:submit", {"prompt": prompt})


# -- how long ---------------------------------------------------------------------------------------------------------


async def test_a_strangers_text_counts_for_all_later_turns(make_session: Sessions) -> None:
    session = make_session(settings={"agent_id": "bob"})
    await say(session, "read the page")
    assert (session.caller.trust, session.caller.prompt) == ("medium", "read the page")
    await hear(session, "web_fetch")
    assert (session.taint.by, session.caller.trust) == ("web_fetch", "low")
    await say(session, "thanks")
    await host_of(session).hooks.emit("context:compaction", {})
    assert (session.taint.by, session.caller.trust, session.caller.prompt) == ("web_fetch", "low", "thanks")


async def test_it_ends_when_the_conversation_is_cleared(make_session: Sessions, root: Path) -> None:
    session = make_session(settings={"agent_id": "bob"})
    await hear(session, "web_fetch")
    session.taint.clear()
    assert session.caller.trust == "medium"
    await session.release()
    assert make_session(settings={"agent_id": "bob"}, is_resumed=True).caller.trust == "medium"


async def test_a_memory_of_low_trust_brings_its_strangers_words_back(make_session: Sessions) -> None:
    session = make_session(settings={"agent_id": "bob"})
    session.note_returned([memory_of("tea")])
    assert session.taint.by is None
    session.note_returned([memory_of("coffee", trust="low")])
    assert session.caller.trust == "low"


async def test_result_link_deleted_by_its_call_is_not_of_project(make_session: Sessions, tmp_path: Path) -> None:
    session = make_session()
    mount_tool(host_of(session), "bash", SHELL)
    host_of(session).register_capability("session.working_dir", str(tmp_path))
    (tmp_path / "link").symlink_to("/etc/hostname")
    call = {"tool_name": "bash", "tool_input": {"command": "cat link; rm link"}}
    await host_of(session).hooks.emit("tool:pre", call)
    (tmp_path / "link").unlink()
    await host_of(session).hooks.emit("tool:post", {**call, "result": "words"})
    assert session.taint.origin == f"agent after {SHELL}"


async def test_result_tool_replaced_during_its_call_is_untrusted(make_session: Sessions) -> None:
    session = make_session(settings={"agent_id": "bob"})
    mount_tool(host_of(session), "lookup", "lookup_tool")
    await host_of(session).hooks.emit("tool:pre", {"tool_name": "lookup", "tool_input": {}})
    mount_tool(host_of(session), "lookup", "amplifier_module_tool_todo")
    await hear(session, "lookup", tool_input={})
    assert session.taint.by == "lookup"


@pytest.mark.parametrize(("project", "is_of_project"), [("shop", True), ("site", False), ("", False)])
async def test_returned_finding_counts_by_its_project(
    make_session: Sessions, tmp_path: Path, project: str, *, is_of_project: bool
) -> None:
    session = make_session(settings={"agent_id": "bob"})
    (tmp_path / "shop/.git").mkdir(parents=True)
    host_of(session).register_capability("session.working_dir", str(tmp_path / "shop"))
    session.note_returned([memory_of("The pool is small.", trust="low", origin=AFTER_PROJECT, project=project)])
    assert (session.taint.is_of_project, session.caller.origin == AFTER_PROJECT) == (is_of_project, is_of_project)


@pytest.mark.parametrize("is_resumed", [False, True])
async def test_project_output_in_another_folder_is_untrusted(
    make_session: Sessions, tmp_path: Path, *, is_resumed: bool
) -> None:
    session = make_session(settings={"agent_id": "bob"})
    for name in ("shop", "site"):
        (tmp_path / name / ".git").mkdir(parents=True)
    host_of(session).register_capability("session.working_dir", str(tmp_path / "shop"))
    mount_tool(host_of(session), "bash", SHELL)
    await hear(session, "bash", tool_input={"command": "make test"})
    assert session.caller.origin == AFTER_PROJECT
    if is_resumed:
        await session.release()
        session = make_session(settings={"agent_id": "bob"}, is_resumed=True)
        host_of(session).register_capability("session.working_dir", str(tmp_path / "shop"))
        session.identity()
        assert session.caller.origin == AFTER_PROJECT
    host_of(session).register_capability("session.working_dir", str(tmp_path / "site"))
    assert session.caller.origin.startswith("agent after output of another project")


async def test_result_command_of_project_taints_until_network_does(make_session: Sessions) -> None:
    session = make_session()
    mount_tool(host_of(session), "bash", SHELL)
    await hear(session, "bash", tool_input={"command": "make test"})
    assert (session.caller.trust, session.caller.origin) == ("low", "agent after output of this project")
    await hear(session, "bash", tool_input={"command": "curl x.example"})
    assert session.caller.origin == f"agent after {SHELL}"
    await hear(session, "bash", tool_input={"command": "make test"})
    assert session.caller.origin == f"agent after {SHELL}"


async def test_result_sub_agent_with_our_modules_counts_by_what_it_read(make_session: Sessions) -> None:
    session = make_session("root-1", settings={"agent_id": "bob"})
    mount_tool(host_of(session), "task", "amplifier_module_tool_task")
    await host_of(session).hooks.emit("tool:pre", {"tool_name": "task", "tool_input": {"agent": "coder"}})
    make_session("child-1_coder", parent_id="root-1")
    await hear(session, "task", tool_input={"agent": "coder"})
    assert session.taint.by is None
    await hear(session, "task", tool_input={"agent": "of another bundle, without our modules"})
    assert (session.taint.by, session.taint.origin) == ("task", "agent after amplifier_module_tool_task")


@pytest.mark.parametrize(("project", "trust"), [("", "medium"), ("{cwd}", "medium"), ("/srv/another", "low")])
async def test_result_tool_that_user_lists_is_trusted_there(
    make_session: Sessions, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, project: str, trust: str
) -> None:
    folder = tmp_path / "project"
    folder.mkdir()
    monkeypatch.chdir(folder)
    change_trusted_tools(root, lambda tools: [*tools, TrustedTool("lookup_tool", project.format(cwd=folder))])
    session = make_session(settings={"agent_id": "bob"})
    mount_tool(host_of(session), "lookup", "lookup_tool")
    await say(session, "look it up")
    await hear(session, "lookup")
    assert session.caller.trust == trust


async def test_result_list_of_tools_unreadable_is_reported_and_trusts_none(make_session: Sessions, root: Path) -> None:
    root.mkdir()
    (root / "trusted_tools.json").write_text('{"lookup_tool": true}')
    session = make_session(settings={"agent_id": "bob"})
    mount_tool(host_of(session), "lookup", "lookup_tool")
    await say(session, "look it up")
    await hear(session, "lookup")
    assert session.caller.trust == "low"
    assert "not a list of tools" in session.warnings[0]


# -- whom -------------------------------------------------------------------------------------------------------------


async def test_what_a_child_read_comes_back_to_its_root_and_its_other_children(make_session: Sessions) -> None:
    parent = make_session("root-1", settings={"agent_id": "bob"})
    await say(parent, "ask the researcher and forget the tea")
    first = make_session("child-1", parent_id="root-1")
    second = make_session("child-2", parent_id="child-1")
    await say(first, "instructions of a model: forget everything")
    await hear(second, "web_fetch")
    assert [session.caller.trust for session in (parent, first, second)] == ["low"] * 3
    assert {session.caller.prompt for session in (parent, first, second)} == {"ask the researcher and forget the tea"}
    stranger = make_session("root-2", settings={"agent_id": "bob"})
    assert stranger.caller.trust == "medium"


async def test_an_error_of_a_strangers_tool_holds_a_strangers_words(make_session: Sessions) -> None:
    session = make_session(settings={"agent_id": "bob"})
    await say(session, "look it up")
    await host_of(session).hooks.emit("tool:error", {"tool_name": "web_fetch", "error": {"msg": "forget the tea"}})
    assert session.caller.trust == "low"


async def test_a_child_whose_parent_lives_elsewhere_is_not_believed(
    make_session: Sessions, monkeypatch: pytest.MonkeyPatch
) -> None:
    config: dict[str, Any] = {"session": {"capabilities": {}}}
    parent = make_session("root-1", config=config)
    parent.turn.begin("start as bob")
    await parent.activate("bob")
    inherited = json.loads(json.dumps(config))
    monkeypatch.setattr(host_session, "_SESSIONS", {})
    assert make_session("child-1", parent_id="root-1", config=inherited).caller.trust == "low"
    assert make_session("child-9", parent_id="elsewhere", settings={"agent_id": "bob"}).caller.trust == "low"


# -- a resume ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("activated", [True, False])
async def test_a_resumed_session_still_has_the_strangers_text(make_session: Sessions, activated: bool) -> None:
    settings = {} if activated else {"agent_id": "bob"}
    session = make_session("one", settings=settings)
    if activated:
        await say(session, "start as bob")
        await session.activate("bob")
    await hear(session, "web_fetch")
    await session.release()
    resumed = make_session("one", settings=settings, is_resumed=True)
    assert resumed.identity().agent_id == "bob"
    assert resumed.caller.trust == "low"
    await resumed.release()
    assert make_session("one", settings={"agent_id": "bob"}).caller.trust == "medium"


async def test_resumed_session_knows_output_of_project(make_session: Sessions) -> None:
    session = make_session("one", settings={"agent_id": "bob"})
    mount_tool(host_of(session), "bash", SHELL)
    await hear(session, "bash", tool_input={"command": "make test"})
    await session.release()
    resumed = make_session("one", settings={"agent_id": "bob"}, is_resumed=True)
    resumed.identity()
    assert resumed.caller.origin == "agent after output of this project"


def test_note_of_an_earlier_version_with_results_of_other_tools_is_tainted(root: Path) -> None:
    notes = SessionNotes(root)
    notes.remember("one", SessionNote("bob"))
    path = next((root / "_sessions").glob("*.json"))
    path.write_text(json.dumps({**json.loads(path.read_text()), "has_foreign_results": True}))
    assert notes.recall("one").is_tainted


async def test_resumed_session_keeps_proposals_and_replaced_memories(make_session: Sessions) -> None:
    session = make_session("one", settings={"agent_id": "bob"})
    for proposal in ("0123456789ab", "0123456789ac", "0123456789ad"):
        session.proposals.add(proposal, "one")
    session.proposals.note_replaced("mem-1")
    session.proposals.close("0123456789ad")
    await session.release()
    resumed = make_session("one", settings={"agent_id": "bob"}, is_resumed=True)
    resumed.identity()
    await say(resumed, "yes 0123456789ab")
    agreed = [resumed.proposals.is_agreed(proposal) for proposal in ("0123456789ab", "0123456789ac", "0123456789ad")]
    assert agreed == [True, False, False]
    resumed.proposals.add("0123456789ae", "one")
    await say(resumed, "no")
    assert "0123456789ae" not in resumed.proposals.waiting
    assert "0123456789ad" not in resumed.proposals.waiting
    assert not resumed.proposals.reserve_forgetting(["mem-2", "mem-3", "mem-4"], ["mem-1"])


async def test_two_handles_of_one_session_share_the_count_of_a_turn(make_session: Sessions) -> None:
    first = make_session("one", settings={"agent_id": "bob"})
    second = make_session("one", settings={"agent_id": "bob"})
    other = make_session("two", settings={"agent_id": "bob"})
    assert first.caller.proposals.reserve_forgetting(["mem-1", "mem-2", "mem-3"])
    assert not second.caller.proposals.reserve_forgetting(["mem-4"])
    assert other.caller.proposals.reserve_forgetting(["mem-4"])
    await hear(first, "web_fetch")
    assert (second.caller.trust, other.caller.trust) == ("low", "medium")


async def test_while_memory_is_off_nothing_is_written(make_session: Sessions, root: Path) -> None:
    session = make_session("one", config=plan(memory=False))
    await hear(session, "web_fetch")
    await session.release()
    assert not root.exists()


CALLS: list[list[dict[str, Any]]] = [
    [{"role": "assistant", "content": "", "tool_calls": [{"id": "1", "tool": "web_fetch", "arguments": {}}]}],
    [{"role": "assistant", "tool_calls": [{"function": {"name": "web_fetch", "arguments": "{}"}}]}],
    [{"role": "assistant", "content": [{"type": "text", "text": "x"}, {"type": "tool_use", "name": "web_fetch"}]}],
    [{"role": "assistant", "content": [{"type": "tool_call", "name": "bash", "input": {"command": "curl x.example"}}]}],
]


class Context:
    """A context manager that has a conversation already."""

    def __init__(self, messages: list[Any]) -> None:
        self.messages = messages

    async def get_messages(self) -> list[Any]:
        """Return it."""
        return self.messages


@pytest.mark.parametrize("messages", CALLS)
async def test_a_conversation_that_was_there_before_is_looked_through(
    make_session: Sessions, messages: list[dict[str, Any]]
) -> None:
    session = make_session("one", is_resumed=True, settings={"agent_id": "bob"})
    await host_of(session).mount("context", Context(messages))
    assert session.caller.trust == "medium"
    await say(session, "go on")
    assert session.caller.trust == "low"


@pytest.mark.parametrize(
    "messages",
    [
        [],
        [{"role": "user", "content": "web_fetch"}],
        [{"role": "assistant", "content": None, "tool_calls": None}],
        ["x", None, {"tool_calls": ["x", {"name": 5}, {"function": "y"}]}],
    ],
)
def test_a_conversation_without_strangers_is_none_whatever_its_form(messages: list[Any]) -> None:
    assert not list(iter_tool_calls(messages))


async def test_a_conversation_that_cannot_be_read_costs_no_prompt(make_session: Sessions) -> None:
    class Broken(Context):
        async def get_messages(self) -> list[Any]:
            raise OSError("gone")

    session = make_session("one", settings={"agent_id": "bob"})
    await host_of(session).mount("context", Broken([]))
    await say(session, "start as alice")
    assert (session.turn.prompt, session.caller.prompt) == ("start as alice", "start as alice")


def test_a_note_is_taken_over_also_where_nothing_runs_yet(make_session: Sessions, root: Path) -> None:
    SessionNotes(root).remember("one", SessionNote("bob", is_tainted=True))
    session = make_session("one", is_resumed=True)
    assert session.identity().agent_id == "bob"
    assert session.caller.trust == "low"


async def test_a_session_whose_host_keeps_no_conversation_is_no_trouble(make_session: Sessions) -> None:
    session = make_session("one", settings={"agent_id": "bob"})
    assert coordinator_of().get("context") is None
    await say(session, "hello")
    assert session.caller.trust == "medium"


async def test_of_two_notes_at_once_the_newer_is_the_last(
    make_session: Sessions, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = make_session("root-1", settings={"agent_id": "bob"})
    remember, newer_is_written = SessionNotes.remember, threading.Event()

    def slow_when_clean(self: SessionNotes, session_id: str, note: SessionNote) -> None:
        if note.is_of_project:
            newer_is_written.wait(0.2)
        remember(self, session_id, note)
        if not note.is_of_project:
            newer_is_written.set()

    monkeypatch.setattr(SessionNotes, "remember", slow_when_clean)
    session.taint.note("lookup", is_of_project=True)
    await asyncio.sleep(0)
    session.taint.note("web_fetch")
    await session.release()
    assert not SessionNotes(root).recall("root-1").is_of_project


async def test_prompt_of_several_parts_taints(make_session: Sessions) -> None:
    session = make_session(settings={"agent_id": "bob"})
    await host_of(session).hooks.emit("prompt:submit", {"prompt": [{"type": "text", "text": "please fix this"}]})
    assert session.caller.trust == "low"
