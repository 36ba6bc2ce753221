"""`agent-memory archive tidy`: preview, apply and undo."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from agent_memory.cli.archive import open_archive
from agent_memory.cli.formats import read_yaml
from agent_memory.cli.runtime import AgentContext, command
from agent_memory.cli.styled_text import StyledText
from agent_memory.cli.text import minute
from agent_memory.errors import ConfigurationError, ValidationError
from agent_memory.files.atomic import translated
from agent_memory.files.wording import counted
from agent_memory.models.record import view_fields
from agent_memory.settings import build_settings

if TYPE_CHECKING:
    from agent_memory.care.tidying.cleanup_rules import LifecycleSettings
    from agent_memory.care.tidying.suggestions import TidyingPlan, TidySuggestion
    from agent_memory.care.tidying.tidy_runs import AppliedRun, RestoredRun, Tidying

_COLUMNS: Final = ("id", "action", "importance", "why", "content")
_RUN_COLUMNS: Final = ("id", "timestamp", "state", "said")
_SHOWN: Final = 100
_NOTHING: Final = "Nothing was tidied."
_WORDS: Final = {"archive": "archive", "merge": "archive", "expire": "archive", "delete": "delete from the archive"}


@command(rows=True)
async def tidy(  # noqa: PLR0913 - each an option of the command
    run: AgentContext,
    run_id: Annotated[str | None, typer.Argument(metavar="RUN", help="With --undo: ID of a run, or the last.")] = None,
    *,
    apply: Annotated[bool, typer.Option("--apply", help="Apply the suggestions.")] = False,
    delete: Annotated[
        bool, typer.Option("--delete", help="With --apply: also carry out deletions from the archive.")
    ] = False,
    budget: Annotated[
        int | None,
        typer.Option(
            "--budget", min=1, max=100_000, metavar="N",
            help="Most memories to move; default: a tenth of all, from 10 to 100.",
        ),
    ] = None,
    undo: Annotated[bool, typer.Option("--undo", help="Undo a run; memories get all their fields back.")] = False,
    runs: Annotated[bool, typer.Option("--runs", help="List past runs.")] = False,
    rules: Annotated[
        Path | None, typer.Option("--rules", metavar="FILE", help="YAML file with other rules in `lifecycle`.")
    ] = None,
) -> None:  # fmt: skip
    """Show what could be archived, merged or deleted, and why; apply or undo.

    Nothing is done without --apply. Archived memories are found only in the archive. --undo and
    `archive restore` restore them with all fields.
    """
    if sum((apply, undo, runs)) > 1 or (run_id is not None and not undo) or (delete and not apply):
        raise ValidationError(
            "--apply, --undo and --runs exclude each other; a RUN goes with --undo, --delete with --apply.",
            code="usage",
        )
    from agent_memory.care.tidying.tidy_runs import Tidying

    async with open_archive(run) as archive:
        tidying = Tidying(archive, _rules(rules))
        if undo:
            _show_undone(run, await tidying.undo(run_id, run.caller))
        elif runs:
            await _list_runs(run, tidying)
        else:
            plan = await tidying.plan(budget=budget)
            done = await tidying.apply(plan, run.caller, delete=delete) if apply else None
            _show(run, plan, done)


def _rules(path: Path | None) -> "LifecycleSettings | None":
    """Return the rules of a file; None for the defaults.

    Raises:
        ValidationError: Not YAML, or no such file.
        StorageError: It cannot be read.
        ConfigurationError: A rule is wrong.
    """
    if path is None:
        return None
    from agent_memory.care.tidying.cleanup_rules import LifecycleSettings

    rules = _read(path)
    section = rules.get("lifecycle", rules) if isinstance(rules, dict) else rules
    if section is not None and not isinstance(section, dict):
        raise ValidationError(
            f"{path} holds no rules: a mapping of keys to values is expected.",
            code="usage",
            recovery=f"Correct that file. {_NOTHING}",
        )
    try:
        return build_settings(str(path), LifecycleSettings, section or {})
    except ConfigurationError as error:
        raise ConfigurationError(error.message, recovery=f"Correct it in that file. {_NOTHING}") from error


def _read(path: Path) -> Any:
    """Return the rules of a file.

    Raises:
        ValidationError: No such file, or not YAML.
        StorageError: It cannot be read.
    """
    if not path.exists():
        raise ValidationError(f"No file {path}.", code="no_file", recovery=f"Check the name. {_NOTHING}")
    try:
        with translated(path, "read"):
            text = path.read_text(encoding="utf-8")
        return read_yaml(text)
    except UnicodeDecodeError:
        raise ValidationError(f"{path} is not UTF-8 text.", recovery=f"Correct that file. {_NOTHING}") from None
    except ValidationError as error:
        raise ValidationError(f"{path}: {error.message}", recovery=f"Correct that file. {_NOTHING}") from None


def _row(suggestion: "TidySuggestion") -> dict[str, Any]:
    return {
        "id": suggestion.memory.id,
        **view_fields(suggestion, "action", "rule", "why"),
        "importance": round(suggestion.importance, 3),
        "older_versions": [version.id for version in suggestion.older],
        "into": suggestion.into.id if suggestion.into is not None else None,
        "content": suggestion.memory.content,
    }


def _show(run: AgentContext, plan: "TidyingPlan", done: "AppliedRun | None") -> None:
    suggested = plan.suggestions if done is None else done.done
    rows = [_row(suggestion) for suggestion in suggested]
    document: dict[str, Any] = {
        "agent_id": run.service.agent_id,
        "applied": done is not None,
        "run": done.run.id if done is not None and done.run is not None else None,
        "budget": plan.budget.most,
        **view_fields(plan, "waiting", "memories", "archived"),
        "left_out": [{"id": suggestion.id, "why": suggestion.why} for suggestion in done.left_out]
        if done is not None
        else [],
    }
    run.screen.rows({**document, "suggestions": rows}, "suggestions", _COLUMNS)
    for suggestion in suggested[:_SHOWN]:
        older = f", with {counted(len(suggestion.older), 'older version')}" if suggestion.older else ""
        line = StyledText.assemble((f"{suggestion.memory.id} ", "bold"), (_WORDS[suggestion.action], "yellow"))
        run.screen.show(line + StyledText(f"  {suggestion.why}{older}", style="dim"))
        run.screen.show(suggestion.memory.content, indent=2, max_lines=1)
    if len(suggested) > _SHOWN and run.screen.form == "text":
        run.screen.note(f"… and {len(suggested) - _SHOWN} more; --format table lists them all.")
    if run.screen.form in {"text", "table"}:
        _conclude(run, plan, done)


def _format_counts(plan: "TidyingPlan") -> str:
    return counted(plan.memories, "memory", "memories")


def _conclude(run: AgentContext, plan: "TidyingPlan", done: "AppliedRun | None") -> None:
    say = run.screen.hint
    if done is not None:
        for omission in done.left_out:
            say(f"{omission.id} stays: {omission.why}.")
        if done.run is None:
            why = "" if plan.suggestions else f" There is nothing to tidy among {_format_counts(plan)}."
            say(f"Nothing was done.{why}")
            return
        undo = f"`agent-memory archive tidy --undo {done.run.id}` takes it back."
        say(f"{done.run.said[:1].upper()}{done.run.said[1:]}. {undo}")
    elif not plan.suggestions:
        say(f"Nothing to tidy among {_format_counts(plan)}.")
    else:
        going = sum(suggestion.size for suggestion in plan.suggestions if suggestion.action != "delete")
        say(f"{going} of {counted(plan.memories, 'memory', 'memories')} would be archived; nothing was done.")
        proposed = sum(suggestion.size for suggestion in plan.suggestions if suggestion.action == "delete")
        if proposed:
            say(f"{counted(proposed, 'archived memory', 'archived memories')} would be deleted: --apply --delete.")
        say("`agent-memory archive tidy --apply` does it, `agent-memory archive tidy --undo` takes that back.")
    if plan.waiting:
        say(f"{plan.waiting} more wait for another run: at most {plan.budget.most} move at once (--budget).")


async def _list_runs(run: AgentContext, tidying: "Tidying") -> None:
    runs = await tidying.runs()
    rows = [view_fields(tidy_run, "id", "timestamp", "state", "said") for tidy_run in runs]
    run.screen.rows({"agent_id": run.service.agent_id, "runs": rows}, "runs", _RUN_COLUMNS)
    for tidy_run in runs:
        run.screen.show(f"{tidy_run.id}  {minute(tidy_run.timestamp)}  {tidy_run.state}: {tidy_run.said}")
    if not runs:
        run.screen.note("Nothing was tidied yet.")


def _show_undone(run: AgentContext, undone: "RestoredRun") -> None:
    omitted = [{"id": record.id, "why": record.why} for record in undone.left_out]
    restored = [record.id for record in undone.restored]
    run.screen.document(
        {"run": undone.run.id, "restored": restored, "undeleted": list(undone.undeleted), "left_out": omitted}
    )
    run.screen.show(f"{counted(len(restored), 'memory is', 'memories are')} back as they were.")
    if undone.undeleted:
        run.screen.show(f"{counted(len(undone.undeleted), 'memory is', 'memories are')} in the archive again.")
    for record in undone.left_out:
        run.screen.note(f"{record.id} did not come back: {record.why}.")
