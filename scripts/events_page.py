"""docs/events.md, made of the table of events."""

from __future__ import annotations

from agent_memory.memory.events import COMMON, EVENTS
from agent_memory.workspace import events as workspace


def document() -> str:
    """Return docs/events.md."""
    lines = [
        "# Events",
        "",
        "Generated from `agent_memory/memory/events.py` and `agent_memory/workspace/events.py` by `make docs`; a test",
        "keeps it true.",
        "",
        "Each event goes through the session's hook registry and is declared on the channel `observability.events`.",
        "All payloads also carry:",
        "",
        *(f"- `{name}`: {meaning}" for name, meaning in COMMON.items()),
        "",
        "Those of a workspace, `workspace:…`, carry instead:",
        "",
        *(f"- `{name}`: {meaning}" for name, meaning in workspace.COMMON.items()),
        "",
        "No payload holds what a memory says or what was searched for. Those marked *audited* are also kept, ids and",
        "kinds only, in the agent's `events.jsonl`.",
    ]
    for spec in (*EVENTS.values(), *workspace.EVENTS.values()):
        mark = " *(audited)*" if spec.audited else ""
        lines += ["", f"## {spec.name}{mark}", "", spec.when]
        lines += ["", "| field | meaning |", "|---|---|"] if spec.fields else []
        lines += [f"| `{name}` | {meaning} |" for name, meaning in spec.fields.items()]
    return "\n".join(lines) + "\n"
