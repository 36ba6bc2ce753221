"""The command that shows or limits consent to store."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import typer

from agent_memory.cli.options import OptionalAgentOption, choose_agent
from agent_memory.cli.render import row
from agent_memory.cli.runtime import CommandContext, command
from agent_memory.files.atomic import make_private_folder, replace_file, translated
from agent_memory.files.layout import agents_under, find_project_root, folder_of
from agent_memory.files.names import CONSENT
from agent_memory.memory.consent import (
    NARROWER,
    ConsentFiles,
    ConsentState,
    find_misplaced,
    find_own_folders,
    read_module_rules,
    read_overrides,
    read_settings,
)
from agent_memory.models.identifiers import DEFAULT_AGENT

if TYPE_CHECKING:
    from agent_memory.cli.screen import OutputScreen

_LIMITS: Final[dict[str, dict[str, Any]]] = {
    "off": {"enabled": False},
    "on": {"enabled": True},
    "autonomous": {"enabled": True, "mode": "autonomous"},
    "ask": {"enabled": True, "mode": "ask"},
    "manual": {"enabled": True, "mode": "manual"},
}
_Limit = Annotated[
    Literal["off", "on", "autonomous", "ask", "manual"] | None,
    typer.Argument(
        metavar="off|on|autonomous|ask|manual",
        help="New limit for sessions; without it, shows the present one.",
        show_default=False,
    ),
]


@command(OptionalAgentOption)
async def consent(place: CommandContext, limit: _Limit = None) -> None:
    """Show or limit what may be stored."""
    named = place.get_options(OptionalAgentOption).agent
    agent = None if named is None else choose_agent(named, place.root, may_be_new=False)
    if limit is not None:
        _write_limit(place.root if agent is None else folder_of(agent, place.root).path, limit)
    agent = agent or _get_usual_agent(place.root)
    state = read_consent(place.root, agent)
    place.screen.document({"agent_id": agent, **consent_document(state)})
    show_consent(place.screen, state)
    for rule in state.rules:
        row(place.screen, "source", f"{rule.source}: {'on' if rule.enabled else 'off'}, mode {rule.modes.mode}")
    if limit == "on" and not state.is_enabled:
        place.screen.note(f"Memory stays off: {state.decided_by()} switches it off.")
    elif limit == "on" and (mode := state.get_mode()) != "autonomous":
        place.screen.hint(f"The mode is still {mode}. Run `agent-memory consent autonomous` to change it.")


def read_consent(root: Path, agent: str | None) -> ConsentState:
    """Return the consent of sessions in this folder.

    A bundle's configuration and a spoken request are not known here.

    Args:
        root: Folder of all agents.
        agent: Name of an agent; None for none.
    """
    folder = Path.cwd()
    rules = ConsentFiles().read(find_own_folders(str(root), agent), folder)
    return ConsentState((*rules, *read_module_rules(read_overrides(folder), folder)))


def consent_document(state: ConsentState) -> dict[str, Any]:
    """Return a consent as a part of an answer."""
    project = _project_here()
    return {
        "enabled": state.is_enabled,
        "mode": state.get_mode(project=project),
        "decided_by": state.decided_by(project=project) or None,
        "sources": [{"source": rule.source, "enabled": rule.enabled, "mode": rule.modes.mode} for rule in state.rules],
        "warnings": [*state.warnings, *find_misplaced(Path.cwd())],
    }


def show_consent(screen: "OutputScreen", state: ConsentState) -> None:
    """Print a consent, its deciding source and its warnings."""
    answer = consent_document(state)
    what = f"mode {answer['mode']}" if state.is_enabled else "off in sessions"
    source = answer["decided_by"] or ("" if state.rules else "default")
    row(screen, "consent", f"{what}, by {source}" if source else what)
    if not state.is_enabled:
        row(screen, "", "Sessions store nothing and show no memory. Commands that you type still work.")
    for warning in answer["warnings"]:
        row(screen, "warning", warning)


def _write_limit(folder: Path, limit: str) -> None:
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
            content, _ = read_settings(path)
        except (FileNotFoundError, ValueError):
            content = None  # not there, or not YAML: what a person says now counts
        keys = NARROWER if "mode" in _LIMITS[limit] else ("mode", *NARROWER)
        earlier = {key: content[key] for key in keys if isinstance(content, dict) and key in content}
        text = yaml.safe_dump({**_LIMITS[limit], **earlier}, allow_unicode=True, sort_keys=False)
        replace_file(path, text.encode(), durable=True)


def _get_usual_agent(root: Path) -> str | None:
    """Return the only agent, else the default one if it exists."""
    agents = agents_under(root)
    return agents[0] if len(agents) == 1 else next((name for name in agents if name == DEFAULT_AGENT), None)


def _project_here() -> str:
    root = find_project_root(Path.cwd())
    return "" if root is None else " ".join(root.name.split())
