"""`agent-memory agents health`: one verdict for people and monitors."""

from dataclasses import replace
from typing import Annotated, Final

import typer

from agent_memory.care.checks.codes import AgentHealth, Check, Severity, by_gravity, worst
from agent_memory.care.checks.examination import examine
from agent_memory.care.checks.health_checks import report_unreadable
from agent_memory.care.checks.health_report import health_of
from agent_memory.cli.options import OptionalAgentOption, choose_agent, open_service
from agent_memory.cli.render import show_result
from agent_memory.cli.runtime import MonitorContext, command
from agent_memory.cli.screen import OutputScreen
from agent_memory.cli.styled_text import StyledText
from agent_memory.errors import AgentMemoryError, ConfigurationError, IdentityError
from agent_memory.files.layout import agents_under
from agent_memory.files.wording import counted
from agent_memory.models import utc_now
from agent_memory.models.text import one_line, plain
from agent_memory.settings import HealthSettings, build_settings

_MARK_WIDTH: Final = 10
_CODE_WIDTH: Final = 10
_STYLES: Final = {"ok": "green", "warning": "bold yellow", "critical": "bold red", "unknown": "bold cyan"}


@command(OptionalAgentOption)
async def health(
    watch: MonitorContext,
    *,
    deep: Annotated[bool, typer.Option("--deep", help="Also read every file, as the doctor does.")] = False,
    limit: Annotated[
        list[str] | None,
        typer.Option("--limit", metavar="KEY=VALUE", help="Set a limit, e.g. disk_warning_mb=2000; repeatable."),
    ] = None,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Also show what is well, of every agent.")] = False,
) -> None:
    """Print one verdict for people and for monitors.

    Exit codes: 0 all is well, 1 warning, 2 critical, 3 unknown.
    """
    settings = _settings(limit or [])
    agent = watch.get_options(OptionalAgentOption).agent
    names = agents_under(watch.root) if agent is None else [choose_agent(agent, watch.root, may_be_new=False)]
    if not names:
        raise IdentityError(
            f"No agents under {watch.root}, so their health is unknown.",
            code="no_agents",
            recovery="Check --root, and whether its disk is mounted.",
        )
    reports = [await _looked_at(watch, name, settings, deep=deep) for name in names]
    level = worst(report.level for report in reports)
    agents = [report.as_dict() for report in reports]
    watch.screen.document({"root": str(watch.root), "level": level.name.lower(), "code": int(level), "agents": agents})
    _show(watch.screen, reports, brief=len(reports) > 1 and not verbose)
    watch.verdict = int(level)


async def _looked_at(watch: MonitorContext, name: str, settings: HealthSettings, *, deep: bool) -> AgentHealth:
    """Return the health of an agent; critical if it cannot be opened."""
    try:
        async with open_service(name, watch.root) as service:
            report = await health_of(service, settings, utc_now())
    except AgentMemoryError as error:
        return AgentHealth(name, watch.root / name, (report_unreadable(error.message, error.recovery),))
    return _check_files(watch, report) if deep else report


def _settings(limits: list[str]) -> HealthSettings:
    """Return the limits.

    Raises:
        typer.BadParameter: One is unknown or wrong, or two contradict each other.
    """
    try:
        return build_settings("--limit", HealthSettings, dict(map(_limit, limits)))
    except ConfigurationError as error:
        raise typer.BadParameter(error.message.removeprefix("--limit: "), param_hint="--limit") from None


def _limit(text: str) -> tuple[str, str]:
    """Return a key and its value.

    Raises:
        typer.BadParameter: Not a `KEY=VALUE`, or the key is unknown.
    """
    key, sign, value = text.partition("=")
    if not sign or key.strip() not in HealthSettings.model_fields:
        names = ", ".join(HealthSettings.model_fields)
        raise typer.BadParameter(f"{text!r} is not KEY=VALUE; the keys are: {names}", param_hint="--limit")
    return key.strip(), value.strip()


def _check_files(watch: MonitorContext, health: AgentHealth) -> AgentHealth:
    """Return a health report extended by the doctor's findings."""
    (report,) = examine(watch.root, [health.agent_id], now=utc_now()).agents
    bad = [finding for finding in report.findings if finding.severity >= Severity.WARNING]
    sentence, advice = "Every file was read, and is as it should be.", ""
    if bad:
        gravest = max(bad, key=lambda finding: finding.severity)
        sentence = f"{counted(len(bad), 'finding needs', 'findings need')} attention: {gravest.sentence}"
        advice = "`agent-memory doctor` says what to do."
    check = Check("doctor", report.severity.level, sentence, advice, len(bad), "findings")
    return replace(health, checks=by_gravity([*health.checks, check]))


def _show(screen: OutputScreen, reports: list[AgentHealth], *, brief: bool) -> None:
    for place, report in enumerate(reports):
        rows = [check for check in report.checks if check.level or not brief]
        if place and (rows or not brief):
            screen.show()
        name, bad = report.level.name.lower(), sum(check.level > 0 for check in report.checks)
        words = "all is well" if not bad else f"{name}: {bad} of {counted(len(report.checks), 'check')}"
        screen.show(StyledText.assemble((plain(report.agent_id), "bold"), "  ", (words, _STYLES[name])))
        for check in rows:
            level = check.level.name.lower()
            mark, code = (f"{level:<{_MARK_WIDTH}}", _STYLES[level]), (f"{check.code:<{_CODE_WIDTH}}", "dim")
            show_result(screen, StyledText.assemble("  ", mark, code), check, one_line(check.advice))
