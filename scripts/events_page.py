"""docs/reference/events.md, made of the table of events."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_memory.memory.events import COMMON, EVENTS
from agent_memory.workspace.toolset import session_toolset as workspace

if TYPE_CHECKING:
    from collections.abc import Mapping


def document() -> str:
    """Return docs/reference/events.md."""
    lines = [
        "# Events",
        "",
        "Generated from `memory/events.json` and `workspace/toolset/session_toolset.py` by `make docs`.",
        "",
        "Events go through the session's hook registry, on the channel `observability.events`. No payload has the text",
        "of a memory or a query. *Audited* events are also kept in the agent's `events.jsonl`: IDs and kinds only.",
        "",
        *_fields("Every `memory:` event has", COMMON),
        *_fields("Every `workspace:` event has", workspace.COMMON),
    ]
    for spec in (*EVENTS.values(), *workspace.EVENTS.values()):
        lines += [f"## {spec.name}", "", spec.when + (" *Audited.*" if spec.audited else ""), ""]
        lines += [*(f"- `{name}`: {meaning}" for name, meaning in spec.fields.items()), *[""][: len(spec.fields)]]
    return "\n".join(lines).rstrip("\n") + "\n"


def _fields(title: str, fields: Mapping[str, str]) -> list[str]:
    return [f"{title}:", "", *(f"- `{name}`: {meaning}" for name, meaning in fields.items()), ""]
