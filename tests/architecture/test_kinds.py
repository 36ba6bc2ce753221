"""No layer below the service names a kind of record; no class is too wide; no two modules need each other."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Final

from agent_memory.memory.kinds import KINDS
from tests.architecture.test_layers import LIBRARY, layer_of, parsed, place_of, sources

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

NAME_NO_KIND: Final = {"journal", "store", "index", "engines", "files", "redaction", "embeddings"}
MAY_NAME_ONE: Final = {
    "files/processes.py": "a reason, the memory of a process",
    "store/memory_storage.py": "memories in files, and which storage has an agent's memories",
    "engines/server_storage.py": "memories on a server",
    "engines/vector_storage.py": "memories in files with a vector index",
}
LOADED_LATE: Final = {"workspace/__init__.pyi"}
"""Front doors, behind which is loaded what a caller asks for."""


def _own_words(tree: ast.Module) -> Iterator[ast.Constant]:
    """Yield the literals of a module that are no documentation and no words for people."""
    spoken = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    called = {"counted", "number"}
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] in called:
            spoken |= {id(each) for each in node.args}
    yield from (node for node in ast.walk(tree) if isinstance(node, ast.Constant) and id(node) not in spoken)


def _named_in(path: Path) -> Iterator[str]:
    models = {kind.model.__name__ for kind in KINDS} | {kind.name.upper() for kind in KINDS}
    for node in _own_words(parsed(path)):
        for kind in KINDS:
            if node.value == kind.name or (isinstance(node.value, str) and kind.prefix in node.value.split()):
                yield f"{place_of(path)}:{node.lineno} says {node.value!r}"
    for imported in ast.walk(parsed(path)):
        if isinstance(imported, ast.ImportFrom):
            yield from (
                f"{place_of(path)}:{imported.lineno} imports {alias.name}"
                for alias in imported.names
                if alias.name in models
            )


def test_no_layer_below_the_service_names_a_kind() -> None:
    below = [path for path in sources() if layer_of(path) in NAME_NO_KIND and place_of(path) not in MAY_NAME_ONE]
    assert below
    assert [named for path in below for named in _named_in(path)] == []


def _needs() -> dict[str, set[str]]:
    """Return which modules of the library each one imports anywhere, for types only too."""
    places = {
        path: "agent_memory." + place_of(path).partition(".py")[0].removesuffix("/__init__").replace("/", ".")
        for path in sources()
        if path.is_relative_to(LIBRARY) and place_of(path) not in {"__init__.py", "__init__.pyi", *LOADED_LATE}
    }
    names = set(places.values())
    needs: dict[str, set[str]] = {name: set() for name in names}
    for path, name in places.items():
        found = needs[name]
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.Import):
                found.update(alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module:
                found.update(
                    whole if (whole := f"{node.module}.{alias.name}") in names else node.module for alias in node.names
                )
        found.intersection_update(names)
    return needs


def test_no_two_modules_need_each_other() -> None:
    """What only needs what is settled is settled, too; what is left at the end goes in a circle."""
    open_ones = _needs()
    while settled := {name for name, needs in open_ones.items() if not needs & open_ones.keys()}:
        open_ones = {name: needs for name, needs in open_ones.items() if name not in settled}
    assert {name: sorted(needs & open_ones.keys()) for name, needs in open_ones.items()} == {}
