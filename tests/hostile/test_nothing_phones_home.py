"""No default of this package looks up a name, opens a connection, or leaves a file outside the agents' folders.

Libraries below do such things by themselves, in threads of C++ that Python's own hooks do not see, so a session is
watched from outside: by what it leaves in an empty home, and, call by call, by `strace`.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.concurrency.processes import REPOSITORY, environment
from tests.hostile.attacks import attack
from tests.power.tracing import reason_not_to

if TYPE_CHECKING:
    from pathlib import Path

SESSION = REPOSITORY / "tests" / "hostile" / "a_session.py"
LONG_ENOUGH = 15.0
"""Seconds with a loaded model: onnxruntime sends its first report within some ten."""
RUNTIME = "src/agent_memory/embeddings/onnx_runtime.py"

_WATCHED = "socket,connect,bind,sendto,sendmsg,sendmmsg,open,openat,openat2,creat,execve"
_TO_A_NETWORK = re.compile(r"\b(connect|sendto|sendmsg|sendmmsg)\(.*(AF_INET|sin_port|sin6_port)")
_NAMES = ("/etc/resolv.conf", "/etc/hosts", "nscd/socket", "libnss_dns", "systemd/resolve")
_CHANGING = re.compile(r"O_(WRONLY|RDWR|CREAT)")
_OPENED = re.compile(r'\b(?:open|openat|openat2|creat)\([^"]*"([^"]*)"')
_INET_SOCKET = re.compile(r"\bsocket\(AF_INET")


def _left_in(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def _session(home: Path, root: Path, seconds: float, *before: str, **extra: str) -> str:
    command = [*before, sys.executable, str(SESSION), str(root), str(seconds)]
    env = {**environment(), "HOME": str(home), "PYTHONDONTWRITEBYTECODE": "1", "TMPDIR": str(home), **extra}
    env.pop("ORT_DISABLE_TELEMETRY", None)
    done = subprocess.run(
        command, cwd=home, env={**env, **extra}, capture_output=True, encoding="utf-8", timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.parametrize("given", [{}, {"ORT_DISABLE_TELEMETRY": "0"}, {"ORT_DISABLE_TELEMETRY": ""}])
@attack("telemetry-file")
def test_a_session_with_a_loaded_model_leaves_nothing_in_the_home(
    home: Path, root: Path, given: dict[str, str]
) -> None:
    assert _session(home, root, 0.5, **given) == "hybrid vector None"
    assert _left_in(home) == []


def test_a_program_that_imported_the_runtime_first_is_told(home: Path, root: Path, tmp_path: Path) -> None:
    """Nobody can undo what an import has begun, so it is said."""
    (tmp_path / "sitecustomize.py").write_text("import onnxruntime\n")
    path = f"{tmp_path}:{environment()['PYTHONPATH']}"
    assert "without ORT_DISABLE_TELEMETRY=1" in _session(home, root, 0, PYTHONPATH=path)
    quiet = _session(home, root, 0, PYTHONPATH=path, ORT_DISABLE_TELEMETRY="1")
    assert quiet == "hybrid vector None"


def test_only_one_file_imports_the_runtime() -> None:
    found = set()
    for folder in ("src", "modules", "benchmarks", "scripts", "demo", "tests"):
        for file in (REPOSITORY / folder).rglob("*.py"):
            text = file.read_text("utf-8")
            for node in ast.walk(ast.parse(text)) if "onnxruntime" in text else ():
                if isinstance(node, ast.Import | ast.ImportFrom):
                    names = [alias.name for alias in node.names] + [getattr(node, "module", None) or ""]
                    if any(name.split(".")[0] == "onnxruntime" for name in names):
                        found.add(str(file.relative_to(REPOSITORY)))
    assert found == {RUNTIME}


@pytest.mark.deep
@attack("network")
def test_no_call_of_a_living_session_reaches_for_a_network(home: Path, root: Path, tmp_path: Path) -> None:
    if (reason := reason_not_to()) is not None:
        pytest.skip(reason)
    log = tmp_path / "calls"
    watch = ("strace", "-f", "-qq", "-s", "300", "-e", f"trace={_WATCHED}", "-o", str(log))
    assert _session(home, root, LONG_ENOUGH, *watch) == "hybrid vector None"
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    assert len(lines) > 1000, "the session was watched"
    assert [line for line in lines if _TO_A_NETWORK.search(line)] == []
    assert [line for line in lines if any(name in line for name in _NAMES)] == []
    assert [line for line in lines if "Microsoft" in line or "onnxruntime.db" in line] == []
    assert [line for line in lines if _INET_SOCKET.search(line)] == []
    opened = [_OPENED.search(line) for line in lines if _CHANGING.search(line) or "creat(" in line]
    changed = {found[1] for found in opened if found is not None}
    ours = (str(root), str(home), "/dev/null", "/proc/self/")
    assert {path for path in changed if path.startswith("/") and not path.startswith(ours)} == set()
    assert _left_in(home) == []
