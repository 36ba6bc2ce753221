"""`agent-memory doctor`: shows findings and repairs.

Not a command like the others: those open a memory service, which writes; the doctor writes only with `--repair`.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from agent_memory.care.checks.codes import AgentReport, Finding, HomeReport, RepairAction, Severity
from agent_memory.care.checks.examination import examine
from agent_memory.care.checks.journal_survey import find_salvageable
from agent_memory.care.checks.repairs import repair_all
from agent_memory.cli.exit_codes import FAILED
from agent_memory.cli.formats import encode
from agent_memory.cli.options import OptionalAgentOption, choose_agent
from agent_memory.cli.render import show_beside, show_result
from agent_memory.cli.runtime import CommandContext, command
from agent_memory.cli.screen import OutputScreen
from agent_memory.cli.styled_text import StyledText
from agent_memory.cli.text import for_shell
from agent_memory.files.layout import folder_of
from agent_memory.files.wording import counted, format_size
from agent_memory.models import check_agent_id, utc_now
from agent_memory.models.text import one_line, plain

_AREA_WIDTH: Final = 12
_MARK_WIDTH: Final = 9
_MEGABYTE: Final = 1_000_000
_WORTH_SHOWING: Final = 10 * _MEGABYTE
"""Bytes; fewer are read before a person would notice the wait."""
_STYLES: Final = {"OK": "green", "NOTE": "cyan", "WARNING": "bold yellow", "PROBLEM": "bold red"}


@command(OptionalAgentOption)
async def doctor(
    place: CommandContext,
    *,
    repair: Annotated[
        bool, typer.Option("--repair", help="Repair what can be repaired; the journal only after a copy.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="With --repair: show what would be done, and do nothing.")
    ] = False,
    salvage: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Print memories of a journal copy that the journal lacks, for `import`."),
    ] = None,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Also show what is well, of every agent.")] = False,
) -> None:
    """Check every file of every agent; repair derived ones.

    Exits with 1 if a finding needs attention.
    """
    screen, home, agent = place.screen, place.root, place.get_options(OptionalAgentOption).agent
    if salvage is not None:
        _salvage(screen, home, agent, salvage)
        return
    names = None if agent is None else [_find_name(agent, home)]
    report, actions = _examine(screen, home, names), list[RepairAction]()
    if repair and not dry_run:
        actions = repair_all(home, [agent.agent_id for agent in report.agents], now=utc_now())
        report = _examine(screen, home, names)
    planned = [(agent_id, finding) for agent_id, finding in report.every if finding.repair] if dry_run else None
    screen.document(_build_document(report, actions, planned))
    if not screen.json:
        if planned is not None:
            mark = ("would do", "cyan")
            _show_marked(screen, [(mark, name, f"{finding.code}: {finding.repair}.") for name, finding in planned])
        elif repair:
            marks = {True: ("repaired", "green"), False: ("left", "bold yellow")}
            _show_marked(screen, [(marks[action.done], action.agent_id, action.sentence) for action in actions])
        _show(screen, report, verbose=verbose)
    if not report.healthy or not all(action.done for action in actions):
        raise typer.Exit(FAILED)


def _examine(screen: OutputScreen, home: Path, names: list[str] | None) -> HomeReport:
    """Examine, with a progress bar for each agent with much to read."""
    with screen.progress() as progress:
        bars: dict[str, Any] = {}

        def show(agent_id: str, done: int, total: int) -> None:
            if total < _WORTH_SHOWING:
                return
            if agent_id not in bars:
                bars[agent_id] = progress.add_task(f"Reading {agent_id}")
            progress.update(bars[agent_id], completed=done // _MEGABYTE, total=total // _MEGABYTE)

        return examine(home, names, now=utc_now(), progress=show)


def _find_name(agent: str, home: Path) -> str:
    """Return an agent's name as on disk, also for a broken link.

    Raises:
        IdentityError: No such agent.
        ValidationError: Not a name of an agent.
    """
    path = home / check_agent_id(agent)
    return agent if path.is_symlink() or path.exists() else choose_agent(agent, home, may_be_new=False)


# -- for people -----------------------------------------------------------------------------------------------------


def _show(screen: OutputScreen, report: HomeReport, *, verbose: bool) -> None:
    screen.show(StyledText(plain(str(report.root)), style="bold"))
    _rows(screen, report.findings)
    brief = len(report.agents) > 1 and not verbose
    spaced = False
    for agent in report.agents:
        rows = [finding for finding in agent.findings if not (brief and finding.severity.name == "OK")]
        if rows or spaced or agent is report.agents[0]:
            screen.show()
        spaced = bool(rows)
        screen.show(
            StyledText.assemble((plain(agent.agent_id), "bold"), "  ", _verdict(agent.findings), _figures(agent))
        )
        _rows(screen, rows)
    screen.show()
    _conclude(screen, report)


def _rows(screen: OutputScreen, findings: Iterable[Finding]) -> None:
    for finding in findings:
        mark = finding.severity.name
        marked = (f"{mark.lower():<{_MARK_WIDTH}}", _STYLES[mark])
        head = StyledText.assemble("  ", marked, (f"{finding.area:<{_AREA_WIDTH}}", "dim"))
        size = "" if finding.size is None else format_size(finding.size)
        show_result(screen, head, finding, for_shell(finding.advice), tail=size)


def _verdict(findings: Iterable[Finding]) -> StyledText:
    names = [finding.severity.name for finding in findings]
    tally = [(name, number) for name in ("PROBLEM", "WARNING") if (number := names.count(name))]
    parts = [StyledText(counted(number, name.lower()), _STYLES[name]) for name, number in tally]
    return StyledText(", ").join(parts or [StyledText("healthy", "green")])


def _figures(agent: AgentReport) -> tuple[str, str]:
    memories = "" if agent.memories is None else f" · {counted(agent.memories, 'memory', 'memories')}"
    return f"{memories} · {format_size(agent.size)}", "dim"


def _conclude(screen: OutputScreen, report: HomeReport) -> None:
    findings = [finding for _, finding in report.every if finding.severity >= Severity.WARNING]
    count, repairable = len(findings), sum(finding.is_repairable for finding in findings)
    if not count:
        screen.show("Nothing needs your attention.", style="green")
        return
    words = f"{count} findings need your attention" if count > 1 else "One finding needs your attention"
    if repairable:
        what = "it" if count == 1 else "all" if repairable == count else str(repairable)
        words += f"; `agent-memory doctor --repair` repairs {what}"
    screen.show(screen.complete(f"{words}."), style="bold")


def _show_marked(screen: OutputScreen, rows: list[tuple[tuple[str, str], str | None, str]]) -> None:
    """Print repairs with a mark, its style, the agent and a sentence."""
    if not rows:
        screen.show("Nothing to repair.")
    for (mark, style), agent_id, text in rows:
        whose = f"{agent_id or 'home':<{_AREA_WIDTH - 2}}  "
        head = StyledText.assemble("  ", (f"{mark:<{_MARK_WIDTH}}", style), (whose, "dim"))
        show_beside(screen, head, screen.complete(one_line(text)))
    screen.show()


# -- for programs ---------------------------------------------------------------------------------------------------


def _build_document(
    report: HomeReport, actions: list[RepairAction], planned: list[tuple[str | None, Finding]] | None
) -> dict[str, Any]:
    document: dict[str, Any] = {
        "root": str(report.root),
        "healthy": report.healthy,
        "findings": [finding.as_dict() for finding in report.findings],
        "agents": [
            {
                "agent_id": agent.agent_id,
                "folder": str(agent.path),
                "healthy": agent.severity < Severity.WARNING,
                "memories": agent.memories,
                "bytes": agent.size,
                "findings": [finding.as_dict() for finding in agent.findings],
            }
            for agent in report.agents
        ],
        "repairs": [action.as_dict() for action in actions],
    }
    if planned is not None:
        document["would_repair"] = [
            {"agent_id": agent_id, "code": finding.code, "repair": finding.repair} for agent_id, finding in planned
        ]
    return document


def _salvage(screen: OutputScreen, home: Path, agent: str | None, file: str) -> None:
    """Print records of a journal copy that the journal lacks, as JSON lines.

    Raises:
        ValidationError: No such file, or not a copy of a journal.
        IdentityError: Whose journal is not clear.
    """
    folder = folder_of(choose_agent(agent, home, may_be_new=False), home)
    path = Path(file)
    if not path.exists() and (folder.path / file).exists():
        path = folder.path / file  # as the findings name it
    count = 0
    for memory in find_salvageable(path, folder):
        screen.raw(encode(memory, "jsonl"))
        count += 1
    screen.hint(
        f"{counted(count, 'memory', 'memories')} of {path.name} missing in the journal of {folder.agent_id}. "
        + (f"To import: … | agent-memory import --trusted - -a {folder.agent_id}" if screen.out else "")
    )
