"""Release files in `dist/`: `python -m scripts.release NAMESPACE`.

Builds the wheel, checks it in an empty environment, and writes `server.json` for the registry of MCP servers. Publishes
nothing.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
import venv
from pathlib import Path
from typing import Any, Final

REPOSITORY: Final = Path(__file__).resolve().parents[1]
DIST: Final = REPOSITORY / "dist"
_SCHEMA: Final = "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json"
_EXTRAS: Final = "cli,local,mcp"
_LIST: Final = 2
"""ID of the request for the tools."""
_CLIENT: Final = {"name": "release", "version": "1"}
_REQUESTS: Final = (
    {"id": 1, "method": "initialize"}
    | {"params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": _CLIENT}},
    {"method": "notifications/initialized"},
    {"id": _LIST, "method": "tools/list", "params": {}},
)


def build_server_document(namespace: str) -> dict[str, Any]:
    """Return the entry for the registry of MCP servers.

    Args:
        namespace: Namespace that the owner has verified there, such as `io.github.NAME`.
    """
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    manifest = json.loads((REPOSITORY / "plugins" / "agent-memory" / ".claude-plugin" / "plugin.json").read_bytes())
    package = {
        "registryType": "pypi",
        "identifier": project["name"],
        "version": project["version"],
        "runtimeHint": "uvx",
        "packageArguments": [{"type": "positional", "value": "mcp"}],
        "transport": {"type": "stdio"},
    }
    return {
        "$schema": _SCHEMA,
        "name": f"{namespace}/agent-memory",
        "title": "agent-memory",
        "description": manifest["description"],
        "version": project["version"],
        "packages": [package],
    }


def build_wheel() -> Path:
    """Build the wheel into an empty `dist/` and return its path."""
    shutil.rmtree(DIST, ignore_errors=True)
    _run(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(DIST), str(REPOSITORY))
    (wheel,) = DIST.glob("*.whl")
    return wheel


def check_wheel(wheel: Path, folder: Path) -> None:
    """Check that a wheel stores, finds and serves in an empty environment.

    Args:
        wheel: Path of the wheel.
        folder: Empty folder for the environment and the home.

    Raises:
        subprocess.CalledProcessError: A command failed.
        ValueError: The server did not list its tools.
    """
    venv.create(folder / "venv", with_pip=True)
    python, home = folder / "venv" / "bin" / "python", folder / "home"
    home.mkdir()
    _run(str(python), "-m", "pip", "install", "--quiet", f"{wheel}[{_EXTRAS}]")
    program = [str(python.with_name("agent-memory"))]
    environment = {"HOME": str(home), "PATH": os.environ["PATH"]}
    for arguments in (["--version"], ["store", "-a", "bob", "Use PostgreSQL for the ledger"], ["search", "ledger"]):
        _run(*program, *arguments, env=environment, cwd=home)
    lines = [json.dumps({"jsonrpc": "2.0", **request}) for request in _REQUESTS]
    answer = subprocess.run(  # noqa: S603 - the program of the wheel
        [*program, "mcp"], input="\n".join([*lines, ""]), env=environment, cwd=home, capture_output=True, text=True,
        check=True,
    )  # fmt: skip
    tools = [message for message in map(json.loads, answer.stdout.splitlines()) if message.get("id") == _LIST]
    if not tools or not tools[0].get("result", {}).get("tools"):
        raise ValueError(f"the server listed no tools: {answer.stdout[:500]}")
    print(f"server  {len(tools[0]['result']['tools'])} tools")


def _run(*command: str, **options: Any) -> None:
    print("$", *command)
    subprocess.run(command, check=True, **options)  # noqa: S603 - commands of this file


def main(arguments: list[str]) -> int:
    """Write the release files; return the exit status."""
    if len(arguments) != 1:
        print(__doc__, file=sys.stderr)
        return 2
    wheel = build_wheel()
    with tempfile.TemporaryDirectory() as folder:
        check_wheel(wheel, Path(folder))
    document = json.dumps(build_server_document(arguments[0]), indent=2)
    (DIST / "server.json").write_text(f"{document}\n", encoding="utf-8")
    print(f"wrote   {wheel.name} and server.json to dist/")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
