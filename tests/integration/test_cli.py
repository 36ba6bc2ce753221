"""`agent-memory` as a process: exit codes, pipes, terminals, the editor, a lock that another process holds.

Most commands are forked from a process that has imported the command line. New processes, with an interpreter of their
own, are: help, Ctrl-C (2), the missing extra, another locale (2), a reader that leaves early, an editor that prints,
a closed input (4), a full output.
"""

from __future__ import annotations

import json
import os
import pty
import re
import select
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from agent_memory.files.lock import folder_lock
from tests.fork_server import CommandForker

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    Run = Callable[..., subprocess.CompletedProcess[str]]

SOURCE = Path(__file__).parents[2] / "src"
COMMAND = (sys.executable, "-m", "agent_memory.cli")
PRELOADED = (
    *("agent_memory.cli.app", "agent_memory.cli.edit", "agent_memory.cli.forget", "agent_memory.memory.service_parts"),
    *("agent_memory.memory.forget_service", "agent_memory.redaction.detection", "agent_memory.redaction.unlabelled"),
    "numpy",
)
A, B = "mem-00000000000a", "mem-00000000000b"
SEED = (
    {"id": A, "content": "The ledger is in PostgreSQL \U0001f418.", "category": "decision"},
    {"id": B, "content": "Evil \x1b[2J [red]page[/].", "trust": "low"},
)


def build_variables(home: Path, root: Path, temporary: Path) -> dict[str, str]:
    """Return the variables of a process with a home of its own, no editor and no choice of colours."""
    temporary.mkdir()
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "PYTHONPATH": str(SOURCE),
        "AGENT_MEMORY_ROOT": str(root),
        "TMPDIR": str(temporary),
        "TERM": "xterm-256color",
        "COLUMNS": "80",
    }


@pytest.fixture
def environment(root: Path, home: Path, tmp_path: Path) -> dict[str, str]:
    return build_variables(home, root, tmp_path / "tmp")


@pytest.fixture(scope="module")
def forker() -> Iterator[CommandForker]:
    forker = CommandForker(*PRELOADED)
    yield forker
    forker.close()


def check_result(result: subprocess.CompletedProcess[str], code: int) -> subprocess.CompletedProcess[str]:
    assert result.returncode == code, result.stdout + result.stderr
    assert "Traceback" not in result.stderr
    return result


@pytest.fixture
def cli(environment: dict[str, str], forker: CommandForker) -> Run:
    """Return `agent-memory` in a fork, without a terminal."""

    def run(*arguments: str, given: str = "", code: int = 0, **extra: str) -> subprocess.CompletedProcess[str]:
        return check_result(forker.run([*COMMAND[2:], *arguments], environment | extra, given), code)

    return run


@pytest.fixture
def new_process(environment: dict[str, str]) -> Run:
    """Return `agent-memory` in a process with an interpreter of its own."""

    def run(*arguments: str, code: int = 0, **extra: str) -> subprocess.CompletedProcess[str]:
        command, variables = [*COMMAND, *arguments], environment | extra
        return check_result(
            subprocess.run(command, capture_output=True, encoding="utf-8", env=variables, check=False), code
        )

    return run


@pytest.fixture(scope="module")
def seed(forker: CommandForker, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a storage root with an agent bob who knows two things."""
    folder = tmp_path_factory.mktemp("seed")
    variables = build_variables(folder, folder / "memory", folder / "tmp")
    lines = "".join(json.dumps(entry) + "\n" for entry in SEED)
    check_result(forker.run([*COMMAND[2:], "import", "-", "--trusted", "--agent", "bob"], variables, lines), 0)
    return folder / "memory"


@pytest.fixture
def bob(cli: Run, seed: Path, root: Path) -> Run:
    """Return `agent-memory` with an agent bob who knows two things."""
    shutil.copytree(seed, root)
    return cli


class TerminalRunner:
    """Runs commands with a terminal for all three streams, which is their controlling one."""

    def __init__(self, forker: CommandForker) -> None:
        self._forker = forker

    def __call__(
        self, variables: Mapping[str, str], *arguments: str, typed: str = "", prompt: str = ""
    ) -> tuple[int, str]:
        """Run a command; type once `prompt` is shown. Return its exit status and its output."""
        parent, child = pty.openpty()
        self._forker.start([*COMMAND[2:], *arguments], (child, child, child), variables)
        os.close(child)
        shown = b""
        until = time.monotonic() + 60
        while time.monotonic() < until:
            if select.select([parent], [], [], 0.2)[0]:
                try:
                    block = os.read(parent, 65536)
                except OSError:  # how Linux reports that the other side is closed
                    block = b""
                if not block:
                    break
                shown += block
            if typed and prompt.encode() in shown:
                os.write(parent, typed.encode())
                typed = ""
        os.close(parent)
        return self._forker.wait(), shown.decode()


@pytest.fixture
def in_a_terminal(forker: CommandForker) -> TerminalRunner:
    return TerminalRunner(forker)


def test_end_of_process_does_not_collect_objects(environment: dict[str, str]) -> None:
    script = (
        "import atexit, gc; atexit.register(lambda: print(gc.get_freeze_count() > 0));"
        "from agent_memory.cli import main; main()"
    )
    command = [sys.executable, "-c", script, "--version"]
    result = check_result(subprocess.run(command, env=environment, capture_output=True, text=True, check=False), 0)
    assert result.stdout.splitlines()[-1] == "True"


def test_help_loads_nothing_that_works_with_memories(environment: dict[str, str]) -> None:
    """What a shell completion or --help must not wait for: the model, numpy, the redactor's detectors."""
    script = (
        "import sys\n"
        "sys.argv = ['agent-memory', '--help']\n"
        "from agent_memory.cli import main\n"
        "try:\n    main()\nexcept SystemExit as end:\n    assert not end.code\n"
        "print([name for name in ('numpy', 'onnxruntime', 'agent_memory.redaction.providers') if name in sys.modules])"
    )
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=environment, check=True)
    assert result.stdout.rstrip().endswith("[]")


@pytest.mark.parametrize(
    ("hook", "code", "said"),
    [("sys.meta_path.insert(0, Importer())", 130, "Stopped.\n"), ("atexit.register(interrupt)", 0, "")],
    ids=["while modules are imported", "after the result"],
)
def test_control_c_outside_of_a_command_prints_no_traceback(
    environment: dict[str, str], hook: str, code: int, said: str
) -> None:
    script = (
        "import atexit, signal, sys\n"
        "def interrupt(): signal.raise_signal(signal.SIGINT)\n"
        "class Importer:\n"
        "    def find_spec(self, name, *_):\n"
        "        if name == 'agent_memory.cli.app': interrupt()\n"
        f"{hook}\n"
        "sys.argv = ['agent-memory', 'help']\n"
        "from agent_memory.cli import main\n"
        "main()"
    )
    result = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, env=environment, check=False
    )
    assert (result.returncode, result.stderr) == (code, said)


def test_without_the_extra_one_sentence_says_how_to_install_it(environment: dict[str, str]) -> None:
    script = "import sys; sys.modules['typer'] = None\nfrom agent_memory.cli import main\nmain()"
    result = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, env=environment, check=False
    )
    assert result.returncode == 2
    assert result.stdout == ""
    assert [line[:5] for line in result.stderr.splitlines()] == ["error", "hint:"]
    assert "pip install" in result.stderr


def test_1_when_something_fails(cli: Run) -> None:
    result = cli("export", code=1)
    first, second = result.stderr.strip().splitlines()
    assert first.startswith("error: No agents")
    assert "agent-memory store TEXT" in second


def test_0_when_all_is_well_2_for_wrong_usage_3_for_what_is_not_there_and_4_while_another_writes(
    bob: Run, root: Path
) -> None:
    assert "PostgreSQL \U0001f418" in bob("list").stdout
    assert "--limit" in bob("search", "x", "--limit", "0", code=2).stderr
    bob("show", "mem-ffffffffffff", code=3)
    bob("search", "xylophone", "--category", "insight", code=3)
    with folder_lock(root / "bob"):
        assert "Try again" in bob("store", "x", code=4).stderr


@pytest.mark.parametrize(
    "command",
    [
        ["status"],
        ["search", "ledger", "--explain"],
        ["list"],
        ["show", A],
        ["pin", A],
        ["pin", "--once", A],
        ["archive", "compact"],
    ],
    ids=lambda command: command[0],
)
def test_json_is_all_there_is_on_stdout(bob: Run, command: list[str]) -> None:
    assert isinstance(json.loads(bob(*command, "--json").stdout), dict)


def test_warnings_of_the_library_do_not_get_into_stdout(bob: Run, root: Path) -> None:
    """The scratchpad cannot be rendered here: its file is a folder."""
    (root / "bob" / "scratchpad.yaml").unlink()
    (root / "bob" / "scratchpad.yaml").mkdir()
    result = bob("pin", A, "--json")
    assert json.loads(result.stdout)["changed"]
    assert "warning: Could not" in result.stderr


def test_agents_are_copied_through_a_pipe(bob: Run) -> None:
    exported = bob("export", "-a", "bob").stdout
    assert [json.loads(line)["id"] for line in exported.splitlines()] == [A, B]
    assert bob("import", "-", "-a", "twin", "--trusted", given=exported).stdout == "Imported 2 memories.\n"
    yaml = bob("export", "-a", "twin", "--format", "yaml").stdout
    bob("import", "-", "-a", "third", "--format", "yaml", "--trusted", given=yaml)
    assert bob("export", "-a", "third").stdout == exported


def test_a_locale_without_unicode_costs_no_data(bob: Run, new_process: Run) -> None:
    ascii_only = {"PYTHONIOENCODING": "ascii", "LC_ALL": "C"}
    assert "\U0001f418" in new_process("export", **ascii_only).stdout
    assert "PostgreSQL \\U0001f418" in new_process("list", **ascii_only).stdout


def test_a_reader_that_leaves_early_is_no_crash(bob: Run, environment: dict[str, str]) -> None:
    bob("import", "-", given="".join(f'{{"content": "entry {n} {"x" * 900}"}}\n' for n in range(120)))
    with subprocess.Popen(
        [*COMMAND, "export"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment
    ) as process:
        assert process.stdout.readline()
        process.stdout.close()
        assert b"Traceback" not in process.stderr.read()


def test_a_pipe_gets_whole_lines_and_no_colour(bob: Run) -> None:
    text = "A sentence that is longer than any terminal is wide. " * 4
    bob("store", text)
    result = bob("list")
    assert text.strip() in result.stdout.splitlines()
    assert "\x1b" not in result.stdout + result.stderr


def test_a_progress_bar_is_for_terminals(
    bob: Run, environment: dict[str, str], in_a_terminal: TerminalRunner, tmp_path: Path
) -> None:
    lines = "".join(f'{{"content": "entry {number}"}}\n' for number in range(50))
    (tmp_path / "in.jsonl").write_text(lines)
    quiet = bob("import", str(tmp_path / "in.jsonl"), "-a", "one", "--trusted").stderr
    assert re.fullmatch(r"Undo: [^\n]*\n", quiet)
    code, shown = in_a_terminal(environment, "import", str(tmp_path / "in.jsonl"), "-a", "two")
    assert code == 0
    assert "Importing" in shown
    assert "Imported 50 memories." in shown


def test_a_terminal_gets_colour_and_no_escape_of_a_memory(
    bob: Run, environment: dict[str, str], in_a_terminal: TerminalRunner
) -> None:
    code, shown = in_a_terminal(environment, "list")
    assert code == 0
    assert "\x1b[" in shown
    assert "\x1b[2J" not in shown
    assert "\\x1b[2J [red]page[/]" in shown


@pytest.mark.parametrize("wish", [{"NO_COLOR": "1"}, {"TERM": "dumb"}], ids=["NO_COLOR", "dumb"])
def test_a_terminal_that_wants_no_colour_gets_none(
    bob: Run, environment: dict[str, str], in_a_terminal: TerminalRunner, wish: dict[str, str]
) -> None:
    assert "\x1b" not in in_a_terminal(environment | wish, "list")[1]
    assert "\x1b" not in in_a_terminal(environment | wish, "show", "mem-ffffffffffff")[1]


def test_forget_asks_on_a_terminal_and_takes_no_or_ctrl_c_for_an_answer(
    bob: Run, environment: dict[str, str], in_a_terminal: TerminalRunner
) -> None:
    code, shown = in_a_terminal(environment, "forget", A, prompt="[y/N]", typed="\x03")
    assert (code, "Stopped. Nothing was forgotten." in shown) == (130, True)
    bob("show", A)
    code, shown = in_a_terminal(environment, "forget", A, prompt="[y/N]", typed="n\n")
    assert (code, "Nothing was forgotten." in shown) == (1, True)
    assert "PostgreSQL" in shown
    bob("show", A)
    code, shown = in_a_terminal(environment, "forget", A, prompt="[y/N]", typed="y\n")
    assert (code, f"Forgot {A}." in shown) == (0, True)
    bob("show", A, code=3)


def test_forget_words_in_terminal_is_a_checklist(
    bob: Run, environment: dict[str, str], in_a_terminal: TerminalRunner
) -> None:
    bob("store", "Kim drives a red van.", "-a", "bob")
    bob("store", "Kim repairs her red bike.", "-a", "bob")
    words = ("forget", "red things of Kim", "-a", "bob")
    for typed in ("\n", "\x03"):
        code, shown = in_a_terminal(environment, *words, prompt="none: ", typed=typed)
        assert (code, "Nothing was forgotten." in shown) == (130 if typed == "\x03" else 1, True)
    code, shown = in_a_terminal(environment, *words, prompt="none: ", typed="9\n2, 1\n")
    assert (code, shown.count("Forgot mem-"), "Type numbers from 1 to" in shown) == (0, 2, True)
    assert "Kim" not in bob("list", "-a", "bob").stdout


def test_ctrl_c_in_an_import_says_how_far_it_came(
    bob: Run, environment: dict[str, str], in_a_terminal: TerminalRunner, tmp_path: Path
) -> None:
    lines = "".join(f'{{"content": "entry {number}"}}\n' for number in range(20_000))
    (tmp_path / "in.jsonl").write_text(lines)
    arguments = ("import", str(tmp_path / "in.jsonl"), "-a", "two")
    code, shown = in_a_terminal(environment, *arguments, prompt="Importing", typed="\x03")
    assert code == 130
    (done,) = re.findall(r"Stopped after ([\d,]+) of 20,000; repeat the command to continue\.", " ".join(shown.split()))
    assert f"Imported {done} memor" in shown


def test_what_a_person_types_is_trusted(bob: Run, environment: dict[str, str], in_a_terminal: TerminalRunner) -> None:
    in_a_terminal(environment, "store", "Typed by hand.")
    (typed,) = [each for each in json.loads(bob("list", "--json").stdout)["memories"] if "Typed" in each["content"]]
    assert typed["trust"] == "high"


# -- edit -------------------------------------------------------------------------------------------------------------


def editor(folder: Path, script: str) -> str:
    """Write an editor that does what `script` (Python; `path` and `text` are given) says; return its command."""
    file = folder / "an editor.py"
    file.write_text(
        f"import sys, pathlib\npath = pathlib.Path(sys.argv[-1])\ntext = path.read_text(encoding='utf-8')\n{script}\n"
    )
    return f"'{sys.executable}' '{file}' --wait"


def drafts(environment: dict[str, str]) -> list[Path]:
    places = (Path(environment["TMPDIR"]), Path(environment["AGENT_MEMORY_ROOT"]))
    return sorted(path for place in places for path in place.rglob("mem-*.yaml"))


def test_edit_changes_what_was_edited(
    bob: Run, environment: dict[str, str], in_a_terminal: TerminalRunner, tmp_path: Path
) -> None:
    command = editor(tmp_path, "path.write_text(text.replace('PostgreSQL', 'SQLite'), encoding='utf-8')")
    code, shown = in_a_terminal(environment | {"VISUAL": command, "EDITOR": "false"}, "edit", A)
    assert (code, f"Changed content of {A}." in shown) == (0, True)
    assert "SQLite \U0001f418" in bob("show", A).stdout
    assert drafts(environment) == []


@pytest.mark.parametrize(
    "change", ["text + 'tags: ['", "text + 'colour: red'", "text.replace('decision', 'Two Words')", "''"]
)
def test_edit_refused_and_given_up_shows_text(
    bob: Run, environment: dict[str, str], in_a_terminal: TerminalRunner, tmp_path: Path, change: str
) -> None:
    command = editor(tmp_path, f"path.write_text({change}, encoding='utf-8')")
    arguments = {"prompt": "again? [y/N]", "typed": "n\n"}
    code, shown = in_a_terminal(environment | {"EDITOR": command, "COLUMNS": "300"}, "edit", A, **arguments)
    assert (code, "Your text was:" in shown) == (1, True)
    assert drafts(environment) == []
    assert "PostgreSQL" in bob("show", A).stdout


def test_edit_refused_once_is_edited_again(
    bob: Run, environment: dict[str, str], in_a_terminal: TerminalRunner, tmp_path: Path
) -> None:
    script = (
        "wrong = 'colour: red\\n'\n"
        "again = text.replace(wrong, '') if wrong in text else text.replace('ledger', 'book') + wrong\n"
        "path.write_text(again, encoding='utf-8')"
    )
    command = editor(tmp_path, script)
    code, _ = in_a_terminal(environment | {"EDITOR": command}, "edit", A, prompt="again? [y/N]", typed="y\n")
    assert code == 0
    assert "The book is in PostgreSQL" in bob("show", A).stdout


def test_edit_killed_leaves_draft_until_next_open(
    bob: Run, environment: dict[str, str], in_a_terminal: TerminalRunner, tmp_path: Path
) -> None:
    seen = tmp_path / "environment"
    script = (
        f"import os, signal\npathlib.Path({str(seen)!r}).write_text(str(dict(os.environ)))\n"
        "os.kill(os.getppid(), signal.SIGKILL)"
    )
    command = editor(tmp_path, script)
    secrets = {"AGENT_MEMORY_KEY": "sesame-key-of-the-test", "QDRANT_API_KEY": "sesame-key-of-the-server"}
    in_a_terminal(environment | secrets | {"EDITOR": command}, "edit", A)
    assert "sesame" not in seen.read_text()
    (draft,) = drafts(environment)
    assert draft.is_relative_to(environment["AGENT_MEMORY_ROOT"])
    os.utime(draft.parent, (0, 0))
    assert "leftovers_removed" in bob("list").stderr
    assert drafts(environment) == []


def test_edit_of_memory_forgotten_meanwhile_shows_text(
    bob: Run, environment: dict[str, str], in_a_terminal: TerminalRunner, tmp_path: Path
) -> None:
    forget = (
        f"import subprocess; subprocess.run([{sys.executable!r}, '-m', 'agent_memory.cli', 'forget', {A!r}, '--yes'])"
    )
    command = editor(tmp_path, f"{forget}\npath.write_text(text.replace('ledger', 'book'), encoding='utf-8')")
    arguments = {"prompt": "again? [y/N]", "typed": "n\n"}
    code, shown = in_a_terminal(environment | {"EDITOR": command}, "edit", A, **arguments)
    assert (code, "The book is" in shown) == (3, True)
    assert drafts(environment) == []


@pytest.mark.parametrize(
    ("command", "answer"),
    [
        ("true", (0, "Nothing was changed.")),
        ("no-such-editor -w", (1, "editor")),
        ("false", (1, "editor")),
        ("'unbalanced", (1, "editor")),
    ],
)
def test_an_editor_that_fails_or_is_closed_changes_nothing_and_leaves_nothing(
    bob: Run, environment: dict[str, str], in_a_terminal: TerminalRunner, command: str, answer: tuple[int, str]
) -> None:
    code, shown = in_a_terminal(environment | {"EDITOR": command}, "edit", A)
    assert (code, answer[1] in shown) == (answer[0], True)
    assert drafts(environment) == []


def test_without_a_terminal_no_editor_is_opened(bob: Run, environment: dict[str, str]) -> None:
    result = bob("edit", A, EDITOR="touch", code=2)
    assert "agent-memory update" in result.stderr
    assert drafts(environment) == []


def test_what_an_editor_prints_is_not_a_result(bob: Run, environment: dict[str, str], tmp_path: Path) -> None:
    command = editor(tmp_path, "print('Press any key')\npath.write_text(text + 'importance: 1.0', encoding='utf-8')")
    parent, child = pty.openpty()
    with subprocess.Popen(
        [*COMMAND, "edit", A, "--json"],
        stdin=child,
        stdout=subprocess.PIPE,
        stderr=child,
        env=environment | {"EDITOR": command},
    ) as process:
        stdout, _ = process.communicate(timeout=60)
    assert json.loads(stdout)["changed"] == ["importance"]
    assert b"Press any key" in os.read(parent, 65536)
    os.close(child)
    os.close(parent)


# -- completion -------------------------------------------------------------------------------------------------------


def test_the_shell_completes_commands_agents_and_categories(bob: Run) -> None:
    def complete(words: str, position: int) -> list[str]:
        wish = {"_AGENT_MEMORY_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(position)}
        return bob(**wish).stdout.split()

    assert complete("agent-memory se", 1) == ["search"]
    assert complete("agent-memory list --agent ", 3) == ["bob"]
    assert complete("agent-memory search x --category de", 4) == ["decision"]


# -- standard streams -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("arguments", ["store -", "import -", "store 'A note of the test'", "forget --matching note"])
def test_command_with_closed_stdin_has_no_traceback(bob: Run, environment: dict[str, str], arguments: str) -> None:
    script = f"{' '.join(COMMAND)} {arguments} -a bob <&-"
    result = subprocess.run(["sh", "-c", script], env=environment, capture_output=True, text=True, check=False)
    assert "Traceback" not in result.stderr
    assert result.returncode in {0, 1, 2}


def test_command_with_full_stdout_fails_with_sentence(bob: Run, environment: dict[str, str]) -> None:
    with Path("/dev/full").open("w") as full:
        result = subprocess.run(
            [*COMMAND, "list"], env=environment, stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert result.returncode == 1
    assert "No space left on device" in result.stderr
    assert "Exception ignored" not in result.stderr
