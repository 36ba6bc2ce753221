"""Forgetting by request: which memories, or which clauses of them, words such as "forget Ann's badge" mean. Pure."""

from agent_memory.forgetting.request import Request, lookups, read_request
from agent_memory.forgetting.resolving import Target, resolve

__all__ = ["Request", "Target", "lookups", "read_request", "resolve"]
