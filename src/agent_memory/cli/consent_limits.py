"""The command that shows or limits consent to store."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from agent_memory.care.consent_files import read_consent, view_consent, write_limit
from agent_memory.cli.options import OptionalAgentOption, choose_agent
from agent_memory.cli.render import row
from agent_memory.cli.runtime import CommandContext, command
from agent_memory.files.layout import agents_under, folder_of
from agent_memory.models.identifiers import DEFAULT_AGENT

if TYPE_CHECKING:
    from agent_memory.cli.screen import OutputScreen
    from agent_memory.memory.consent import ConsentState

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
        write_limit(place.root if agent is None else folder_of(agent, place.root).path, limit)
    agent = agent or _get_usual_agent(place.root)
    state = read_consent(place.root, agent)
    place.screen.document({"agent_id": agent, **view_consent(state)})
    show_consent(place.screen, state)
    for rule in state.rules:
        row(place.screen, "source", f"{rule.source}: {'on' if rule.enabled else 'off'}, mode {rule.modes.mode}")
    if limit == "on" and not state.is_enabled:
        place.screen.note(f"Memory stays off: {state.decided_by()} switches it off.")
    elif limit == "on" and (mode := state.get_mode()) != "autonomous":
        place.screen.hint(f"The mode is still {mode}. Run `agent-memory consent autonomous` to change it.")


def show_consent(screen: "OutputScreen", state: "ConsentState") -> None:
    """Print a consent, its deciding source and its warnings."""
    answer = view_consent(state)
    what = f"mode {answer['mode']}" if state.is_enabled else "off in sessions"
    source = answer["decided_by"] or ("" if state.rules else "default")
    row(screen, "consent", f"{what}, by {source}" if source else what)
    if not state.is_enabled:
        row(screen, "", "Sessions store nothing and show no memory. Commands that you type still work.")
    for warning in answer["warnings"]:
        row(screen, "warning", warning)


def _get_usual_agent(root: Path) -> str | None:
    """Return the only agent, else the default one if it exists."""
    agents = agents_under(root)
    return agents[0] if len(agents) == 1 else next((name for name in agents if name == DEFAULT_AGENT), None)
