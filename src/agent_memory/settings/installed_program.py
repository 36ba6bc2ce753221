"""Environment of the installed program, and commands that upgrade or remove it."""

from __future__ import annotations

import json
import os
import shlex
import sys
from pathlib import Path
from typing import Any, Final

from agent_memory.settings.installation import DISTRIBUTION

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
