"""What is public is listed, the list is true, and the promised names are there."""

from __future__ import annotations

import ast
import importlib
from pathlib import Path
from types import ModuleType

from tests.rows import check_rows

REPOSITORY = Path(__file__).parents[1]
PACKAGES = sorted(
    ".".join(path.parent.relative_to(root).parts)
    for root in (REPOSITORY / "src", *sorted((REPOSITORY / "modules").iterdir()))
    for path in root.rglob("__init__.py")
    if "__pycache__" not in path.parts
)
PROMISED = [
    ("agent_memory.models", ("Memory", "MemorySearchResult", "Observation", "Scratchpad")),
    ("agent_memory.storage", ("MemoryStorage", "FileStorage", "VectorStorage", "MigrationProgress", "detect_storage")),
    ("agent_memory.scratchpad", ("ScratchpadManager",)),
    ("agent_memory.embeddings", ("EmbeddingGenerator",)),
    ("agent_memory.errors", ("AgentMemoryError", "StorageError", "ValidationError", "ConfigurationError", "BusyError")),
]


def public_names(package: str) -> list[str]:
    """Return what the package's `__init__` brings in or defines under a name that is no private one."""
    module = importlib.import_module(package)
    assert module.__file__
    names: list[str] = []
    for node in ast.parse(Path(module.__file__).read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == package.split(".", maxsplit=1)[0]:
            names += [alias.asname or alias.name for alias in node.names]
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.append(node.name)
    return [name for name in names if not name.startswith("_")]


@check_rows("package", PACKAGES)
def test_all_lists_what_a_package_brings_in_and_nothing_else(package: str) -> None:
    module = importlib.import_module(package)
    listed: list[str] = getattr(module, "__all__", [])
    assert len(set(listed)) == len(listed)
    for name in listed:
        assert hasattr(module, name), name
    if not package.startswith("amplifier_module_") and listed:
        missing = {name for name in public_names(package) if not isinstance(getattr(module, name), ModuleType)}
        assert missing <= set(listed)


@check_rows("package", [package for package in PACKAGES if package.count(".") == 1])
def test_a_package_that_offers_something_says_what(package: str) -> None:
    if public_names(package) and package != "agent_memory.cli":  # a command, not a library
        assert importlib.import_module(package).__all__


@check_rows(("package", "names"), PROMISED)
def test_promised_names_can_be_imported(package: str, names: tuple[str, ...]) -> None:
    module = importlib.import_module(package)
    for name in names:
        assert getattr(module, name).__doc__


def test_a_package_is_typed() -> None:
    assert (REPOSITORY / "src" / "agent_memory" / "py.typed").exists()
