"""Record real commands as docs/picture.svg: `python -m scripts.picture`.

The picture loads nothing: it has no font and no address.
"""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.text import Text

HERE: Final = Path(__file__).resolve().parents[1]
TARGET: Final = HERE / "docs" / "picture.svg"
_WIDTH: Final = 84
COMMANDS: Final = (
    "agent-memory store -a bob 'Deploy on Fridays only after the smoke tests'",
    "agent-memory store -a bob 'The daily backup keeps 14 copies.'",
    "agent-memory search 'when may we deploy'",
    "agent-memory store 'The daily backup keeps 30 copies.'",
)
_FORMAT: Final = """\
<svg xmlns="http://www.w3.org/2000/svg" class="rich-terminal" viewBox="0 0 {width} {height}" role="img">
<title>agent-memory stores and finds memories</title>
<style>
.{unique_id}-matrix {{ font-family: ui-monospace, Menlo, Consolas, monospace; font-size: {char_height}px; \
line-height: {line_height}px; }}
{styles}
</style>
<defs><clipPath id="{unique_id}-clip-terminal"><rect x="0" y="0" width="{terminal_width}" height="{terminal_height}" />\
</clipPath>{lines}</defs>
<rect fill="#292929" width="{width}" height="{height}" rx="8"/>
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}<g class="{unique_id}-matrix">{matrix}</g>
</g>
</svg>
"""


def record() -> str:
    """Run the commands in a new home and return the picture as SVG."""
    console = Console(record=True, width=_WIDTH, file=io.StringIO(), force_terminal=True, color_system="truecolor")
    with tempfile.TemporaryDirectory() as home:
        for command in COMMANDS:
            console.print(Text.assemble(("$ ", "bold green"), (command, "bold")), soft_wrap=True)
            console.print(Text.from_ansi(_run(command, home)))
    return console.export_svg(title="agent-memory", code_format=_FORMAT, unique_id="picture")


def _run(command: str, home: str) -> str:
    environment = {**os.environ, "HOME": home, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    environment |= {"FORCE_COLOR": "1", "COLUMNS": str(_WIDTH)}
    done = subprocess.run(  # noqa: S602 - commands of this file
        command, shell=True, env=environment, cwd=home, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        text=True, check=True,
    )  # fmt: skip
    return re.sub(r"^.*loading model .*\n", "", done.stdout, flags=re.MULTILINE)


if __name__ == "__main__":
    TARGET.write_text(record(), encoding="utf-8")
    print(f"wrote {TARGET.relative_to(HERE)}")
