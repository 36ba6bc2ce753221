"""The house's shape, read from its source: who imports whom, who writes files, how long a thing may be."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

REPOSITORY = Path(__file__).parents[2]
LIBRARY = REPOSITORY / "src" / "agent_memory"
MODULES = REPOSITORY / "modules"

# Imports go downward only. Names on one line are neighbours and do not import each other.
LAYERS = (
    ("modules", "cli"), ("web",), ("compat",), ("integrations",), ("care",), ("engines", "workspace"), ("knowledge",),
    ("tools",), ("memory",), ("capture",), ("store",), ("index",), ("journal", "embeddings"), ("encryption",),
    ("files",), ("settings",), ("models",), ("redaction", "registry", "times"), ("language",),
    ("earlier_paths", "errors", "late", "logs", "module_loader"), ("earlier_name_tables",),
)  # fmt: skip
# The package's front door re-exports what people use without the host; nothing below it may come back through it.
FRONT = "__init__"
# So do these, which keep earlier import paths: they offer names to programs, and load them when asked for.
ALIASES = ("ingestion", "lifecycle", "memories", "scratchpad", "service", "storage")
# The command line works where no host is.
FORBIDDEN = {("cli", "integrations")}
# Records of the inbox and the archive in the data model, and tools for documents: loaded at their first use.
OFFERED_NAMES = {
    ("models/__init__.pyi", "memory"),
    ("models/__init__.pyi", "care"),
    ("tools/__init__.pyi", "knowledge"),
    ("knowledge/__init__.pyi", "compat"),
}

# Everything written to disk goes through journal/; besides, each of these owns one kind of derived or foreign file.
MAY_TOUCH_FILES = {
    "files": "how files are written with care",
    "journal": "the truth",
    "encryption": "encryption.json; reads what a person names as the place of a key",
    "index": "sealed parts of what is derived",
    "store/segment_builder.py": "the folders of these, renamed when whole",
    "store/segment_opener.py": "the folders of these, removed when nobody uses them",
    "memory/events.py": "events.jsonl",
    "memory/scratchpad_file.py": "scratchpad.yaml",
    "store/shortlist.py": "shortlist.json",
    "knowledge/pages/page_files.py": "topics/*.md",
    "knowledge/llm/language_model.py": "model.json",
    "store/shards.py": "memories.db",
    "care/agents.py": "an agent's whole folder: renamed, copied or deleted because a person says so",
    "embeddings/cache.py": "embeddings.sqlite3; a copy of it in a temporary folder, to be checked",
    "integrations/amplifier/session_notes.py": "_sessions",
    "integrations/host_files.py": "the configuration of a host that a person names",
    "integrations/mcp/turn_files.py": "derived/turns, the state of open sessions",
    "integrations/mcp/http_server.py": "_mcp, the token of a running server",
    "care/privacy/erasure.py": "vectors that nothing says whose they are, and words in what lies beside the journals",
    "care/consent_files.py": "consent.yaml, the limit of a person",
    "care/inventory.py": "backups and files of no agent, deleted because a person says so",
    "care/encrypted_files.py": "kept.encrypted, and derived files that encryption removes",
    "care/backups": "_backups, and journals that a restoring puts in the place of others",
    "knowledge/sources/fact_lists.py": "a private copy of a database of another program",
    "web/temporary_files.py": "temporary files of one run of the page",
    "workspace/core.py": "the declaration of a workspace, copied into its folder",
    "workspace/database/engine.py": "rows.db and the lock its writers wait for",
    "workspace/snapshots": "files of snapshots and copies of the database",
    "workspace/export.py": "what a person names to be written to",
    "care/journal_inspection.py": "reads a journal without taking it over",
    "care/checks": "repairs: copies of the journal, what is moved aside or made anew; looks at all of them",
    "cli": "what a person names on the command line",
}
WRITING_CALLS = {
    "write_text", "write_bytes", "mkdir", "unlink", "rename", "rmdir", "chmod", "symlink_to", "hardlink_to", "rmtree",
    "replace_file", "open_private", "makedirs", "removedirs", "truncate", "ftruncate", "copyfile", "copytree", "move",
}  # fmt: skip

# What storage is told to keep is cleaned at its one door, or was: nothing else may say so.
MAKES_REDACTED = "store/record_redaction.py"
DOORS = {"store", "store_many", "update"}

# The one write path: only the service changes what is stored. The manager is a public class of its own.
MAY_CHANGE_MEMORIES = {
    "memory", "store",
    "knowledge/intake/ingest.py",  # records of other kinds, which came in from outside
    "knowledge/pipeline/stages.py",  # how far background work is
    "care/import_records.py",  # memories of an export, for the writer
}  # fmt: skip
CHANGING_CALLS = {"store", "store_compared", "store_many", "update", "change", "delete", "touch"}
# Outside the service, its storage is only read.
STORAGE_WRITES = CHANGING_CALLS | {"update_many", "forget_many", "move_out", "add_traces", "compact"}

MAX_FILE_LINES = 600
MAX_BODY_LINES = 40
LONG_FOR_A_REASON = "# long:"


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


def sources() -> list[Path]:
    return sorted([*LIBRARY.rglob("*.py"), *LIBRARY.rglob("*.pyi"), *MODULES.glob("*/amplifier_module_*/**/*.py")])


def place_of(path: Path) -> str:
    """Return where a file stands: `store/store.py`, or `modules/…`."""
    inside = path.is_relative_to(LIBRARY)
    return path.relative_to(LIBRARY).as_posix() if inside else path.relative_to(REPOSITORY).as_posix()


def layer_of(path: Path) -> str:
    return place_of(path).partition("/")[0].removesuffix(".pyi").removesuffix(".py")


def imports_of(path: Path) -> Iterator[tuple[str, int]]:
    """Yield every imported module and its line, those for type checking and within functions too."""
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{place_of(path)}:{node.lineno}: imports are absolute here"
            yield node.module or "", node.lineno
            if node.module == "agent_memory":
                yield from ((f"agent_memory.{alias.name}", node.lineno) for alias in node.names)


def rank(layer: str) -> int:
    return next((number for number, names in enumerate(LAYERS) if layer in names), len(LAYERS))


def test_every_part_of_the_library_has_its_layer() -> None:
    known = {name for names in LAYERS for name in names} | {FRONT, *ALIASES}
    assert {layer_of(path) for path in sources()} <= known


def _imports_go_downward(path: Path) -> list[str]:
    layer = layer_of(path)
    if layer == FRONT or layer in ALIASES:
        return []
    wrong = []
    for name, line in imports_of(path):
        parts = name.split(".")
        if parts[0] != "agent_memory":
            continue
        target = parts[1] if len(parts) > 1 else FRONT
        if target == layer or (place_of(path), target) in OFFERED_NAMES:
            continue
        if target == FRONT or rank(target) <= rank(layer) or (layer, target) in FORBIDDEN:
            wrong.append(f"{place_of(path)}:{line} imports {name}")
    return wrong


def test_imports_go_downward() -> None:
    assert [found for path in sources() for found in _imports_go_downward(path)] == []


def _only_modules_know_the_host_and_none_knows_another(path: Path) -> list[str]:
    own = path.relative_to(MODULES).parts[1] if path.is_relative_to(MODULES) else None
    wrong = []
    for name, line in imports_of(path):
        top = name.partition(".")[0]
        host = top.startswith("amplifier")
        allowed = own is not None and top in {"amplifier_core", own, "amplifier_module_context_simple"}
        if host and not allowed:
            wrong.append(f"{place_of(path)}:{line} imports {name}")
    return wrong


def test_only_modules_know_the_host_and_none_knows_another() -> None:
    assert [found for path in sources() for found in _only_modules_know_the_host_and_none_knows_another(path)] == []


def permitted(place: str, places: object) -> bool:
    return any(place == each or place.startswith(f"{each}/") for each in places)  # type: ignore[attr-defined]


def _files_are_written_only_where_that_is_the_job(path: Path) -> list[str]:
    if permitted(place_of(path), MAY_TOUCH_FILES):
        return []
    wrong = []
    for node in ast.walk(parsed(path)):
        if not isinstance(node, ast.Call):
            continue
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        receiver = ast.unparse(node.func.value) if isinstance(node.func, ast.Attribute) else ""
        renames = name == "replace" and receiver and len(node.args) == 1 and not node.keywords
        opens = name == "open" and (receiver in {"", "os", "io"} or "path" in receiver.lower())
        if name in WRITING_CALLS or opens or renames:
            wrong.append(f"{place_of(path)}:{node.lineno} {ast.unparse(node)[:80]}")
    return wrong


def test_files_are_written_only_where_that_is_the_job() -> None:
    assert [found for path in sources() for found in _files_are_written_only_where_that_is_the_job(path)] == []


def _only_the_service_changes_memories(path: Path) -> list[str]:
    if permitted(place_of(path), MAY_CHANGE_MEMORIES):
        return []
    return [
        f"{place_of(path)}:{node.lineno} {ast.unparse(node)[:80]}"
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in CHANGING_CALLS
        and ast.unparse(node.func.value).rpartition(".")[2].strip("_") in {"storage", "store"}
    ]


def test_only_the_service_changes_memories() -> None:
    assert [found for path in sources() for found in _only_the_service_changes_memories(path)] == []


def _list_writes_past_the_service(path: Path) -> list[str]:
    if layer_of(path) == "memory":
        return []
    return [
        f"{place_of(path)}:{node.lineno} {ast.unparse(node)[:80]}"
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.Attribute)
        and node.attr in STORAGE_WRITES
        and re.search(r"\bservice\.storage$", ast.unparse(node.value).replace("_service", "service"))
    ]


def test_storage_of_the_service_is_only_read_outside() -> None:
    assert [found for path in sources() for found in _list_writes_past_the_service(path)] == []


def test_nothing_is_called_redacted_where_it_is_not_made_so() -> None:
    makers = {
        place_of(path)
        for path in sources()
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2].startswith("Redacted")
    }
    assert makers == {MAKES_REDACTED}


def test_no_backend_has_a_door_of_its_own() -> None:
    """`RecordStorage` cleans what comes in; an overridden `store` would be a way past that."""
    own = {
        f"{place_of(path)} {kind.name}.{part.name}"
        for path in sources()
        if layer_of(path) in {"engines", "store"}
        for kind in ast.walk(parsed(path))
        if isinstance(kind, ast.ClassDef)
        for part in kind.body
        if isinstance(part, ast.AsyncFunctionDef) and part.name in DOORS
    }
    assert own == {f"store/record_storage.py RecordStorage.{door}" for door in DOORS}


def _files_and_functions_are_short(path: Path) -> list[str]:
    lines = path.read_text(encoding="utf-8").splitlines()
    long = [] if len(lines) < MAX_FILE_LINES else [f"{place_of(path)} has {len(lines)} lines"]
    for node in ast.walk(parsed(path)):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) or LONG_FOR_A_REASON in lines[node.lineno - 1]:
            continue
        body = node.body[1:] if ast.get_docstring(node) is not None and len(node.body) > 1 else node.body
        length = (node.end_lineno or node.lineno) - body[0].lineno + 1
        if length >= MAX_BODY_LINES:
            long.append(f"{place_of(path)}:{node.lineno} {node.name} has {length} lines")
    return long


def test_files_and_functions_are_short() -> None:
    assert [found for path in sources() for found in _files_and_functions_are_short(path)] == []


def _every_file_says_what_it_owns(path: Path) -> list[str]:
    docstring = ast.get_docstring(parsed(path))
    is_stub = path.suffix == ".pyi"  # its package says it
    return [] if is_stub or (docstring and len(docstring) > 20) else [f"{place_of(path)} does not say what it owns"]


def test_every_file_says_what_it_owns() -> None:
    assert [found for path in sources() for found in _every_file_says_what_it_owns(path)] == []


def test_the_layer_test_sees_what_it_should(tmp_path: Path) -> None:
    """Guard the guard: imports in functions, for types only, and through the front door are all seen."""
    path = tmp_path / "x.py"
    path.write_text(
        "from typing import TYPE_CHECKING\n"
        "if TYPE_CHECKING:\n    from agent_memory.integrations.amplifier import MemorySession\n"
        "def f():\n    import agent_memory.memory\n    from agent_memory import store\n"
    )
    found = {name for name, _ in imports_of(path)}
    assert {"agent_memory.integrations.amplifier", "agent_memory.memory", "agent_memory.store"} <= found
    assert rank("integrations") < rank("memory") < rank("store") < rank("journal") < rank("models") < rank("errors")
