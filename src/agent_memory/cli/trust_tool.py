"""The command `trust-tool`: tools whose output is trusted."""

import re
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from agent_memory.cli.decisions import is_terminal
from agent_memory.cli.options import Yes
from agent_memory.cli.render import row
from agent_memory.cli.runtime import CommandContext, command
from agent_memory.errors import ValidationError
from agent_memory.files.layout import find_project_root
from agent_memory.files.person_lists import TrustedTool, change_trusted_tools, read_trusted_tools
from agent_memory.redaction import quoted

_PACKAGE = re.compile(r"[A-Za-z_]\w*(?::[\w-]+)?")


@command()
async def trust_tool(
    place: CommandContext,
    package: Annotated[
        str | None, typer.Argument(metavar="PACKAGE", help="Python package of the tool, or PACKAGE:TOOL.")
    ] = None,
    *,
    project: Annotated[bool, typer.Option("--project", help="Trust it only in the project of this folder.")] = False,
    remove: Annotated[bool, typer.Option("--remove", help="Trust it no more.")] = False,
    yes: Yes = False,
) -> None:
    """Trust the output of a tool, by its Python package.

    Without PACKAGE, list the trusted tools. Any other tool is untrusted: what an agent stores after its output has low
    trust. `agent-memory status` and `why` name the package of such a tool. Sessions read the list at each turn.
    """
    if package is None:
        tools = read_trusted_tools(place.root)
    else:
        tool = TrustedTool(package.strip(), _find_project() if project else "")
        if not remove and _PACKAGE.fullmatch(tool.package) and not _is_installed(tool.package):
            name = quoted(tool.package.partition(":")[0])
            place.screen.note(f"{name} is not installed for this program; a host may have it elsewhere.")
            if not yes and is_terminal():
                place.confirm(f"Trust the tools of {name}?", "Nothing was changed.")
        tools = change_trusted_tools(place.root, lambda tools: _change(tools, tool, remove=remove))
    place.screen.document({"trusted": [tool._asdict() for tool in tools]})
    for tool in tools:
        row(place.screen, tool.package, f"in {tool.project}" if tool.project else "in all projects")
    if not tools:
        place.screen.note("No tool is trusted by this list.")


def _is_installed(package: str) -> bool:
    """Return True if this Python finds a package, without importing it."""
    try:
        return find_spec(package.partition(":")[0]) is not None
    except ValueError:  # a module such as `__main__`, which no tool's class is in
        return False


def _change(tools: list[TrustedTool], tool: TrustedTool, *, remove: bool) -> list[TrustedTool]:
    """Return the list with a tool added or removed.

    Raises:
        ValidationError: It cannot name a tool, or is not in the list.
    """
    if remove and tool not in tools:
        where = f"in {tool.project}" if tool.project else "in all projects"
        raise ValidationError(
            f"{quoted(tool.package)} is not trusted {where}; nothing was changed.",
            recovery="Run `agent-memory trust-tool` to see the list.",
        )
    if not _PACKAGE.fullmatch(tool.package):
        raise ValidationError(
            f"{quoted(tool.package)} names no Python package; nothing was changed.",
            recovery="Give the package of the tool's class, such as amplifier_module_tool_search.",
        )
    remaining = [trusted for trusted in tools if trusted != tool]
    return remaining if remove else [*remaining, tool]


def _find_project() -> str:
    """Return the path of the project of this folder.

    Raises:
        ValidationError: The folder is in no project.
    """
    project = find_project_root(Path.cwd())
    if project is None:
        raise ValidationError(
            "This folder is in no project; nothing was changed.",
            recovery="Change to the project's folder, or leave out --project.",
        )
    return str(project)
