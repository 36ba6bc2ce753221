"""`agent-memory`, the command line: shapes what `MemoryService` answers for people and scripts; writes nothing itself.

One module per group of commands. Nothing heavy is imported before a command runs, so that `--help` and shell completion
answer at once.
"""

from __future__ import annotations

import sys

from agent_memory.installing import advice


def main() -> None:
    """Run `agent-memory` with the arguments of this process and exit; 2 when the extra `cli` is not installed."""
    try:
        import rich  # noqa: F401, PLC0415 - an extra: its absence has an answer
        import typer  # noqa: F401, PLC0415
    except ImportError:
        sys.stderr.write(f"The command line needs typer and rich. {advice('cli')}\n")
        sys.exit(2)
    from agent_memory.cli.app import build  # noqa: PLC0415 - needs the extra

    build()(prog_name="agent-memory")
