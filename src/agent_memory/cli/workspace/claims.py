"""`workspace claim`: claim, renew, finish, release or fail a step."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agent_memory.cli.exit_codes import NOT_FOUND
from agent_memory.cli.runtime import CommandContext, command
from agent_memory.cli.workspace.workspace_choice import WorkspaceOptions, open_workspace
from agent_memory.errors import ValidationError

if TYPE_CHECKING:
    from agent_memory.workspace import Claim


@command(WorkspaceOptions)
async def claim(  # noqa: PLR0913 - the options of a command
    place: CommandContext,
    step: Annotated[
        str | None,
        typer.Argument(metavar="STEP", help="Name of a step; default: the first that can run.", show_default=False),
    ] = None,
    *,
    agent: Annotated[str | None, typer.Option("--agent", help="Only steps of this agent.", metavar="NAME")] = None,
    owner: Annotated[str, typer.Option("--owner", help="Name of the claiming worker.", metavar="NAME")] = "cli",
    seconds: Annotated[int | None, typer.Option("--seconds", min=1, help="Seconds that the claim lasts.")] = None,
    finish: Annotated[bool, typer.Option("--finish", help="Finish the claim from stdin.")] = False,
    release: Annotated[bool, typer.Option("--release", help="Release the claim from stdin.")] = False,
    renew: Annotated[bool, typer.Option("--renew", help="Extend the claim from stdin.")] = False,
    fail: Annotated[
        str | None, typer.Option("--fail", help="Fail the claim from stdin, for this reason.", metavar="WHY")
    ] = None,
) -> None:
    """Claim a step; --finish, --release, --renew, --fail read it from stdin.

    Exits with 3 if no step can run.
    """
    if finish + release + renew + (fail is not None) > 1:
        raise ValidationError("--finish, --release, --renew and --fail exclude each other.", code="invalid")
    with open_workspace(place) as workspace:
        if finish or release or renew or fail is not None:
            held = claim_in(sys.stdin.read(), "Stdin")
            if renew:
                _show(place, workspace.steps.renew(held, seconds=seconds or 600))
            elif finish:
                phase = workspace.steps.finish(held)
                _say(place, held, f"{held.step} is done" + (f", and with it {phase}." if phase else "."))
                for snapshot in workspace.snapshots.list_owed() if phase else ():
                    place.screen.note(snapshot)
            elif release:
                workspace.steps.release(held)
                _say(place, held, f"{held.step} was given back.")
            else:
                remaining = workspace.steps.fail(held, "quality", fail or "")
                _say(place, held, f"{held.step} failed; it may be tried {remaining} times more.")
            return
        made = workspace.steps.claim(owner, step=step, agent=agent, seconds=seconds)
    if made is None:
        place.screen.document({"claim": None})
        place.screen.note("No step can run now.")
        raise typer.Exit(NOT_FOUND)
    _show(place, made)
    if not place.screen.json:
        place.screen.note("--finish, --release, --renew and --fail need the output of --json.", style="dim")


def _show(place: CommandContext, claim: Claim) -> None:
    place.screen.document({"claim": {**asdict(claim), "expires_at": claim.expires_at.isoformat()}})
    place.screen.show(f"{claim.step} · {claim.owner} until {claim.expires_at:%H:%M:%S} UTC, attempt {claim.attempt}")


def _say(place: CommandContext, claim: Claim, document: str) -> None:
    place.screen.document({"step": claim.step, "told": document})
    place.screen.show(document)


def claim_in(text: str, where: str) -> Claim:
    """Return the claim that `claim --json` printed.

    Raises:
        ValidationError: Not a claim; `where` names its place.
    """
    from agent_memory.workspace import Claim

    try:
        fields: dict[str, Any] = json.loads(text)
        fields = dict(fields.get("claim", fields))
        return Claim(**{**fields, "expires_at": datetime.fromisoformat(fields["expires_at"])})
    except (ValueError, TypeError, KeyError, AttributeError):
        raise ValidationError(
            f"{where} has no claim.",
            code="invalid",
            recovery="Pass the output of `agent-memory workspace claim --json`.",
        ) from None
