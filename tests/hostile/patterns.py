"""Every regular expression of the product, collected in a fresh process, and the texts over which one is not linear.

Run as a program: `python -m tests.hostile.patterns [--deep] [--only MODULE]`. It prints one JSON line per slow pattern.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import inspect
import json
import pkgutil
import re
import re._compiler as compiler  # type: ignore[import-not-found]
import sys
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agent_memory.language.sentences import MAX_CHARS
from agent_memory.late import LatePattern
from tests.hostile.pumps import find_slow_text

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).resolve().parents[2]
_OURS = ("agent_memory", "amplifier_module_")
_EXEMPT = {
    "agent_memory.cli.runtime": "the command line's own usage",
    "agent_memory.files.names": "names of files in an agent's folder, at most 255 bytes",
    "agent_memory.encryption.blobs": "names of files in an agent's folder, at most 255 bytes",
    "agent_memory.care.backups.manifest": "names of files in an archive",
    "agent_memory.knowledge.pages.page_files": "names of pages, at most 255 bytes",
    "agent_memory.times.grammar._ELEMENT": "rules of our own grammar, read at its first use",
    "agent_memory.encryption.person": "the key of an agent, typed by its user",
    "agent_memory.settings.installation": "names of packages",
    "agent_memory.care.checks.examination": "names of packages",
    "agent_memory.settings.schema": "the settings of a user",
}
"""Modules, and names of patterns in modules, that never meet foreign text, with the reason."""
_ONLY_FULLMATCH = frozenset[str]()
"""Modules that apply what they compile in a function to a whole text or at one place, never by searching."""
_AT_A_LINE = (r"\s*(?:", r"\W*(?:")
"""Beginnings of the patterns of capture that are only applied where a line begins."""
_LONGEST_RUN = 159
_LONGEST_QUESTION = 2_000


def _break_runs(longest: int) -> Callable[[str], str]:
    """Return a function that puts a space into longer runs without one."""
    run = re.compile(rf"(\S{{{longest}}})(?=\S)")
    return lambda text: run.sub(r"\1 ", text)


_APPLIED: dict[str, Callable[[str], str]] = {
    "agent_memory.knowledge.entities.name_finder": _break_runs(_LONGEST_RUN),
    "agent_memory.times.date_mentions": lambda text: text[:_LONGEST_QUESTION],
    "agent_memory.capture.rules": lambda text: text[:MAX_CHARS],
}
"""What the code makes of a text before it applies the patterns of a module: longer runs are left out."""
_METHODS = ("match", "fullmatch", "search", "finditer", "findall", "sub", "subn", "split")


_EVERYTHING = """\
Ann moved to Berlin on 2026-01-01. Please remember that the db-prod-1 server runs PostgreSQL 16. Forget it.
Wir haben am 3. Mai entschieden, Kafka zu nutzen. Hemos decidido usar Redis ayer. Nous avons décidé hier.
我们昨天决定使用Redis。明日までに。Мы решили вчера.
"""
"""A text that makes readers compile what they compile when it is first needed."""


class PatternCollection:
    """Patterns of the product by text and flags, with the modules that compile them and the names that they have."""

    def __init__(self) -> None:
        self.places: dict[re.Pattern[Any], set[str]] = defaultdict(set)
        self._names: dict[re.Pattern[Any], set[tuple[str, str]]] = defaultdict(set)
        self._inline: dict[tuple[Any, int], set[str]] = defaultdict(set)
        self._calls: dict[tuple[str, str], set[str]] = defaultdict(set)

    def collect(self) -> None:
        """Import every module and note each pattern that is compiled, written in a call, or reachable."""
        original, make_late = compiler.compile, LatePattern.__init__
        compiler.compile = self._record(original)
        LatePattern.__init__ = _note_maker(make_late)  # type: ignore[method-assign]
        try:
            names = list(filter(_load, _list_modules()))
            self._read_sources(names)
            for name in names:
                self._note_names(sys.modules[name])
            readers = importlib.import_module("tests.hostile.readers")
            for reader in readers.READERS.values():
                reader(_EVERYTHING)
        finally:
            compiler.compile = original
            LatePattern.__init__ = make_late  # type: ignore[method-assign]

    def choose_method(self, pattern: re.Pattern[Any]) -> str:
        """Return the only method that the code applies to the pattern, else the most expensive one."""
        if {place.partition(":")[0] for place in self.places[pattern]} <= _ONLY_FULLMATCH:
            return "fullmatch"
        if str(pattern.pattern).startswith(_AT_A_LINE) and "agent_memory.capture.rules" in str(self.places[pattern]):
            return "match"
        called = set(self._inline.get((pattern.pattern, pattern.flags), set()))
        for module, name in self._names.get(pattern, set()):
            called |= self._calls[module if name.startswith("_") else "", name] or {"finditer"}
        called = called or {"finditer"}
        if len(called) == 1 and called <= {"match", "fullmatch", "search"}:
            return called.pop()
        return "search" if called <= {"match", "fullmatch", "search"} else "finditer"

    def choose_text(self, pattern: re.Pattern[Any]) -> Callable[[str], str] | None:
        """Return what the code does to a text before it applies the pattern; None if nothing."""
        modules = {place.partition(":")[0] for place in self.places[pattern]}
        prepared = [prepare for name, prepare in _APPLIED.items() if all(module.startswith(name) for module in modules)]
        return prepared[0] if prepared else None

    def is_exempt(self, pattern: re.Pattern[Any]) -> bool:
        """Return True if the pattern never meets foreign text."""
        modules = {place.partition(":")[0] for place in self.places[pattern]}
        return modules <= set(_EXEMPT) or any(".".join(name) in _EXEMPT for name in self._names.get(pattern, ()))

    def _record(self, original: Any) -> Any:
        def compile_pattern(pattern: Any, flags: int = 0) -> Any:
            compiled = original(pattern, flags)
            frame: Any = inspect.currentframe()
            frame = frame.f_back
            while (
                frame.f_globals["__name__"].partition(".")[0] in {"re", "functools"}
                or frame.f_globals["__name__"] == LatePattern.__module__
            ):
                late = frame.f_locals.get("self")
                if isinstance(late, LatePattern) and (maker := vars(late).get("maker")):
                    self.places[compiled].add(maker)
                    return compiled
                frame = frame.f_back
            if frame.f_globals["__name__"].startswith(_OURS):
                self.places[compiled].add(f"{frame.f_globals['__name__']}:{frame.f_lineno}")
            return compiled

        return compile_pattern

    def _read_sources(self, names: list[str]) -> None:
        for name in names:
            path = getattr(sys.modules[name], "__file__", None)
            if path is None:
                continue
            for node in ast.walk(ast.parse(Path(path).read_text(encoding="utf-8"))):
                if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                    self._note_call(name, node)
                elif isinstance(node, ast.Attribute) and node.attr in _METHODS:
                    self._note_attribute(name, node)

    def _note_attribute(self, module: str, node: ast.Attribute) -> None:
        owner = node.value
        name = owner.id if isinstance(owner, ast.Name) else owner.attr if isinstance(owner, ast.Attribute) else None
        if name is not None:
            self._calls[module if name.startswith("_") else "", name].add(node.attr)

    def _note_call(self, module: str, node: ast.Call) -> None:
        assert isinstance(node.func, ast.Attribute)
        if node.func.attr not in _METHODS:
            return
        self._note_attribute(module, node.func)
        is_inline = isinstance(node.func.value, ast.Name) and node.func.value.id == "re"
        if is_inline and node.args and isinstance(node.args[0], ast.Constant):
            flags = next((word.value for word in node.keywords if word.arg == "flags"), None)
            value = getattr(re, flags.attr) if isinstance(flags, ast.Attribute) else 0
            text: Any = node.args[0].value
            pattern = re.compile(text, value)
            self.places[pattern].add(f"{module}:{node.lineno}")
            self._inline[pattern.pattern, pattern.flags].add(node.func.attr)

    def _note_names(self, module: Any) -> None:
        for name, value in vars(module).items():
            pattern = value.scanner.__self__ if isinstance(value, LatePattern) else value
            if isinstance(pattern, re.Pattern):
                self._names[pattern].add((module.__name__, name))
                if pattern is not value or not self.places.get(pattern):
                    self.places[pattern].add(f"{module.__name__}:0")


def _note_maker(make_late: Callable[..., None]) -> Callable[..., None]:
    """Return a maker of late patterns that notes the place of its caller: the first user may be another module."""

    def make_noted(late: Any, *arguments: Any) -> None:
        make_late(late, *arguments)
        frame: Any = inspect.currentframe()
        frame = frame.f_back
        while frame.f_globals["__name__"] == LatePattern.__module__:
            frame = frame.f_back
        late.maker = f"{frame.f_globals['__name__']}:{frame.f_lineno}"

    return make_noted


def _list_modules() -> list[str]:
    import agent_memory

    names = [module.name for module in pkgutil.walk_packages(agent_memory.__path__, "agent_memory.")]
    for folder in sorted((ROOT / "modules").iterdir()):
        for package in sorted(folder.glob("amplifier_module_*")):
            sys.path.insert(0, str(folder))
            names += [package.name]
            names += [module.name for module in pkgutil.walk_packages([str(package)], f"{package.name}.")]
    return [name for name in names if not name.endswith("__main__")]


def _load(name: str) -> bool:
    """Import a module; return False if a package of an extra is absent."""
    try:
        importlib.import_module(name)
    except ModuleNotFoundError as error:
        if (error.name or "").startswith(("agent_memory", "amplifier_module")):
            raise
        return False
    return True


def _write(shown: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(shown, ensure_ascii=False) + "\n")
    sys.stdout.flush()


def main() -> None:
    """Print each pattern that is not linear, and at last how many there are."""
    reader = argparse.ArgumentParser()
    reader.add_argument("--deep", action="store_true")
    reader.add_argument("--only", default="")
    arguments = reader.parse_args()
    collection = PatternCollection()
    collection.collect()
    patterns = sorted(collection.places, key=lambda pattern: (str(pattern.pattern), pattern.flags))
    count = slow = 0
    for pattern in patterns:
        places = sorted(collection.places[pattern])
        if collection.is_exempt(pattern) or not any(arguments.only in place for place in places):
            continue
        count += 1
        method = collection.choose_method(pattern)
        variants = 4 if arguments.deep else 1
        text = find_slow_text(pattern, method, variants=variants, prepare=collection.choose_text(pattern))
        if text is not None:
            slow += 1
            shown = {"places": places, "method": method, "pattern": str(pattern.pattern)[:300], "slow": str(text)}
            _write(shown)
    _write({"patterns": count, "slow": slow})


if __name__ == "__main__":
    main()
