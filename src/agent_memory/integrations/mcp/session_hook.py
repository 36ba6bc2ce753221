"""Hooks of hosts: short commands with JSON on stdin and stdout.

They fail open: what goes wrong is on stderr, the host gets an empty answer, and the exit code is 0.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from yaml import YAMLError

from agent_memory.errors import AgentMemoryError, IdentityError
from agent_memory.files.layout import agents_under, folder_of, read_used_agent, resolve_root
from agent_memory.files.yaml_loader import load_yaml
from agent_memory.memory.consent import ConsentFiles, ConsentState, find_own_folders
from agent_memory.memory.scratchpad_entries import render
from agent_memory.models import Memory, visible
from agent_memory.settings import DEFAULT_ROOT, ScratchpadSettings

if TYPE_CHECKING:
    from collections.abc import Sequence

TOKENS: Final = 500
"""Most tokens of the text at the start of a session."""
_EVENTS: Final = {"session-start": "SessionStart"}
"""Names of the hosts' events by our command's."""
_ADVICE: Final = "The tools of agent-memory find more (search, context) and keep what later sessions need (store)."
_MAX_INPUT: Final = 1_000_000


def run_hook(arguments: Sequence[str]) -> int:
    """Answer a hook of a host; return the exit code 0.

    Args:
        arguments: Name of the hook, then `--agent NAME` if it is not the chosen one.
    """
    name = arguments[0] if arguments else ""
    try:
        event = _EVENTS[name]
        given = _read_input(sys.stdin.read(_MAX_INPUT))
        folder = Path(str(given.get("cwd") or Path.cwd()))
        answer = build_answer(event, build_context(_read_agent(arguments), _find_root(), folder))
    except KeyError:
        answer = {}
        sys.stderr.write(f"agent-memory: no hook {visible(name)!r}; there are: {', '.join(_EVENTS)}\n")
    except (AgentMemoryError, OSError, ValueError, YAMLError) as error:  # a host must start without its memory, too
        answer = {}
        sys.stderr.write(f"agent-memory: this session starts without memory: {error}\n")
    sys.stdout.write(json.dumps(answer, ensure_ascii=False) + "\n")
    return 0


def build_answer(event: str, text: str) -> dict[str, Any]:
    """Return the answer of a hook in the forms of all hosts.

    Claude Code, Codex and Gemini CLI read `hookSpecificOutput`, Cursor `additional_context`.
    """
    if not text:
        return {}
    output = {"hookEventName": event, "additionalContext": text}
    return {"hookSpecificOutput": output, "additional_context": text}


def build_context(agent: str | None, root: Path, folder: Path) -> str:
    """Return the scratchpad of an agent as text, empty if it has none.

    It is read from `scratchpad.yaml`, which every change renders anew; no journal is opened.

    Args:
        agent: Name of the agent; None for the chosen or only one.
        root: Folder of all agents.
        folder: Folder that the host works in.

    Raises:
        AgentMemoryError: The agent is unknown or its files cannot be read.
    """
    agent_id = agent or _choose_agent(root)
    if agent_id is None or not _is_on(agent_id, root, folder):
        return ""
    path = folder_of(agent_id, root).scratchpad
    entries = load_yaml(path.read_text("utf-8")) if path.exists() else None
    memories = [_build_memory(agent_id, entry) for entry in entries or () if isinstance(entry, dict) and "id" in entry]
    if not memories:
        return ""
    text = render(memories, agent_id, ScratchpadSettings(token_budget=TOKENS, briefing=False)).text
    return visible(f"{text}\n{_ADVICE}")


def _build_memory(agent_id: str, entry: dict[str, Any]) -> Memory:
    fields = ("id", "content", "category", "tags", "pinned", "timestamp")
    return Memory.model_validate({"agent_id": agent_id, **{name: entry[name] for name in fields if name in entry}})


def _is_on(agent_id: str, root: Path, folder: Path) -> bool:
    rules = ConsentFiles().read(find_own_folders(str(root), agent_id), folder)
    return ConsentState(rules).is_enabled


def _choose_agent(root: Path) -> str | None:
    """Return the chosen or only agent; None if there is none.

    Raises:
        IdentityError: There are several, and none is chosen.
    """
    agents = agents_under(root)
    if (used := read_used_agent(root)) in agents:
        return used
    if len(agents) > 1:
        raise IdentityError("There are several agents; choose one with `agent-memory use NAME`.", code="which_agent")
    return agents[0] if agents else None


def _read_agent(arguments: Sequence[str]) -> str | None:
    words = list(arguments)
    if "--agent" in words[:-1]:
        return words[words.index("--agent") + 1]
    return os.environ.get("AGENT_MEMORY_AGENT")


def _find_root() -> Path:
    return resolve_root(os.environ.get("AGENT_MEMORY_ROOT") or DEFAULT_ROOT)


def _read_input(text: str) -> dict[str, Any]:
    value = json.loads(text) if text.strip() else {}
    return value if isinstance(value, dict) else {}
