"""Consent in a folder: reads its sources, writes the person's limit."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from agent_memory.files.atomic import make_private_folder, replace_file, translated
from agent_memory.files.layout import find_project_root
from agent_memory.files.names import CONSENT
from agent_memory.memory import consent

LIMITS: Final[dict[str, dict[str, Any]]] = {
    "off": {"enabled": False},
    "on": {"enabled": True},
    **{mode: {"enabled": True, "mode": mode} for mode in ("autonomous", "ask", "manual")},
}


def read_consent(root: Path, agent: str | None) -> consent.ConsentState:
    """Return the consent of sessions in this folder.

    A bundle's configuration and a spoken request are not known here.

    Args:
        root: Folder of all agents.
        agent: Name of an agent; None for none.
    """
    folder = Path.cwd()
    rules = consent.ConsentFiles().read(consent.find_own_folders(str(root), agent), folder)
    return consent.ConsentState((*rules, *consent.read_module_rules(consent.read_overrides(folder), folder)))


def view_consent(state: consent.ConsentState) -> dict[str, Any]:
    """Return a consent as a part of an answer."""
    root = find_project_root(Path.cwd())
    project = "" if root is None else " ".join(root.name.split())
    return {
        "enabled": state.is_enabled,
        "mode": state.get_mode(project=project),
        "decided_by": state.decided_by(project=project) or None,
        "sources": [{"source": rule.source, "enabled": rule.enabled, "mode": rule.modes.mode} for rule in state.rules],
        "warnings": [*state.warnings, *consent.find_misplaced(Path.cwd())],
    }


def write_limit(folder: Path, limit: str) -> None:
    """Write a limit to the consent file of a folder.

    Modes of projects and categories in it stay; `off` and `on` keep its mode, too.

    Raises:
        StorageError: It could not be written.
    """
    import yaml

    path = folder / CONSENT
    with translated(path, "write"):
        make_private_folder(folder)
        try:
            content, _ = consent.read_settings(path)
        except (FileNotFoundError, ValueError):
            content = None  # not there, or not YAML: what a person says now counts
        keys = consent.NARROWER if "mode" in LIMITS[limit] else ("mode", *consent.NARROWER)
        earlier = {key: content[key] for key in keys if isinstance(content, dict) and key in content}
        text = yaml.safe_dump({**LIMITS[limit], **earlier}, allow_unicode=True, sort_keys=False)
        replace_file(path, text.encode(), durable=True)
