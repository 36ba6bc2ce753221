"""Print every text of the command line that a person reads, with its file and line, for an editor.

    python -m scripts.messages [FOLDER…]

Help texts, questions, results, warnings, errors and their hints. Names in braces are values.
"""

from __future__ import annotations

import ast
import sys
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT: Final = Path(__file__).resolve().parents[1]
_USUAL: Final = ("src/agent_memory/cli",)
_WIDTH: Final = 80
_PRINTING: Final = {
    *("show", "note", "hint", "row", "show_beside", "prompt", "ask", "confirm", "need_terminal", "echo", "read_line"),
    *("read_key", "add_task", "show_steps", "BadParameter", "CommandEntry"),
}
"""Functions whose texts a person reads; classes that end in `Error` are as well."""


def find_messages(path: Path) -> Iterator[tuple[int, str, str]]:
    """Yield line, kind and text of the messages of a file, in their order."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    messages = []
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and any(map(_is_command, node.decorator_list)):
            messages.append((node.lineno, "help", ast.get_docstring(node) or ""))
        elif isinstance(node, ast.Call):
            kind = _get_kind(node)
            values = [keyword.value for keyword in node.keywords if keyword.arg in {"help", "recovery"}]
            values += node.args if kind else []
            messages += [(value.lineno, kind or "help", text) for value in values for text in _read_texts(value)]
    yield from sorted(set(messages))


def _is_command(decorator: ast.expr) -> bool:
    call = decorator.func if isinstance(decorator, ast.Call) else decorator
    return getattr(call, "id", getattr(call, "attr", "")) == "command"


def _get_kind(call: ast.Call) -> str:
    """Return the name of the printing function or error; empty for other calls."""
    name = getattr(call.func, "attr", getattr(call.func, "id", ""))
    return name if name in _PRINTING or name.endswith("Error") else ""


def _read_texts(value: ast.expr) -> Iterator[str]:
    """Yield the texts of two words or more in an expression."""
    if isinstance(value, ast.Constant) and isinstance(value.value, str):
        text = value.value
    elif isinstance(value, ast.JoinedStr):
        parts = (
            f"{{{ast.unparse(part.value)}}}" if isinstance(part, ast.FormattedValue) else ast.literal_eval(part)
            for part in value.values
        )
        text = "".join(str(part) for part in parts)
    elif isinstance(value, ast.BinOp | ast.IfExp | ast.Tuple | ast.Starred):
        for child in ast.iter_child_nodes(value):
            yield from _read_texts(child) if isinstance(child, ast.expr) else ()
        return
    else:
        return
    if " " in text.strip():
        yield text


def main(folders: list[str]) -> None:
    """Print the messages of the Python files of folders, wrapped at 80 columns."""
    for path in sorted(path for folder in folders for path in (ROOT / folder).rglob("*.py")):
        for line, kind, text in find_messages(path):
            print(f"{path.relative_to(ROOT)}:{line} {kind}")
            for paragraph in text.split("\n\n"):
                print(textwrap.indent(textwrap.fill(" ".join(paragraph.split()), _WIDTH - 4), "    "))


if __name__ == "__main__":
    main(sys.argv[1:] or [*_USUAL])
