"""Importing the three main modules loads few modules, no feature package and no library that few sessions need."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any, Final

import pytest

from tests.concurrency.processes import environment

if TYPE_CHECKING:
    from pathlib import Path

MAX_MODULES: Final = 95
"""Python modules of the library and of the main modules. A ratchet: it may only fall."""
MAX_RATIO: Final = 1.0
"""CPU time of the main modules relative to amplifier-core + pydantic + numpy. Quiet machines measure 0.7 to 0.8."""
FORBIDDEN: Final = (
    *(
        "agent_memory.knowledge",
        "agent_memory.ingestion",
        "agent_memory.knowledge.entities",
    ),
    *("agent_memory.workspace", "agent_memory.cli", "agent_memory.engines", "agent_memory.web"),
    *("agent_memory.care.encrypted_files", "agent_memory.care.account", "agent_memory.care.privacy.purge"),
    *("agent_memory.care.privacy.file_encryption", "agent_memory.care.archive", "agent_memory.care.backups"),
    *("agent_memory.care.checks", "agent_memory.care.statistics"),
    *("agent_memory.care.tidying", "agent_memory.care.provenance"),
    *("numpy", "onnxruntime", "structlog", "detect_secrets", "requests", "filelock", "yaml", "cryptography"),
)
SCRIPT: Final = """
import importlib, json, sys, time
def load(*names):
    begun = time.process_time()
    for name in names:
        importlib.import_module(name)
    return time.process_time() - begun
base = load("amplifier_core", "pydantic", *sys.argv[1:])
own = load(
    "amplifier_module_tool_memory_semantic",
    "amplifier_module_context_memory_scratchpad",
    "amplifier_module_hooks_memory_capture",
)
print(json.dumps({"modules": sorted(sys.modules), "ratio": own / base}))
"""


def import_main_modules(folder: Path, *also: str) -> dict[str, Any]:
    """Import the main modules in a new process; byte code is kept in a folder."""
    variables = {**environment(), "HOME": str(folder), "PYTHONPYCACHEPREFIX": str(folder)}
    variables.pop("PYTHONDONTWRITEBYTECODE", None)
    command = [sys.executable, "-c", SCRIPT, *also]
    process = subprocess.run(command, env=variables, capture_output=True, text=True, check=True)
    report: dict[str, Any] = json.loads(process.stdout)
    return report


@pytest.fixture(scope="module")
def modules(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    names: list[str] = import_main_modules(tmp_path_factory.mktemp("home"))["modules"]
    return names


def test_main_modules_load_few_modules(modules: list[str]) -> None:
    own = [name for name in modules if f"{name}.".startswith(("agent_memory.", "amplifier_module_"))]
    assert 50 < len(own) <= MAX_MODULES


@pytest.mark.parametrize("package", FORBIDDEN)
def test_main_modules_do_not_load_package(package: str, modules: list[str]) -> None:
    assert [name for name in modules if f"{name}.".startswith(f"{package}.")] == []


def test_main_modules_cost_no_more_than_their_base(tmp_path: Path) -> None:
    import_main_modules(tmp_path, "numpy")  # writes byte code
    assert min(import_main_modules(tmp_path, "numpy")["ratio"] for _ in range(3)) <= MAX_RATIO
