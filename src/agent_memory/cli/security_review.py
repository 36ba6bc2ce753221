"""`agent-memory account`: a page for a security review."""

from datetime import datetime
from typing import Any, Final

from agent_memory.care.inventory import describe_account
from agent_memory.cli.render import show_beside
from agent_memory.cli.runtime import AgentContext, command
from agent_memory.cli.screen import OutputScreen
from agent_memory.cli.styled_text import StyledText
from agent_memory.cli.text import minute
from agent_memory.files.layout import folder_of
from agent_memory.files.wording import counted, format_size
from agent_memory.models.text import one_line

_SHOWN_DIGITS: Final = 16


@command()
async def account(run: AgentContext) -> None:
    """Show what is stored where, who can read it, and what leaves the machine."""
    page = await describe_account(run.service, folder_of(run.service.agent_id, run.root), run.root)
    run.screen.document(page)
    _show(run.screen, page)


def _show(screen: OutputScreen, page: dict[str, Any]) -> None:
    size = format_size(sum(item["bytes"] for item in page["stored"]))
    screen.show(f"{page['agent']}  {page['folder']}  {size}", style="bold")
    _head(screen, "Stored")
    for item in page["stored"]:
        _row(screen, item["name"], f"{format_size(item['bytes'])}, {item['mode']}: {item['content']}")
    _head(screen, "Who can read it")
    _show_readers(screen, page["readers"])
    _head(screen, "What leaves the machine")
    if not page["network"]:
        _row(screen, "network", "nothing; no setting of this user or project names a server")
    for setting in page["network"]:
        _row(screen, "network", setting)
    _row(screen, "host", page["shown_to_host"])
    for model in page["models"]:
        _row(screen, "model", model)
    _head(screen, "Kept for how long")
    for sentence in page["retention"]:
        label, _, rule = sentence.partition(": ")
        _row(screen, label, rule)
    _head(screen, "Purged")
    if not page["purges"]:
        _row(screen, "none", "`agent-memory purge ID` deletes from all files and backups")
    for purge in page["purges"]:
        moment = minute(datetime.fromisoformat(purge["at"]))
        _row(screen, moment, f"{counted(purge['records'], 'record')}: {purge['state']}")
    _head(screen, "Versions and SHA-256")
    for name, version in page["versions"].items():
        _row(screen, name, version)
    for name, digest in page["sha256"].items():
        _row(screen, name, f"{digest[:_SHOWN_DIGITS]}\u2026; whole with --json")


def _row(screen: OutputScreen, label: str, value: str) -> None:
    show_beside(screen, StyledText(f"  {label:<18} ", "dim"), one_line(value))


def _head(screen: OutputScreen, title: str) -> None:
    screen.show("")
    screen.show(title, style="bold")


def _show_readers(screen: OutputScreen, readers: dict[str, Any]) -> None:
    open_names, foreign = readers["open_to_others"], readers["of_other_users"]
    _row(screen, "user", f"uid {readers['user']} and root")
    _row(screen, "others", f"can open {', '.join(open_names)}" if open_names else "no: every mode is 0600 or 0700")
    if foreign:
        _row(screen, "owned", f"by other users: {', '.join(foreign)}")
    _row(screen, "encrypted", "yes" if readers["encrypted"] else "no; `agent-memory encryption` turns it on")
