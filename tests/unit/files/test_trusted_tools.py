"""The file of trusted tools, changed by several processes at once."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING, Any

from agent_memory.files.person_lists import read_trusted_tools
from tests.concurrency.processes import environment

if TYPE_CHECKING:
    from pathlib import Path

ADD = """
import sys, time
from pathlib import Path
from agent_memory.files.person_lists import TrustedTool, change_trusted_tools
print("ready", flush=True)
sys.stdin.readline()
for number in range(10):
    tool = TrustedTool(f"{sys.argv[2]}_{number}")
    change_trusted_tools(Path(sys.argv[1]), lambda tools: time.sleep(0.003) or [*tools, tool])
"""


def test_change_trusted_tools_in_processes_loses_none(root: Path) -> None:
    command = [sys.executable, "-c", ADD, str(root)]
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, "env": environment()}
    processes: list[Any] = [subprocess.Popen([*command, name], **pipes) for name in "abcd"]
    assert [process.stdout.readline() for process in processes] == ["ready\n"] * 4
    for process in processes:
        process.stdin.close()
    assert [process.wait() for process in processes] == [0] * 4
    for process in processes:
        process.stdout.close()
    tools = [tool.package for tool in read_trusted_tools(root)]
    assert sorted(tools) == [f"{name}_{number}" for name in "abcd" for number in range(10)]
