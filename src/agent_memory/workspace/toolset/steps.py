"""The tools for steps: what can run, and to claim, renew, finish, give back and fail it."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Final, get_args

from agent_memory.errors import NotAllowedError
from agent_memory.workspace.steps import FailureType
from agent_memory.workspace.toolset import schemas
from agent_memory.workspace.toolset.tool import Tool

if TYPE_CHECKING:
    from agent_memory.workspace.declaration import Declaration
    from agent_memory.workspace.toolset.session import ToolSession

NEXT: Final = "next"
_SHOWN: Final = 20
_SECONDS: Final = {"type": "integer", "minimum": 1, "maximum": 86_400}
_STEP: Final = {"type": "string", "description": "the step that you claimed, phase/agent/key"}
_AGENT: Final = {"type": "string", "description": "only steps of this agent"}
_ROW_SECONDS: Final = 600


def step_tools(declaration: Declaration) -> dict[str, Tool]:
    """Return the tools for steps, by name; claim_row only where a table locks its rows."""
    locked = [name for name, table in declaration.tables.items() if table.lock]
    found = [*_taking(), *_ending(), *([_claiming_row(locked)] if locked else [])]
    return {tool.name: tool for tool in found}


def _taking() -> list[Tool]:
    named = {"type": "string", "description": "a name from next_steps, or `next` for the first that can run"}
    return [
        Tool(
            "next_steps",
            "What is to be done: the steps that can run now, and how many wait, are being worked on or are done.",
            {"limit": {**schemas.LIMIT, "description": "at most so many steps"}, "agent": _AGENT},
            _next_steps,
            asked=("limit",),
        ),
        Tool(
            "claim_step",
            "Take a step, so that nobody else works on it. Do it before you write; what you write belongs to the step "
            "and is shown to others when it is finished.",
            {
                "step": named,
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
    ]


def _ending() -> list[Tool]:
    return [
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
    ]


def _claiming_row(tables: list[str]) -> Tool:
    return Tool(
        "claim_row",
        "Take a row outside of any step, so that nobody else writes it.",
        {
            "table": {"type": "string", "enum": tables},
            "key": {"description": "the key of the row"},
            "seconds": {**_SECONDS, "description": f"{_ROW_SECONDS} when left out"},
        },
        _claim_row,
        ("table", "key"),
    )


def _next_steps(session: ToolSession, given: dict[str, Any]) -> dict[str, Any]:
    agent = _agent(session, given)
    steps = [each for each in session.workspace.steps.all() if agent in (None, each.agent)]
    ready = [each for each in steps if each.status == "ready"]
    counts: Counter[str] = Counter(each.status for each in steps)
    shown = ready[: given.get("limit", _SHOWN)]
    session.note_low(*shown)
    answer: dict[str, Any] = {"count": len(ready), "steps": [each.as_dict() for each in shown], **_counts(counts)}
    if session.claim is not None:
        answer["yours"] = session.claim.as_dict()
    return answer


def _claim_step(session: ToolSession, given: dict[str, Any]) -> dict[str, Any]:
    agent = _agent(session, given)
    step = given.get("step", NEXT)
    if step != NEXT and agent is not None and step.split("/")[1:2] != [agent]:
        raise NotAllowedError(f"{step} is no step of {agent}. Nothing was claimed.")
    session.make_room()
    claim = session.workspace.steps.claim(
        session.owner, step=None if step == NEXT else step, agent=agent, seconds=given.get("seconds")
    )
    if claim is None:
        steps = [each for each in session.workspace.steps.all() if agent in (None, each.agent)]
        session.note_low(*steps)
        counts: Counter[str] = Counter(each.status for each in steps)
        waits = next((each.waits_for for each in steps if each.status in ("waiting", "failed")), None)
        message = (
            "All steps are done."
            if counts["done"] == len(steps)
            else f"No step can run now: {waits or 'all are claimed'}."
        )
        return {"status": "none", "message": message, **_counts(counts)}
    session.claim = claim
    phase = session.workspace.declaration.phase(claim.phase or "")
    produces = next((each.produces for each in phase.agents if each.agent == claim.agent), ())
    answer = {"status": "claimed", **claim.as_dict(), "reads": phase.reads, "produces": list(produces)}
    claimed = next(each for each in session.workspace.steps.all() if each.name == claim.step)
    session.note_low(claimed)
    return {**answer, "feedback": claimed.feedback} if claimed.feedback else answer


def _claim_row(session: ToolSession, given: dict[str, Any]) -> dict[str, Any]:
    session.make_room()
    seconds = given.get("seconds", _ROW_SECONDS)
    session.claim = session.workspace.steps.claim_row(session.owner, given["table"], given["key"], seconds=seconds)
    return {"status": "claimed", **session.claim.as_dict()}


def _finish_step(session: ToolSession, given: dict[str, Any]) -> dict[str, Any]:
    claim = session.held(given.get("step"))
    phase = session.workspace.steps.finish(claim, session.caller())
    session.claim = None
    answer: dict[str, Any] = {"status": "finished", "step": claim.step or f"{claim.table} {claim.key}"}
    if phase is not None:
        answer["phase_done"] = phase
        snapshot = session.workspace.declaration.phase(phase).snapshot
        answer |= {"snapshot": snapshot} if snapshot else {}
        owed = session.workspace.snapshots.owed() if snapshot else []
        answer |= {"warnings": owed} if owed else {}
    return answer


def _release_step(session: ToolSession, given: dict[str, Any]) -> dict[str, Any]:
    claim = session.held(given.get("step"))
    session.workspace.steps.release(claim)
    session.claim = None
    return {"status": "released", "step": claim.step or f"{claim.table} {claim.key}"}


def _fail_step(session: ToolSession, given: dict[str, Any]) -> dict[str, Any]:
    claim = session.held()
    left = session.workspace.steps.fail(claim, given["kind"], given["message"], session.caller())
    session.claim = None
    return {"status": "failed", "step": claim.step or f"{claim.table} {claim.key}", "tries_left": left}


def _renew(session: ToolSession, given: dict[str, Any]) -> dict[str, Any]:
    session.claim = session.workspace.steps.renew(session.held(), seconds=given["seconds"])
    return {"status": "renewed", **session.claim.as_dict()}


def _agent(session: ToolSession, given: dict[str, Any]) -> str | None:
    """Return whose steps are meant: the session's agent's, where it is one."""
    asked: str | None = given.get("agent")
    if session.agent is not None and asked not in (None, session.agent):
        raise NotAllowedError(f"You are {session.agent}; steps of {asked} are for others.")
    return session.agent or asked


def _counts(counts: Counter[str]) -> dict[str, int]:
    return {name: counts[name] for name in ("waiting", "claimed", "failed", "done")}
