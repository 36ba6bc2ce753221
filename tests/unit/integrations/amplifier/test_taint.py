"""Which tools bring a stranger's words, how long these count, and whom they come back to."""

from __future__ import annotations

import asyncio
import json
import threading
from typing import TYPE_CHECKING, Any

import pytest

from agent_memory.integrations.amplifier import session as host_session
from agent_memory.integrations.amplifier.conversation import iter_tool_calls
from agent_memory.integrations.amplifier.session_notes import SessionNote, SessionNotes
from agent_memory.integrations.amplifier.taint import UntrustedTools
from agent_memory.settings import ToolSettings
from tests.support import coordinator_of, memory_of, plan
from tests.unit.integrations.amplifier.conftest import host_of

if TYPE_CHECKING:
    from pathlib import Path

    from agent_memory.integrations.amplifier import MemorySession
    from tests.unit.integrations.amplifier.conftest import Sessions

THEIRS = [
    "read_page", "visit", "navigate", "playwright_click", "zendesk_get", "list_prs", "api_request", "get_messages",
    "web_search", "web_fetch", "WebFetch", "fetch", "fetch_url", "http_request", "browser", "browser_navigate",
    "browse_page", "playwright_browser", "tavily_search", "brave_search", "google_search", "duckduckgo_search",
    "bing_search", "exa_search", "perplexity_ask", "search", "serpapi", "read_url", "url_context", "curl", "wget",
    "download_file", "rss_read", "feed_read", "news_headlines", "github_get_issue", "github_list_pull_requests",
    "github_search_code", "gitlab_get_mr", "gh_issue_view", "jira_get_issue", "jira_search", "linear_list_issues",
    "get_ticket", "zendesk_ticket", "list_pull_request_comments", "slack_read", "slack_get_channel_history",
    "discord_read", "teams_messages", "telegram_read", "read_email", "gmail_search", "send_mail", "outlook_list",
    "inbox_list", "imap_fetch", "notion_query", "notion_get_page", "confluence_get_page", "wiki_page", "wikipedia",
    "gdrive_read", "google_drive_download", "dropbox_get", "sharepoint_get", "calendar_list",
    "google_calendar_events", "youtube_transcript", "get_transcript", "video_captions", "reddit_top", "tweet_lookup",
    "arxiv_get", "pubmed_get", "stackoverflow_query", "scrape_page", "scraper", "crawl", "firecrawl",
    "mcp__files__read", "mcp_anything", "deep_research_search", "knowledge_base_search", "a2a_call",
    "memory_fetch", "memory_web_search", "memory_search_online", "m\u0435mory_search", "grep_web", "glob_http_pages",
    "todo_search_online", "lsp_download",
]  # fmt: skip
OURS = [
    "read_file", "write_file", "edit_file", "apply_patch", "list_directory", "glob", "glob_files", "grep",
    "grep_files", "ripgrep", "code_search", "search_code", "search_files", "file_search", "find_files",
    "symbol_search", "search_and_replace", "tool_search", "skill_search", "todo", "todo_search",
    "lsp_workspace_symbol_search", "python_check", "git_status", "run_tests", "memory_search", "memory_list_recent",
    "memory_store", "delegate", "task", "load_skill", "recipes", "bash",
]  # fmt: skip


@pytest.fixture
def tools() -> UntrustedTools:
    settings = ToolSettings()
    return UntrustedTools(settings.low_trust_tools, settings.trusted_tools)


@pytest.mark.parametrize("name", THEIRS)
def test_a_tool_that_reaches_out_brings_strangers_words(tools: UntrustedTools, name: str) -> None:
    assert tools.matches(name, {})


@pytest.mark.parametrize("name", OURS)
def test_a_tool_that_reads_what_is_here_does_not(tools: UntrustedTools, name: str) -> None:
    assert not tools.matches(name, {"query": "see https://x.example"} if name not in {"bash", "run_tests"} else {})


@pytest.mark.parametrize("shell", ["bash", "Bash", "shell", "run_command", "execute_command", "terminal", "powershell"])
@pytest.mark.parametrize(
    ("command", "theirs"),
    [
        ("curl -s x.example", True),
        ("wget x.example", True),
        ("python -c 'import requests; print(requests.get(u).text)'", True),
        ("cat <(lynx -dump x.example)", True),
        ("gh issue view 12", True),
        ("Invoke-WebRequest x.example", True),
        ("echo https://x.example | xargs -n1 true", True),
        ("git pull --rebase", True),
        ("npm view left-pad", True),
        ("kubectl logs web-1", True),
        ("node -e 'fetch(u).then(console.log)'", True),
        ("git status && git fetched", False),
        ("npm test", False),
        ("ls -la && make check", False),
        ("grep -rn requested src", False),
        ("git log --oneline", False),
    ],
)
def test_a_shell_brings_them_when_it_calls_the_network(
    tools: UntrustedTools, shell: str, command: str, theirs: bool
) -> None:
    assert tools.matches(shell, {"command": command}) is theirs
    assert tools.matches(shell, json.dumps({"command": command})) is theirs


@pytest.mark.parametrize(
    ("command", "shows"),
    [
        ("agent-memory search 'push to main'", True),
        ("agent-memory -a bob --root /x list --all", True),
        ("cd /x && python -m agent_memory.cli show mem-0000000000a1 | head", True),
        ("agent-memory store 'the list of the show'", False),
        ("agent-memory workspace table sources", True),
        ("agent-memory workspace export rows.jsonl && cat rows.jsonl", True),
        ("agent-memory workspace save sources", False),
        ("agent-memory --version", False),
        ("ls agent-memory", False),
        ("grep -r agent-memory docs", False),
    ],
)
def test_a_shell_brings_them_when_it_shows_what_we_keep(tools: UntrustedTools, command: str, shows: bool) -> None:
    assert tools.matches("bash", {"command": command}) is shows
    assert not tools.matches("read_file", {"path": command})


@pytest.mark.parametrize(
    ("tool", "given", "counts"),
    [
        ("read_file", {"path": "{root}/bob/memories.yaml"}, True),
        ("grep", {"pattern": "diff", "path": "{root}"}, True),
        ("bash", {"command": "cat {root}/bob/topics/vendor.md"}, True),
        ("read_file", {"path": "{root}/bob/scratchpad.yaml"}, False),
        ("edit_file", {"edits": [{"file": "{root}/bob/scratchpad.yaml"}]}, False),
        ("read_file", {"path": "docs/topics/vendor.md"}, False),
        ("memory_store", {"content": "It lies in {root}/bob"}, False),
        ("remember", {"content": "It lies in {root}/bob"}, False),
    ],
)
async def test_a_tool_that_reads_the_agents_files_brings_what_strangers_said(
    make_session: Sessions, root: Path, tool: str, given: Any, counts: bool
) -> None:
    session = make_session()
    named = json.loads(json.dumps(given).replace("{root}", str(root)))
    await host_of(session).hooks.emit("tool:post", {"tool_name": tool, "tool_input": named, "result": "..."})
    assert session.taint.by == (tool if counts else None)


def test_a_name_spelled_out_counts_although_it_is_trusted_by_default() -> None:
    assert UntrustedTools(("Code_Search",), ToolSettings().trusted_tools).matches("code_search", None)
    assert not UntrustedTools(("*search*",), ("code_*",)).matches("code_search", None)


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


async def test_without_a_configuration_of_the_tools_the_defaults_count(make_session: Sessions) -> None:
    session = make_session()
    await hear(session, "bash", tool_input={"command": "ls"})
    assert session.taint.by is None
    await hear(session, "bash", tool_input={"command": "curl x.example"})
    assert session.taint.by == "bash"


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


async def test_resumed_session_still_has_results_of_other_tools(make_session: Sessions) -> None:
    session = make_session("one", settings={"agent_id": "bob"})
    await hear(session, "grep")
    assert (session.caller.trust, session.caller.is_tainted) == ("medium", True)
    await session.release()
    resumed = make_session("one", settings={"agent_id": "bob"}, is_resumed=True)
    resumed.identity()
    assert (resumed.caller.trust, resumed.caller.is_tainted) == ("medium", True)
    resumed.taint.clear()
    await resumed.release()
    cleared = make_session("one", settings={"agent_id": "bob"}, is_resumed=True)
    cleared.identity()
    assert not cleared.caller.is_tainted


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
        [{"role": "assistant", "tool_calls": [{"tool": "read_file", "arguments": {"path": "x"}}]}],
    ],
)
def test_a_conversation_without_strangers_is_none_whatever_its_form(tools: UntrustedTools, messages: list[Any]) -> None:
    assert not any(tools.matches(name, tool_input) for name, tool_input in iter_tool_calls(messages))


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
        if not note.is_tainted:
            newer_is_written.wait(0.2)
        remember(self, session_id, note)
        if note.is_tainted:
            newer_is_written.set()

    monkeypatch.setattr(SessionNotes, "remember", slow_when_clean)
    session.taint.note_foreign_result()
    await asyncio.sleep(0)
    session.taint.note("web_fetch")
    await session.release()
    assert SessionNotes(root).recall("root-1").is_tainted
