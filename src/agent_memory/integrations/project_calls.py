"""Calls that read only the project: paths, shell words and local programs.

An allow-list of programs and of the forms of their arguments. What is not understood is not of the project: another
program, an option that is not listed, a link or pattern that leads out, an expansion.
"""

from __future__ import annotations

import os
import re
import stat
from dataclasses import dataclass, field
from glob import iglob
from itertools import dropwhile, islice, takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping


_TOKEN: Final = re.compile(
    r"""[ \t]*(?:
      (?P<joined>[12]?>&[12])
      |(?P<redirect>[012&]?>>?|<)(?![<>&|])
      |(?P<end>&&|\|\||[\n;|&]|$)
      |(?P<word>(?:
          [^\s'"\\$`;&|<>(){}\[\]#]
          |'[^']*'
          |"(?:[^"\\$`]|\$\?|\\[^"\\$`\n])*"
          |\$\?
      )+)
    )""",
    re.VERBOSE,
)
_QUOTED: Final = re.compile(r"'([^']*)'|\"([^\"]*)\"")


class ShellWord(NamedTuple):
    """Word of a command without its quotes.

    Attributes:
        text: Text that the program gets, unless it is a pattern.
        is_pattern: True if the shell replaces it by the files that match.
    """

    text: str
    is_pattern: bool = False


@dataclass(slots=True)
class SimpleCommand:
    """Program with its arguments.

    Attributes:
        words: Program and arguments.
        files: Files of its redirections.
        end: Operator after it; empty for the last.
    """

    words: list[ShellWord] = field(default_factory=list)
    files: list[ShellWord] = field(default_factory=list)
    end: str = ""


def parse_commands(text: str) -> list[SimpleCommand] | None:
    """Return the simple commands, None for any other syntax."""
    commands, position, is_file = [SimpleCommand()], 0, False
    while position < len(text):
        token = _TOKEN.match(text, position)
        if token is None or (is_file and token.lastgroup != "word"):
            return None
        position = token.end()
        if token.lastgroup == "word":
            (commands[-1].files if is_file else commands[-1].words).append(_build_word(token["word"]))
        elif token.lastgroup == "end":
            commands[-1].end = token["end"]
            commands.append(SimpleCommand())
        is_file = token.lastgroup == "redirect"
    return None if is_file else [command for command in commands if command.words or command.files]


def _build_word(token: str) -> ShellWord:
    text = _QUOTED.sub(lambda quoted: quoted[1] or quoted[2] or "", token)
    return ShellWord(text, is_pattern=not {"*", "?"}.isdisjoint(_QUOTED.sub("", token).replace("$?", "")))


def list_operands(
    arguments: list[ShellWord], flags: str, valued: str, long_option: re.Pattern[str]
) -> list[ShellWord] | None:
    """Return words other than options, None for an unknown option.

    Args:
        arguments: Arguments of a program.
        flags: Letters of options without a value; digits are too.
        valued: Letters of options with a value.
        long_option: Pattern of the options that begin with two dashes.
    """
    cluster = re.compile(rf"-[{flags}\d]*(?:[{valued or '-'}](.*))?", re.DOTALL)
    operands, words = [], iter(arguments)
    for word in words:
        if word.text[:1] != "-" or word.text == "-":
            operands.append(word)
            continue
        letters = cluster.fullmatch(word.text)
        is_long = word.text[:2] == "--"
        if not (long_option.fullmatch(word.text) if is_long else letters and not word.is_pattern):
            return None
        if not is_long and letters and letters[1] == "" and next(words, word).is_pattern:
            return None
    return operands


_NULL: Final = "/dev/null"
_SEPARATORS: Final = re.compile(r"[=:,@]")
"""Characters after which a word may name another path."""
_MAX_ENTRIES: Final = 5_000
"""Entries of a folder that is read as a whole; a larger one is not certain."""
_MAX_MATCHES: Final = 500
_SKIPPED: Final = frozenset({".git", ".venv"})
"""Folders that search tools leave out."""
_FOREIGN: Final = (".git/FETCH_HEAD", ".git/packed-refs", ".git/logs", ".git/modules", ".git/refs/remotes")
"""Files of the project's folder with names and messages of others."""


class ProjectPaths:
    """Paths of a call, relative to a folder of the project.

    Args:
        project: Root of the project.
        folder: Folder that paths are relative to.
    """

    def __init__(self, project: Path, folder: Path) -> None:
        self.project, self.folder = project, folder
        self._root = os.path.realpath(project)
        self._foreign = tuple(Path(self._root, name) for name in _FOREIGN)

    def is_inside(self, path: str) -> bool:
        """Return True if a path is in the project, or missing there.

        A file with a second name (hard link), a pipe and a device are not.
        """
        try:
            places = {os.path.realpath(self.folder / name) for name in (path, os.path.normpath(path))}
            if (
                path.startswith(("~", "@"))
                or "$" in path
                or not all(Path(place).is_relative_to(self._root) for place in places)
                or any(Path(place).is_relative_to(foreign) for place in places for foreign in self._foreign)
            ):
                return False
            return all(_is_ordinary(Path(place).stat()) for place in places)
        except (FileNotFoundError, NotADirectoryError):
            return True
        except (OSError, ValueError):
            return False

    def is_word_inside(self, text: str) -> bool:
        """Return True if every path in a text is in the project."""
        return all(map(self.is_inside, {text, *filter(None, _SEPARATORS.split(text))} - {_NULL}))

    def is_argument_inside(self, word: ShellWord) -> bool:
        """Return True if a command's word and its matches are inside."""
        if not self.is_word_inside(word.text):
            return False
        if not word.is_pattern:
            return True
        matches = list(islice(iglob(word.text, root_dir=self.folder), _MAX_MATCHES))  # noqa: PTH207 - as a shell does
        return "[" not in word.text and len(matches) < _MAX_MATCHES and all(map(self.is_word_inside, matches))

    def is_tree_inside(self, path: str, *, is_search: bool = False) -> bool:
        """Return True if a path and its whole tree are inside.

        Args:
            path: File or folder.
            is_search: True for a tool that leaves out folders such as `.git`.
        """
        if not self.is_inside(path):
            return False
        skipped = self._list_skipped() if is_search else frozenset()
        pending, entries = [os.path.realpath(self.folder / path)], 0
        while pending:
            try:
                with os.scandir(pending.pop()) as listing:
                    children = list(islice(listing, _MAX_ENTRIES))
            except (FileNotFoundError, NotADirectoryError):
                continue
            except OSError:
                return False
            entries += len(children)
            if entries >= _MAX_ENTRIES or not all(map(self._is_entry_inside, children)):
                return False
            pending += [
                child.path for child in children if child.is_dir(follow_symlinks=False) and child.name not in skipped
            ]
        return True

    def _is_entry_inside(self, entry: os.DirEntry[str]) -> bool:
        try:
            return self.is_inside(entry.path) if entry.is_symlink() else _is_ordinary(entry.stat(follow_symlinks=False))
        except OSError:
            return False

    def _list_skipped(self) -> frozenset[str]:
        try:
            ignored = (self.project / ".gitignore").read_text("utf-8", "replace").split()
        except OSError:
            return _SKIPPED
        return _SKIPPED | ({"node_modules"} if {"node_modules", "node_modules/"} & {*ignored} else set())


def _is_ordinary(status: os.stat_result) -> bool:
    return stat.S_ISDIR(status.st_mode) or (stat.S_ISREG(status.st_mode) and status.st_nlink == 1)


_TEXTS: Final = frozenset({"content", "new_string", "old_string"})
"""Arguments that are written, never read as a path."""
_LEADS_OUT: Final = re.compile(r"\.\.|~|(^|[{,=:@])/|\{[^{}]*/")
"""Part of a pattern that may lead out of its folder."""
_MAX_TEXTS: Final = 100


def is_project_file(arguments: Any, project: Path, folder: Path) -> bool:
    """Return True if a file tool's paths are certainly in the project.

    Each text may be a path, whatever its name, except what is written.
    """
    paths = ProjectPaths(project, folder)
    texts = _list_texts(arguments, _TEXTS)
    return bool(texts) and all(map(paths.is_word_inside, texts or ()))


def is_project_search(tool: str, arguments: Any, project: Path, folder: Path) -> bool:
    """Return True if a search tool certainly reads the project alone.

    Args:
        tool: Name of the tool; the pattern of `grep` is not a path.
        arguments: Arguments of the call.
        project: Root of the project.
        folder: Folder that paths are relative to.
    """
    patterns = _list_texts(arguments, {"path", "pattern"} if tool == "grep" else {"path"})
    if patterns is None or any(map(_LEADS_OUT.search, patterns)):
        return False
    place = arguments.get("path", ".")
    is_search = not arguments.get("include_ignored")
    return isinstance(place, str) and ProjectPaths(project, folder).is_tree_inside(place, is_search=is_search)


def _list_texts(arguments: Any, ignored: Collection[str]) -> list[str] | None:
    """Return the texts of a call, None if values are nested."""
    if not isinstance(arguments, dict):
        return None
    values = list(_iter_values(arguments, ignored))
    if len(values) > _MAX_TEXTS or any(isinstance(value, dict | list | tuple) for value in values):
        return None
    return [value for value in values if isinstance(value, str)]


def _iter_values(arguments: dict[str, Any], ignored: Collection[str]) -> Iterator[Any]:
    for name, value in arguments.items():
        if name not in ignored:
            yield from value if isinstance(value, list) else [value]


_VERBS: Final[Mapping[str, tuple[str, str]]] = {
    "add": ("Auv", ""), "blame": ("lsw", "L"), "branch": ("", ""), "commit": ("aqv", "m"), "diff": ("bpw", "U"),
    "log": ("pqs", "GSn"), "ls-files": ("cdmoz", ""), "mv": ("fv", ""), "restore": ("q", ""),
    "rev-parse": ("", ""), "rm": ("fqr", ""), "show": ("pqs", ""), "status": ("bsu", ""),
}  # fmt: skip
_GIT_OPTION: Final = re.compile(
    r"--(abbrev-(commit|ref)|amend|cached|graph|name-(only|status)|no-(color|edit)|numstat|oneline|patch|porcelain"
    r"|reverse|short|shortstat|show-(current|toplevel)|staged|stat"
    r"|(author|date|format|grep|max-count|pretty|since|unified|until)=.*)"
)
_HEAD: Final = re.compile(r"(HEAD[~^\d]*)(\.{2,3}(HEAD[~^\d]*)?)?")
"""Revision that is local for certain; any other name may be that of a remote."""


def is_local_git(arguments: list[ShellWord], paths: ProjectPaths) -> bool:
    """Return True if git shows only the working tree and local revisions."""
    arguments = list(dropwhile(lambda word: word.text == "--no-pager", arguments))
    verb = arguments[0].text if arguments else ""
    if verb not in _VERBS or not paths.is_inside(str(paths.project / ".git")):
        return False
    texts = [word.text for word in arguments]
    position = texts.index("--") if "--" in texts else len(texts)
    revisions = list_operands(arguments[1:position], *_VERBS[verb], _GIT_OPTION)
    if revisions is None or not all(map(paths.is_argument_inside, [*revisions, *arguments[position + 1 :]])):
        return False
    is_file = position == len(texts)  # without `--` git refuses a name that is both a file and a revision
    if not all(_is_local_revision(word.text, paths, is_file=is_file) for word in revisions):
        return False
    return verb != "diff" or paths.is_tree_inside(str(paths.project), is_search=True)


def _is_local_revision(text: str, paths: ProjectPaths, *, is_file: bool) -> bool:
    """Return True if a word is HEAD, or a file if allowed."""
    revision = text.partition(":")[0]
    return _HEAD.fullmatch(revision) is not None or (is_file and (paths.folder / text).exists())


_READERS: Final[Mapping[str, tuple[str, str]]] = {
    "awk": ("", "F"), "basename": ("", ""), "cat": ("AETbensv", ""), "chmod": ("Rv", ""), "cmp": ("bls", ""),
    "comm": ("", ""), "cp": ("afiprRuv", ""), "cut": ("s", "bcdf"), "date": ("u", ""), "diff": ("BNabiqrtuwy", "U"),
    "dirname": ("", ""), "du": ("abchkms", "d"), "false": ("", ""), "file": ("bi", ""),
    "grep": ("EFGHILPabchilnoqrsvwxz", "ABCm"), "head": ("qv", "cn"), "jq": ("cr", ""), "ldd": ("v", ""),
    "ls": ("AFGRSXacdfghilmnopqrstux", ""), "mkdir": ("pv", ""), "mv": ("finuv", ""), "nl": ("", "bnsvw"),
    "pwd": ("", ""), "realpath": ("", ""), "rg": ("FHINPSUcilnoqsvwx", "ABCgmt"), "rm": ("fiRrv", ""),
    "sed": ("Einr", ""), "sha256sum": ("", ""), "sleep": ("", ""), "sort": ("Rbdfghinruv", "kt"), "stat": ("", "c"),
    "tail": ("qv", "cn"), "tee": ("a", ""), "test": ("bcdefghkLnprsuwxz", ""), "touch": ("", ""), "tr": ("cds", ""),
    "tree": ("Dadfhis", "LI"), "true": ("", ""), "uniq": ("cdiu", "fsw"), "wc": ("Lclmw", ""), "which": ("a", ""),
}  # fmt: skip
"""Programs by their options without a value and with one; none of them names a file or follows links."""
_LONG_OPTION: Final = re.compile(r"--(version|help|colou?r(=\w+)?|(exclude|exclude-dir|glob|include|type)=.+)")
_SEARCHES: Final = frozenset({"grep", "rg"})
_SCRIPTS: Final[Mapping[str, re.Pattern[str]]] = {
    "awk": re.compile(r"(/[^/]*/ ?)?\{ ?print( \$\w+(, ?\$\w+)*)? ?\}"),
    "jq": re.compile(r"\.[.\w\[\]-]*"),
    "sed": re.compile(r"[\d,$]{0,40}[dp]|s([/|#,])(?:(?!\1)[^\n;])*\1(?:(?!\1)[^\n;])*\1[gip\d]*"),
}
"""Scripts that print, delete or substitute: others can read files, run commands or show the environment."""
_READS_FOLDERS: Final = frozenset({"cp", "diff", "grep", "mv", "rg"})
_FIND_OPTION: Final = re.compile(
    r"-(i?name|i?path|type|m(ax|in)depth|size|m(time|min)|newer|not|o|or|a|and|print0?|prune|empty|\d+\w?)"
)


def reads_project(program: str, arguments: list[ShellWord], paths: ProjectPaths) -> bool:
    """Return True if a program reads files of the project alone."""
    if program in _OTHER_READERS:
        return _OTHER_READERS[program](arguments, paths)
    operands = list_operands(arguments, *_READERS[program], _LONG_OPTION) if program in _READERS else None
    if operands is None:
        return False
    if operands and (program in _SEARCHES or program in _SCRIPTS):
        script = operands.pop(0)
        if script.is_pattern or (program in _SCRIPTS and not _SCRIPTS[program].fullmatch(script.text)):
            return False
    return all(map(paths.is_argument_inside, operands)) and _reads_folders_inside(program, arguments, operands, paths)


def _reads_folders_inside(
    program: str, arguments: list[ShellWord], operands: list[ShellWord], paths: ProjectPaths
) -> bool:
    """Return True if all folders that are read whole are inside."""
    if program not in _READS_FOLDERS:
        return True
    is_search = program == "rg"
    is_recursive = is_search or any(word.text.startswith("-") and "r" in word.text for word in arguments)
    sources = operands[:-1] if program in {"cp", "mv"} else operands
    folders = [word.text for word in sources] or ["."] * is_recursive
    return all(paths.is_tree_inside(folder, is_search=is_search) for folder in folders)


def _prints_arguments(arguments: list[ShellWord], _paths: ProjectPaths) -> bool:
    return not any(word.is_pattern for word in arguments)


def _finds_inside(arguments: list[ShellWord], paths: ProjectPaths) -> bool:
    places = list(takewhile(lambda word: not word.text.startswith("-"), arguments))
    options = [word.text for word in arguments[len(places) :] if word.text.startswith("-")]
    return all(map(_FIND_OPTION.fullmatch, options)) and all(map(paths.is_argument_inside, places))


def _shows_schema(arguments: list[ShellWord], paths: ProjectPaths) -> bool:
    is_schema = [word.text for word in arguments[1:]] in ([".schema"], [".tables"])
    return is_schema and paths.is_argument_inside(arguments[0])


_OTHER_READERS: Final[Mapping[str, Callable[[list[ShellWord], ProjectPaths], bool]]] = {
    "echo": _prints_arguments,
    "find": _finds_inside,
    "git": is_local_git,
    "printf": _prints_arguments,
    "sqlite3": _shows_schema,
}


_RUNNERS: Final[Mapping[str, frozenset[str]]] = {
    **dict.fromkeys(
        ("black", "cmake", "ctest", "eslint", "flake8", "g++", "gcc", "gradle", "gradlew", "isort", "jest", "just",
         "make", "mocha", "mypy", "ninja", "nox", "phpunit", "pylint", "pyright", "pytest", "rspec", "ruff",
         "shellcheck", "tox", "tsc", "vitest", "yamllint"),
        frozenset(),
    ),
    "bun": frozenset({"run", "test"}),
    "cargo": frozenset({"bench", "build", "check", "clippy", "fmt", "run", "test"}),
    "composer": frozenset({"test"}),
    "dotnet": frozenset({"build", "format", "run", "test"}),
    "go": frozenset({"build", "fmt", "test", "vet"}),
    "helm": frozenset({"lint", "template"}),
    "mix": frozenset({"compile", "format", "test"}),
    "mvn": frozenset({"compile", "package", "test", "verify"}),
    "npm": frozenset({"ls", "run", "t", "test"}),
    "pnpm": frozenset({"run", "test"}),
    "swift": frozenset({"build", "test"}),
    "yarn": frozenset({"run", "test"}),
    "terraform": frozenset({"fmt", "validate"}),
    "zig": frozenset({"build", "test"}),
}  # fmt: skip
"""Programs that run what the project declares, by their verbs; empty if they have none."""
_RUN_OPTION: Final = re.compile(
    r"--|-[A-DF-Za-df-z]+[\d.]*(=\S*)?|-race|--(all|all-features|all-targets|build|check|collect-only|cov|cov-report"
    r"|coverage|deselect|diff|durations|exitfirst|ff|fix|ignore|ignore-missing-imports|jobs|keep-going|last-failed|lf"
    r"|lib|line-length|maxfail|nocapture|noEmit|no-cov|no-fail-fast|no-header|no-run|offline|output-format"
    r"|output-on-failure|package|parallel|quiet|release|run|runInBand|select|silent|stacktrace|statistics|strict|tb"
    r"|target|test|testNamePattern|verbose|version|watch|workspace)(=.*)?"
)
"""Option of a runner: none takes code (`-e`, `--eval`, `-exec`), a program or the name of a configuration."""
_QUIET: Final = frozenset({"-q", "--quiet", "-s", "--silent"})
"""Options that may stand before a verb."""
_FOLDER_OPERANDS: Final = frozenset({"go", "helm"})
"""Runners whose operand is remote unless it begins with a dot."""
_INTERPRETERS: Final = frozenset({"node", "php", "python", "python3"})
_MODULES: Final = frozenset({"compileall", "coverage", "doctest", "json.tool", "mypy", "pytest", "ruff", "unittest"})
ASSIGNMENT: Final = re.compile(r"[A-Za-z_]\w*=[\w.,/-]*")
"""Variable of the environment or of make, with a plain value."""
_IS_ASSIGNED: Final = re.compile(r"\w+=")
_ENVIRONMENT_OR_CODE: Final = frozenset({"-", "env"})
"""Arguments that print the environment (`npm run env`) or read a program from the input."""


def is_runner(program: str) -> bool:
    """Return True if a program runs what the project declares."""
    return program in _RUNNERS or program in _INTERPRETERS


def runs_project(program: str, arguments: list[ShellWord], paths: ProjectPaths) -> bool:
    """Return True if a runner gets only what the project declares."""
    texts = [word.text for word in arguments]
    if not all(map(paths.is_argument_inside, arguments)) or not _ENVIRONMENT_OR_CODE.isdisjoint(texts):
        return False
    if program in _INTERPRETERS:
        return _runs_file_or_module(texts, paths)
    verbs = _RUNNERS[program]
    texts = list(dropwhile(_QUIET.__contains__, texts))
    if verbs and (not texts or texts[0] not in verbs):
        return False
    is_dotted = all(text.startswith((".", "-")) for text in texts[1:])
    return (program not in _FOLDER_OPERANDS or is_dotted) and _has_plain_options(texts, paths)


def _runs_file_or_module(texts: list[str], paths: ProjectPaths) -> bool:
    """Return True if an interpreter runs a file or a known module."""
    if texts[:1] != ["-m"]:
        return texts == ["--version"] or bool(texts and not texts[0].startswith("-"))
    module = "".join(texts[1:2])
    if module in _MODULES:
        return _has_plain_options(texts[2:], paths)
    places = [f"{base}{module.replace('.', '/')}{end}" for base in ("", "src/") for end in ("", ".py")]
    return bool(module) and any((paths.folder / place).exists() and paths.is_inside(place) for place in places)


def _has_plain_options(texts: list[str], paths: ProjectPaths) -> bool:
    """Return True if all options and variables are plain and inside."""
    options = [text for text in texts if text.startswith("-")]
    attached = (text[start:] for text in options if text[1:2] != "-" for start in range(2, len(text)))
    variables = (text for text in texts if _IS_ASSIGNED.match(text))
    return (
        all(map(_RUN_OPTION.fullmatch, options))
        and all(map(ASSIGNMENT.fullmatch, variables))
        and all(map(paths.is_word_inside, attached))
    )


_MAX_COMMAND: Final = 20_000
"""Characters of a command; a longer one is not checked."""
_MACHINE: Final = re.compile(
    r"cat /etc/os-release|df( -\w+)?( [\w./-]+)?|docker compose ps|free( -\w)?|lscpu|nproc|uname( -\w+)?"
    r"|(cargo|docker|dotnet|gcc|git|go|java|npm|php|pnpm|ruby|rustc|yarn) (-v|-version|--version|version)"
)
"""Whole commands that print facts of this machine."""
_PREFIXES: Final = frozenset({"!", "do", "else", "if", "nohup", "then", "time", "until", "while"})
_LAUNCHERS: Final = (["bundle", "exec"], ["poetry", "run"], ["uv", "run"])
_RUNS_NOTHING: Final = frozenset({"done", "fi", "for"})


def is_project_command(command: object, project: Path, folder: Path) -> bool:
    """Return True if a command certainly stays in the project.

    Args:
        command: Command of the shell.
        project: Root of the project.
        folder: Folder in which the shell runs.
    """
    if not isinstance(command, str) or len(command) > _MAX_COMMAND or "agent_memory" in command:
        return False
    commands, paths = parse_commands(command), ProjectPaths(project, folder)
    if not commands or not paths.is_inside("."):
        return False
    while commands and commands[0].words[:1] == [("cd", False)]:  # later a failed command may skip it
        target = [word.text for word in commands[0].words[1:]]
        if commands[0].end not in {"&&", ";", "\n"} or commands[0].files or len(target) != 1 or target[0][:1] == "-":
            return False
        if not paths.is_inside(target[0]) or not (paths.folder / target[0]).is_dir():
            return False
        paths = ProjectPaths(project, Path(os.path.realpath(paths.folder / target[0])))
        commands = commands[1:]
    return all(_is_local(simple, paths) for simple in commands)


def _is_local(command: SimpleCommand, paths: ProjectPaths) -> bool:
    """Return True if a simple command reads or runs only the project."""
    words = list(dropwhile(lambda word: word.text in _PREFIXES, command.words))
    if not all(map(paths.is_argument_inside, command.files)):
        return False
    texts = [word.text for word in words]
    if _MACHINE.fullmatch(" ".join(texts)):
        return True
    if texts[:2] in _LAUNCHERS:
        words = words[2:]
    rest = list(dropwhile(lambda word: ASSIGNMENT.fullmatch(word.text), words))
    is_changed = len(rest) < len(words)
    if not rest or rest[0].text in _RUNS_NOTHING:
        return all(map(paths.is_argument_inside, words))
    program, arguments = _find_program(rest[0].text, paths), rest[1:]
    if is_runner(program):
        return all(map(paths.is_argument_inside, words[: -len(rest)])) and runs_project(program, arguments, paths)
    return not is_changed and reads_project(program, arguments, paths)


def _find_program(word: str, paths: ProjectPaths) -> str:
    """Return a program's name, empty for one in another folder.

    The interpreter of a virtual environment of the project is a link out of it.
    """
    folder, slash, name = word.rpartition("/")
    if not slash or (paths.is_inside(folder or "/") and paths.is_inside(word)):
        return name
    is_environment = paths.is_inside(folder or "/") and (paths.folder / folder / "../pyvenv.cfg").is_file()
    return name if is_environment else ""
