"""Count violations of the mechanical rules of our style: names, docstrings, comments.

python -m tests.architecture.style_counts [FOLDER…] prints the counts.
"""

from __future__ import annotations

import ast
import io
import json
import re
import sys
import tokenize
from collections import Counter
from typing import Final

from tests.architecture.test_layers import REPOSITORY, parsed

FOLDERS: Final = ("src", "modules")

_MAX_FIRST_LINE: Final = 12
_CLAUSE: Final = re.compile(
    r"(?:Return|Yield|Tell) (?:what|which|whether|how|who|whom|whose|whence|where|why|of)\b|(?:Have|Let) "
    r"|(?:What|Which|Who|Whom|Whose|How|Whether|Where|Why) "
)
_WHETHER: Final = re.compile(r"(?:Tell|Return)? ?[Ww]hether")
_ARGUMENT: Final = re.compile(r"^\s{4,}[a-z_][\w, ]*: (.+)$", re.MULTILINE)
_ONE_WORD: Final = re.compile(r"_?[A-Z][a-z]+")
_PARTICIPLE: Final = re.compile(r"_?[a-z]+(?:ed|en|ept|aid|old|own|ought|ade|ent|uilt|orn)")
_VAGUE: Final = {
    *("each", "one", "some", "other", "others", "every", "found", "said", "told", "kept", "given", "known", "at"),
    *("there", "own", "behind", "beside", "again", "stood", "left", "whole"),
}
_LISTED: Final = re.compile(
    r"\b(?:beside|anew|nobody|somebody|whoever|whence|told|stands?|spoilt|mends?|mended|of which|as far as"
    r"|tak(?:e|es|en|ing) in|meanwhile|is none|is no|are no|but for|once more|goes on|go on|lies|all there is"
    r"|behind the answers?|portions?|stretch(?:es)?)\b",
    re.IGNORECASE,
)


def count_violations(folders: tuple[str, ...] = FOLDERS) -> Counter[str]:
    """Return the number of violations of each rule in the Python files of folders."""
    counts: Counter[str] = Counter()
    classes: Counter[str] = Counter()
    modules: Counter[str] = Counter()
    for path in sorted(path for folder in folders for path in (REPOSITORY / folder).rglob("*.py")):
        source = path.read_text(encoding="utf-8")
        prose = [
            token.string
            for token in tokenize.generate_tokens(io.StringIO(source).readline)
            if token.type == tokenize.COMMENT
        ]
        for node in ast.walk(parsed(path)):
            _count_name(node, counts)
            if isinstance(node, ast.ClassDef):
                classes[node.name] += 1
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                docstring = ast.get_docstring(node) or ""
                prose.append(docstring)
                _count_docstring(docstring, counts)
        counts["listed word"] += len(_LISTED.findall("\n".join(prose)))
        counts["module in -ing"] += path.stem.endswith("ing") and path.stem not in {"testing", "logging"}
        if path.name != "__init__.py":
            modules[path.name] += 1
    counts["module name twice"] = sum(number for number in modules.values() if number > 1)
    counts["class name twice"] = sum(number > 1 for number in classes.values())
    return counts


def _count_name(node: ast.AST, counts: Counter[str]) -> None:
    if isinstance(node, ast.ClassDef):
        counts["class of one word"] += _ONE_WORD.fullmatch(node.name) is not None
    elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not node.name.startswith("__"):
        counts["function without verb"] += node.name.endswith("_of") or _PARTICIPLE.fullmatch(node.name) is not None
    elif isinstance(node, ast.arg):
        counts["vague name"] += node.arg in _VAGUE
    elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        counts["vague name"] += node.id in _VAGUE


def _count_docstring(docstring: str, counts: Counter[str]) -> None:
    first = docstring.partition("\n")[0]
    counts["clause as first line"] += _CLAUSE.match(first) is not None
    counts["long first line"] += len(first.split()) > _MAX_FIRST_LINE
    counts["whether"] += _WHETHER.match(first) is not None
    counts["argument in two words"] += sum(len(words.split()) <= 2 for words in _ARGUMENT.findall(docstring))


if __name__ == "__main__":
    json.dump(count_violations(tuple(sys.argv[1:]) or FOLDERS), sys.stdout, indent=2, sort_keys=True)
