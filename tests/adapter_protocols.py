"""Stand-ins for the packages of other frameworks, with the parts of their protocols that our adapters use.

A test imports `use_protocols` first: where a package is installed, it is used itself.
"""

from __future__ import annotations

import sys
from contextlib import suppress
from importlib import import_module
from types import ModuleType, SimpleNamespace
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from datetime import datetime


class ToolError(Exception):
    """Error that a model reads."""


class MemoryToolBase:
    """Base class of a memory tool."""

    def __init__(self, *, cache_control: Any = None) -> None:
        self.cache_control = cache_control

    def call(self, command: dict[str, Any]) -> Any:
        """Carry out a command."""
        return getattr(self, command["command"])(SimpleNamespace(**{"view_range": None, **command}))


class GetOp(NamedTuple):
    """Read of one item."""

    namespace: tuple[str, ...]
    key: str
    refresh_ttl: bool = True


class SearchOp(NamedTuple):
    """Search below a namespace."""

    namespace_prefix: tuple[str, ...]
    filter: dict[str, Any] | None = None
    limit: int = 10
    offset: int = 0
    query: str | None = None
    refresh_ttl: bool = True


class MatchCondition(NamedTuple):
    """Condition on a namespace."""

    match_type: str
    path: tuple[str, ...]


class ListNamespacesOp(NamedTuple):
    """List of namespaces."""

    match_conditions: tuple[MatchCondition, ...] | None = None
    max_depth: int | None = None
    limit: int = 100
    offset: int = 0


class PutOp(NamedTuple):
    """Write of one item; without a value it is deleted."""

    namespace: tuple[str, ...]
    key: str
    value: dict[str, Any] | None
    index: Any = None
    ttl: float | None = None


class StoredItem(NamedTuple):
    """Item of a store."""

    namespace: tuple[str, ...]
    key: str
    value: dict[str, Any]
    created_at: datetime
    updated_at: datetime
    score: float | None = None


class StoreBase:
    """Base class of a store."""

    def put(self, namespace: tuple[str, ...], key: str, value: dict[str, Any]) -> None:
        """Store an item."""
        self.batch([PutOp(namespace, key, value)])

    def search(self, namespace: tuple[str, ...], **options: Any) -> Any:
        """Return the items below a namespace."""
        return self.batch([SearchOp(namespace, **options)])[0]

    def batch(self, ops: Any) -> list[Any]:
        """Carry out operations."""
        raise NotImplementedError


class FunctionEmbeddings:
    """Embeddings by a function of several texts."""

    def __init__(self, function: Any) -> None:
        self.embed_documents = function

    def embed_query(self, text: str) -> Any:
        """Return the vector of one text."""
        return self.embed_documents([text])[0]


class SessionBase:
    """Base class of a session."""


class SessionLimit:
    """Settings of a session."""

    def __init__(self, limit: int | None = None) -> None:
        self.limit = limit


def read_path(value: dict[str, Any], path: str) -> list[str]:
    """Return the text of one field."""
    return [str(value[path])] if path in value else []


def coerce_settings(value: Any) -> Any:
    """Return settings of a session."""
    return SessionLimit(**value) if isinstance(value, dict) else value


def resolve_limit(explicit_limit: int | None, settings: Any) -> int | None:
    """Return the limit of a call, else that of the settings."""
    return settings.limit if explicit_limit is None else explicit_limit


_MODULES: dict[str, dict[str, Any]] = {
    "anthropic.lib.tools": {
        "BetaAbstractMemoryTool": MemoryToolBase,
        "BetaAsyncAbstractMemoryTool": MemoryToolBase,
        "ToolError": ToolError,
    },
    "langgraph.store.base": {
        **{kind.__name__: kind for kind in (GetOp, ListNamespacesOp, MatchCondition, PutOp, SearchOp)},
        "BaseStore": StoreBase,
        "Item": StoredItem,
        "SearchItem": StoredItem,
        "Op": Any,
        "Result": Any,
        "IndexConfig": dict,
        "TTLConfig": dict,
        "ensure_embeddings": FunctionEmbeddings,
        "get_text_at_path": read_path,
    },
    "agents.memory": {"SessionABC": SessionBase, "SessionSettings": SessionLimit},
    "agents.memory.session_settings": {
        "coerce_session_settings": coerce_settings,
        "resolve_session_limit": resolve_limit,
    },
}


def use_protocols(package: str) -> None:
    """Put stand-ins for the modules of a package that is not installed."""
    modules = {name: members for name, members in _MODULES.items() if name.partition(".")[0] == package}
    with suppress(ModuleNotFoundError):
        for name in modules:
            import_module(name)
        return
    for name, members in modules.items():
        parts = name.split(".")
        for end in range(1, len(parts) + 1):
            sys.modules.setdefault(".".join(parts[:end]), ModuleType(".".join(parts[:end])))
        vars(sys.modules[name]).update(members)
