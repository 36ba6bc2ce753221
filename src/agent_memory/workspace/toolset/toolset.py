"""Tools of one worker, called by name, and its tools for steps.

tools = Toolset(workspace, owner="session-7", agent="analyst")
tools.call("claim_step", {"step": "next"})
tools.call("save_chapter_field", {"chapter_num": 1, "field": "summary", "value": "A roof begins."})
tools.call("finish_step", {})
"""

from __future__ import annotations

import fnmatch
import threading
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, get_args

from agent_memory.errors import ConfigurationError, NotAllowedError, ValidationError
from agent_memory.models.clock import Clock, utc_now
from agent_memory.redaction import quoted
from agent_memory.settings import did_you_mean
from agent_memory.workspace.database.schema import LOW
from agent_memory.workspace.declaration.model import DEFAULT_TOOLS, ROW_TOOLS
from agent_memory.workspace.step_transitions import FailureType
from agent_memory.workspace.toolset.table_tools import build_named_tool, build_row_tools, build_table_tools
from agent_memory.workspace.toolset.tool import LIMIT_SCHEMA, Tool, ToolSession

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from agent_memory.workspace.declaration.model import Declaration
    from agent_memory.workspace.workspace import Workspace

NEXT: Final = "next"
_SHOWN: Final = 20
_SECONDS: Final = {"type": "integer", "minimum": 1, "maximum": 86_400}
_STEP: Final = {"type": "string", "description": "the step that you claimed, phase/agent/key"}
_AGENT: Final = {"type": "string", "description": "only steps of this agent"}
_ROW_SECONDS: Final = 600


def _next_steps(session: ToolSession, arguments: dict[str, Any]) -> dict[str, Any]:
    agent = _choose_agent(session, arguments)
    steps = [planned for planned in session.workspace.steps.all() if agent in (None, planned.agent)]
    ready = [planned for planned in steps if planned.status == "ready"]
    counts: Counter[str] = Counter(planned.status for planned in steps)
    shown = ready[: arguments.get("limit", _SHOWN)]
    session.note_low(*shown)
    answer: dict[str, Any] = {"count": len(ready), "steps": [planned.as_dict() for planned in shown], **_counts(counts)}
    if session.claim is not None:
        answer["yours"] = session.claim.as_dict()
    return answer


def _claim_step(session: ToolSession, arguments: dict[str, Any]) -> dict[str, Any]:
    agent = _choose_agent(session, arguments)
    step = arguments.get("step", NEXT)
    if step != NEXT and agent is not None and step.split("/")[1:2] != [agent]:
        raise NotAllowedError(f"{step} is no step of {agent}. Nothing was claimed.")
    session.make_room()
    claim = session.workspace.steps.claim(
        session.owner, step=None if step == NEXT else step, agent=agent, seconds=arguments.get("seconds")
    )
    if claim is None:
        steps = [planned for planned in session.workspace.steps.all() if agent in (None, planned.agent)]
        session.note_low(*steps)
        counts: Counter[str] = Counter(planned.status for planned in steps)
        waits = next((planned.waits_for for planned in steps if planned.status in ("waiting", "failed")), None)
        message = (
            "All steps are done."
            if counts["done"] == len(steps)
            else f"No step can run now: {waits or 'all are claimed'}."
        )
        return {"status": "none", "message": message, **_counts(counts)}
    session.claim = claim
    phase = session.workspace.declaration.phase(claim.phase or "")
    produces = next((agent_item.produces for agent_item in phase.agents if agent_item.agent == claim.agent), ())
    answer = {"status": "claimed", **claim.as_dict(), "reads": phase.reads, "produces": list(produces)}
    claimed = next(planned for planned in session.workspace.steps.all() if planned.name == claim.step)
    session.note_low(claimed)
    return {**answer, "feedback": claimed.feedback} if claimed.feedback else answer


def _claim_row(session: ToolSession, arguments: dict[str, Any]) -> dict[str, Any]:
    session.make_room()
    seconds = arguments.get("seconds", _ROW_SECONDS)
    session.claim = session.workspace.steps.claim_row(
        session.owner, arguments["table"], arguments["key"], seconds=seconds
    )
    return {"status": "claimed", **session.claim.as_dict()}


def _finish_step(session: ToolSession, arguments: dict[str, Any]) -> dict[str, Any]:
    claim = session.get_claim(arguments.get("step"))
    phase = session.workspace.steps.finish(claim, session.caller())
    session.claim = None
    answer: dict[str, Any] = {"status": "finished", "step": claim.step or f"{claim.table} {claim.key}"}
    if phase is not None:
        answer["phase_done"] = phase
        snapshot = session.workspace.declaration.phase(phase).snapshot
        answer |= {"snapshot": snapshot} if snapshot else {}
        owed = session.workspace.snapshots.list_owed() if snapshot else []
        answer |= {"warnings": owed} if owed else {}
    return answer


def _release_step(session: ToolSession, arguments: dict[str, Any]) -> dict[str, Any]:
    claim = session.get_claim(arguments.get("step"))
    session.workspace.steps.release(claim)
    session.claim = None
    return {"status": "released", "step": claim.step or f"{claim.table} {claim.key}"}


def _fail_step(session: ToolSession, arguments: dict[str, Any]) -> dict[str, Any]:
    claim = session.get_claim()
    tries_left = session.workspace.steps.fail(claim, arguments["kind"], arguments["message"], session.caller())
    session.claim = None
    return {"status": "failed", "step": claim.step or f"{claim.table} {claim.key}", "tries_left": tries_left}


def _renew(session: ToolSession, arguments: dict[str, Any]) -> dict[str, Any]:
    session.claim = session.workspace.steps.renew(session.get_claim(), seconds=arguments["seconds"])
    return {"status": "renewed", **session.claim.as_dict()}


def _choose_agent(session: ToolSession, arguments: dict[str, Any]) -> str | None:
    """Return the agent to filter by; the session's own comes first."""
    asked: str | None = arguments.get("agent")
    if session.agent is not None and asked not in (None, session.agent):
        raise NotAllowedError(f"You are {session.agent}; steps of {asked} are for others.")
    return session.agent or asked


def _counts(counts: Counter[str]) -> dict[str, int]:
    return {name: counts[name] for name in ("waiting", "claimed", "failed", "done")}


_TOOLS: Final = (
    Tool(
        "next_steps",
        "What is to be done: the steps that can run now, and how many wait, are being worked on or are done.",
        {"limit": {**LIMIT_SCHEMA, "description": "at most so many steps"}, "agent": _AGENT},
        _next_steps,
        asked=("limit",),
    ),
    Tool(
        "claim_step",
        "Take a step, so that nobody else works on it. Do it before you write; what you write belongs to the step and "
        "is shown to others when it is finished.",
        {
            "step": {"type": "string", "description": "a name from next_steps, or `next` for the first that can run"},
            "agent": _AGENT,
            "seconds": {**_SECONDS, "description": "how long you need, unless you renew it"},
        },
        _claim_step,
        asked=("step",),
    ),
    Tool(
        "renew",
        "Keep your claim for longer.",
        {"seconds": {**_SECONDS, "description": "from now"}},
        _renew,
        ("seconds",),
    ),
    Tool(
        "finish_step",
        "Call your step done. Write all it must produce first.",
        {"step": _STEP},
        _finish_step,
        asked=("step",),
    ),
    Tool(
        "release_step",
        "Give your step, or your row, back undone; what the step wrote is taken back. No failure is counted.",
        {"step": _STEP},
        _release_step,
        asked=("step",),
    ),
    Tool(
        "fail_step",
        "Say that your step failed; what it wrote is taken back, and it is tried again while retries are left.",
        {
            "kind": {"type": "string", "enum": list(get_args(FailureType))},
            "message": {"type": "string", "description": "what went wrong, for whoever tries again"},
        },
        _fail_step,
        ("kind", "message"),
    ),
)


def build_step_tools(declaration: Declaration) -> dict[str, Tool]:
    """Return the tools for steps; `claim_row` needs a locking table."""
    tools = {tool.name: tool for tool in _TOOLS}
    if locked := [name for name, table in declaration.tables.items() if table.lock]:
        table = {"type": "string", "enum": locked}
        seconds = {**_SECONDS, "description": f"{_ROW_SECONDS} when left out"}
        properties = {"table": table, "key": {"description": "the key of the row"}, "seconds": seconds}
        text = "Take a row outside of any step, so that nobody else writes it."
        tools["claim_row"] = Tool("claim_row", text, properties, _claim_row, ("table", "key"))
    return tools


class Toolset:
    """Tools of one worker.

    Calls block and run one at a time, from any thread.

    Args:
        workspace: Open workspace, which its opener closes.
        owner: Name of the worker in claims.
        agent: Name of the agent; None for the agent of the claimed step.
        offer: Tools to offer; None for the default.
        clock: Source of the time for columns that are written with `now`.
        knows_strangers: Returns True if the worker knows untrusted words.

    Raises:
        ConfigurationError: The offer names an unknown tool or table.
    """

    def __init__(
        self,
        workspace: Workspace,
        owner: str,
        *,
        agent: str | None = None,
        offer: Offer | None = None,
        clock: Clock = utc_now,
        knows_strangers: Callable[[], bool] = lambda: False,
    ) -> None:
        self.tools: dict[str, Tool] = (offer or Offer()).choose(workspace.declaration)
        self.session = ToolSession(workspace, owner, agent, clock, knows_strangers)
        self._lock = threading.Lock()

    def call(self, name: str, arguments: dict[str, Any] | None = None) -> dict[str, Any]:
        """Call a tool.

        Returns:
            Dict with a `status` or a `count`, and `trust: low` if it may hold untrusted words.

        Raises:
            AgentMemoryError: It failed; `as_dict` has `message`, `code` and `recovery`.
        """
        tool = self.tools.get(name)
        if tool is None:
            tool_names = ", ".join(self.tools)
            raise ValidationError(f"No tool {quoted(name)}; there are {tool_names}.", code="unknown_tool")
        checked, warnings = tool.check_arguments(arguments)
        with self._lock:
            before = self.session.low_seen
            answer = tool.run(self.session, checked) | ({"warnings": warnings} if warnings else {})
            return {**answer, "trust": LOW} if self.session.low_seen > before else answer

    def close(self) -> None:
        """Return the claim, if there is one, and undo its attempt."""
        with self._lock:
            self.session.leave()


@dataclass(frozen=True, slots=True)
class Offer:
    """Tools that an agent is offered.

    Attributes:
        tools: Names of tools, or patterns such as `get_*`.
        tables: Tables for the row tools; None for all.
    """

    tools: Sequence[str] = DEFAULT_TOOLS
    tables: Sequence[str] | None = None

    def choose(self, declaration: Declaration) -> dict[str, Tool]:
        """Return the offered tools by name.

        Raises:
            ConfigurationError: A name or pattern fits no tool, or a table is not declared.
        """
        rows = [name for name in ROW_TOOLS if any(fnmatch.fnmatchcase(name, tool_name) for tool_name in self.tools)]
        tools = build_tools(declaration, self.tables, rows)
        chosen: dict[str, Tool] = {}
        for name in self.tools:
            fitting = [tool_name for tool_name in tools if fnmatch.fnmatchcase(tool_name, name)]
            if not fitting and name not in DEFAULT_TOOLS:  # of these, some need a table of their kind
                raise ConfigurationError(f"No tool {name!r}{did_you_mean(name, tuple(tools)) or '.'}")
            chosen |= {tool_name: tools[tool_name] for tool_name in fitting}
        return chosen


def build_tools(
    declaration: Declaration, tables: Sequence[str] | None = None, rows: Sequence[str] = ROW_TOOLS
) -> dict[str, Tool]:
    """Return all tools of a workspace by name.

    Tools that the declaration names replace those made from its tables.

    Args:
        declaration: Declaration of the workspace.
        tables: Tables for the row tools; None for all.
        rows: Names of the row tools.

    Raises:
        ConfigurationError: One of `tables` is not declared.
    """
    for name in tables or ():
        if name not in declaration.tables:
            near = did_you_mean(name, tuple(declaration.tables)) or "."
            raise ConfigurationError(f"No table {name!r}{near}")
    table_names = list(declaration.tables) if tables is None else tables
    tools = {**build_step_tools(declaration), **build_row_tools(declaration, table_names, rows)}
    for name in declaration.tables:
        tools |= build_table_tools(declaration, name)
    return tools | {name: build_named_tool(declaration, name, spec) for name, spec in declaration.tools.items()}
