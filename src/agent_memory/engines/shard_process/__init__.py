"""The embedded vector engine: Qdrant's own, in a process of its own, behind one adapter.

Every call of the engine holds the interpreter lock, and a damaged file can take the process down with it. So it never
runs in the agent's process: `process` runs it in a child, `client` talks to that child, `shard` alone knows
the engine's names. Importing this package loads neither numpy nor the engine.
"""

from typing import TYPE_CHECKING

from agent_memory.late import offer as _offer

if TYPE_CHECKING:
    from agent_memory.engines.shard_process.client import Candidates, EngineClient
    from agent_memory.engines.shard_process.points import Conditions, label_of, payload_of
    from agent_memory.files.processes import child_environment, python_module

__all__ = [
    "Candidates",
    "Conditions",
    "EngineClient",
    "child_environment",
    "label_of",
    "payload_of",
    "python_module",
]

if not TYPE_CHECKING:  # a type checker would take it for every name there is
    __getattr__, __dir__ = _offer(__name__)
