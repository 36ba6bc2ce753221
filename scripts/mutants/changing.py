"""Every mutant of a file, and which one of a later version is the same."""

from __future__ import annotations

import ast
import contextlib
import copy
import difflib
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

Record: TypeAlias = dict[str, Any]

_PAIRS: Final[tuple[tuple[type[ast.AST], type[ast.AST]], ...]] = (
    *((ast.Lt, ast.LtE), (ast.Gt, ast.GtE), (ast.Eq, ast.NotEq), (ast.Is, ast.IsNot), (ast.In, ast.NotIn)),
    (ast.And, ast.Or),
)
_SWAPPED: Final = {one: other for pair in _PAIRS for one, other in (pair, pair[::-1])}
_TELLING: Final = 30  # characters; a statement as long is hardly written twice
_NOT_RUN: Final = ("annotation", "returns", "decorator_list")
_BODIES: Final = ("body", "orelse", "finalbody", "handlers", "cases", "decorator_list")


@dataclass(frozen=True)
class CodePlace:
    """Where a node stands: in `field` of `parent`, as item `index` if that is a list."""

    parent: ast.AST
    field: str
    index: int | None

    @contextlib.contextmanager
    def taken_by(self, new: ast.AST) -> Iterator[None]:
        """Have `new` stand here for a while."""
        value = getattr(self.parent, self.field)
        other = new if self.index is None else [*value[: self.index], new, *value[self.index + 1 :]]
        setattr(self.parent, self.field, other)
        try:
            yield
        finally:
            setattr(self.parent, self.field, value)


@dataclass(eq=False)
class Mutant:
    """One change of one file: `new` stands at `place`."""

    kind: str
    text: str
    changed: str
    function: str
    path: str
    lines: range
    module: ast.Module
    place: CodePlace
    new: ast.AST
    ordinal: int = 0

    @property
    def record(self) -> Record:
        """What is kept of it; the file is there to choose among equals, the line for people."""
        identity = {name: getattr(self, name) for name in ("kind", "text", "changed", "function", "ordinal")}
        return {**identity, "path": self.path, "line": self.lines.start}

    def source(self) -> str:
        """Return the whole file with the change in it."""
        with self.place.taken_by(self.new):
            return ast.unparse(self.module) + "\n"

    def diff(self) -> str:
        """Return the change as a unified diff of normalised sources."""
        before, after = ast.unparse(self.module).splitlines(), self.source().splitlines()
        return "\n".join(difflib.unified_diff(before, after, self.path, self.path, n=3, lineterm=""))


def survey(tree: Path, paths: Iterable[str]) -> list[Mutant]:
    """Return every mutant of the Python files at or below `paths` of `tree`, in the order of files and lines."""
    files = {
        file for path in paths for file in ([tree / path] if path.endswith(".py") else (tree / path).rglob("*.py"))
    }
    found: list[Mutant] = []
    for file in sorted(files):
        module = ast.parse(file.read_text(encoding="utf-8"))
        found += _Reader(file.relative_to(tree).as_posix(), module).read()
    seen: Counter[tuple[str, ...]] = Counter()
    for mutant in found:
        key = (mutant.kind, mutant.text, mutant.changed, mutant.function, mutant.path)
        mutant.ordinal, seen[key] = seen[key], seen[key] + 1
    return found


class _Reader:
    """Goes through one file and notes what can be changed."""

    def __init__(self, path: str, module: ast.Module) -> None:
        self._path, self._module = path, module
        self._found: list[Mutant] = []

    def read(self) -> list[Mutant]:
        self._visit(self._module, self._module, "")
        return self._found

    def _visit(self, node: ast.AST, statement: ast.AST, function: str) -> None:
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            return
        if isinstance(node, ast.stmt | ast.ExceptHandler | ast.match_case):
            statement = node
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            function = node.name
        for field, value in ast.iter_fields(node):
            for index, child in enumerate(value if isinstance(value, list) else [value]):
                if isinstance(child, ast.AST) and field not in _NOT_RUN:
                    place = CodePlace(node, field, index if isinstance(value, list) else None)
                    for kind, new in _changes(child, node, field):
                        self._note(kind, place, child, new, statement, function)
                    self._visit(child, statement, function)

    def _note(self, kind: str, place: CodePlace, old: ast.AST, new: ast.AST, statement: ast.AST, function: str) -> None:
        if isinstance(old, ast.stmt | ast.ExceptHandler):
            statement, before, after = old, _head(old), _head(new)
        else:
            before = _head(statement)
            with place.taken_by(new):
                after = _head(statement)
        if before != after:
            lines = _lines(statement)
            self._found.append(Mutant(kind, before, after, function, self._path, lines, self._module, place, new))


def _changes(node: ast.AST, parent: ast.AST, field: str) -> Iterator[tuple[str, ast.AST]]:
    """Yield kinds of change and what would stand in the place of `node`."""
    if type(node) in _SWAPPED:
        yield "and, or" if isinstance(node, ast.boolop) else "comparison", _SWAPPED[type(node)]()
    elif isinstance(node, ast.Constant):
        yield from _other_constants(node.value, "default" if isinstance(parent, ast.arguments) else "")
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield "not removed", node.operand
    elif isinstance(node, ast.Return) and node.value is not None and ast.unparse(node.value) != "None":
        yield "return None", ast.Return(ast.Constant(None))
    elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call | ast.Await):
        yield "call removed", ast.Pass()
    elif isinstance(node, ast.Raise):
        yield "raise removed", ast.Pass()
    elif isinstance(node, ast.ExceptHandler):
        yield "exception swallowed", ast.ExceptHandler(node.type, node.name, [ast.Pass()])
    if field == "ifs" or (field == "test" and isinstance(parent, ast.If | ast.While | ast.IfExp)):
        same = isinstance(node, ast.Compare) and not isinstance(node.ops[0], ast.Lt | ast.LtE | ast.Gt | ast.GtE)
        if not same and not (isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not)):
            yield "condition negated", ast.UnaryOp(ast.Not(), node)  # type: ignore[arg-type] # an expression, by its field


def _other_constants(value: object, kind: str) -> Iterator[tuple[str, ast.AST]]:
    if isinstance(value, bool):
        yield kind or "boolean", ast.Constant(not value)
    elif isinstance(value, int | float):
        yield kind or "constant", ast.Constant(value + 1)
        yield kind or "constant", ast.Constant(value - 1)
    elif isinstance(value, str) and kind:
        yield kind, ast.Constant(f"{value}x")


def _head(node: ast.AST) -> str:
    """Return the normalised text of a statement; of a compound one what stands before its body."""
    if isinstance(node, ast.stmt | ast.match_case):
        node = copy.copy(node)
        for field in _BODIES:
            if isinstance(getattr(node, field, None), list):
                setattr(node, field, [])
    return ast.unparse(node).strip()


def _lines(node: ast.AST) -> range:
    """Return the lines whose execution shows that a test runs `node`: a handler's or a function's body, a head."""
    body = getattr(node, "body", None)
    start, end = getattr(node, "lineno", 1), getattr(node, "end_lineno", 1)
    if isinstance(node, ast.match_case):
        start, end = node.pattern.lineno, node.pattern.end_lineno
    elif isinstance(body, list) and isinstance(node, ast.ExceptHandler | ast.FunctionDef | ast.AsyncFunctionDef):
        start = body[0].lineno
    elif isinstance(body, list) and body:
        end = max(start, body[0].lineno - 1)
    return range(start, end + 1)


def find(entries: Sequence[Record], mutants: Sequence[Mutant]) -> list[tuple[Record, Mutant | None, bool]]:
    """Return for each entry its mutant among `mutants`, or one that stands in for it, and whether it is the same.

    The name of the function is given up before the entry is. Of several equal ones, those count that are in a file or
    a folder of the same name. No mutant is returned twice; None says that nothing of its kind is left.
    """
    left = list(mutants)
    answers: dict[int, tuple[Mutant | None, bool]] = {}
    for rule in (_same_in_function, _same, _nearest):
        for number, entry in enumerate(entries):
            if number not in answers and (mutant := rule(entry, left)):
                left.remove(mutant)
                answers[number] = mutant, rule is not _nearest
    return [(entry, *answers.get(number, (None, False))) for number, entry in enumerate(entries)]


def _same_in_function(entry: Record, mutants: Sequence[Mutant]) -> Mutant | None:
    return _best(entry, [mutant for mutant in mutants if mutant.function == entry["function"]])


def _same(entry: Record, mutants: Sequence[Mutant]) -> Mutant | None:
    """Return one in a function of another name: of a short text only if there is none of the old name."""
    is_renamed = all(mutant.function != entry["function"] for mutant in mutants)
    return _best(entry, mutants) if is_renamed or len(entry["text"]) >= _TELLING else None


def _best(entry: Record, mutants: Sequence[Mutant]) -> Mutant | None:
    names = ("kind", "text", "changed")
    alike = [mutant for mutant in mutants if all(getattr(mutant, name) == entry[name] for name in names)]
    near = [mutant for mutant in alike if any(_shared(entry, mutant))]
    choice = near or (alike if len(alike) == 1 else [])
    return max(choice, key=lambda each: (_shared(entry, each), -abs(entry["ordinal"] - each.ordinal)), default=None)


def _nearest(entry: Record, mutants: Sequence[Mutant]) -> Mutant | None:
    def nearness(mutant: Mutant) -> tuple[float, int]:
        alike: float = difflib.SequenceMatcher(
            None, entry["text"] + entry["changed"], mutant.text + mutant.changed
        ).ratio()
        if entry["function"] == mutant.function:
            alike += 0.3
        alike += 0.2 if any(_shared(entry, mutant)) else 0.0
        return alike, -abs(entry["ordinal"] - mutant.ordinal)

    return max((mutant for mutant in mutants if mutant.kind == entry["kind"]), key=nearness, default=None)


def _shared(entry: Record, mutant: Mutant) -> tuple[bool, bool, bool]:
    """Return whether the path, the name of the file, and that of its folder are the same."""
    was, now = Path(entry["path"]), Path(mutant.path)
    return was == now, was.name == now.name, was.parent.name == now.parent.name
