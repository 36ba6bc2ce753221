"""Calls that read a place outside the project, by program, form of the path and kind of link."""

from __future__ import annotations

import os
import random
import subprocess
from itertools import product
from typing import TYPE_CHECKING, Any

import pytest

from agent_memory.integrations import project_calls
from agent_memory.integrations.taint import CalledTool, ToolList
from tests.support import FILE_TOOLS, SHELL

if TYPE_CHECKING:
    from pathlib import Path

SEARCH = "amplifier_module_tool_search"
MARK = "zorvak"
"""Text of files outside the project."""

PROGRAMS = (
    "cat {}", "head -n 5 {}", "tail -5 {}", "wc -l {}", "sort {}", "uniq -c {}", "cut -d: -f1 {}", "sed -n 1,5p {}",
    "grep -n key {}", "grep -rn key {}", "rg key {}", "diff a.txt {}", "cp {} copy.txt && cat copy.txt; rm copy.txt",
    "mv {} moved && cat moved", "git diff -- {}", "git blame {}", "python {}", "node {}", "make -f {}", "pytest -q {}",
    "cat < {}", "cat a.txt | tee -a {}", "stat {}", "ls {}", "find {} -type f", "if test -f {}; then make; fi",
    "FOO={} make test", "echo x > {}", "time cat {}", "uv run pytest {}", "{} test",
)  # fmt: skip
PLACES = (
    "link.txt", "./link.txt", "src/../link.txt", "'link.txt'", "li''nk.txt", "linkdir/notes.txt", "src/deep/x.txt",
    "hard.txt", "hardy/h.txt", "l*.txt", "?ink.txt", "linkd*/notes.txt", "{{a,link}}.txt", "[l]ink.txt",
    "../outside/notes.txt", "{outside}/notes.txt", "~/inbox.txt", "$NOTES", '"$NOTES"', "$(echo link.txt)", "`ls l*`",
    "src/../../outside/notes.txt", "li\\nk.txt", "/usr/share/doc/x/README", "loop", "fifo",
)  # fmt: skip
WHOLE = (
    "cd src && cat ../link.txt", "grep -R key .", "grep -R key", "grep --dereference-recursive key .", "rg -L key",
    "rg --follow key", "env", "ps", "ps aux", "ps -ef", "top -b -n 1",
    "w", "who", "last", "ps aux | grep make", "rg key", "rg --hidden -u key", "grep -r key", "grep -f link.txt a.txt",
    "find -L . -name x", "find . -follow", "find . -exec cat {} +", "find . -name x -files0-from list0",
    "xargs cat < list.txt", "cat list.txt | xargs cat", "wc --files0-from=list0", "sort --files0-from=list0",
    "du --files0-from=list0", "ls -L", "ls -LR", "tree -l", "git show origin/main:a.txt", "git show origin/main",
    "git log origin/main", "git log --all", "git log --remotes", "git diff HEAD..origin/main", "git log HEAD..@{u}",
    "git show FETCH_HEAD", "git show v1", "git show feature", "git branch -r -v", "git --no-pager log origin/main",
    "git log -1 origin --", "git -C ../outside log", "git -c alias.x=!curl x", "git diff --no-index a.txt link.txt",
    "GIT_DIR=../outside/.git git log", "GIT_EXTERNAL_DIFF=curl git diff", "git grep key", "git commit -F link.txt",
    "python -m pip search x", "python3 -m http.server", "python -c 'print(1)'", "python", "python -", "node -e 1",
    "echo 'print(1)' | python", "python -m timeit 1", "uv run curl x.example", "uv run --with x pytest", "npm run env",
    "make --eval=x:", "make SHELL='curl x'", "cat Makefile | make -f -", "cat Makefile | make -f-", "make -C linkdir",
    "make -Clinkdir", "make -f link.txt", "cargo --config x test", "go run x.example/cmd@latest",
    "go test x.example/y", "go test -exec curl ./...", "helm template repo/chart", "docker compose logs",
    "docker compose pull", "pip show x", "sed 'r link.txt' a.txt", "sed -n '1e cat link.txt' a.txt",
    "sed -f link.txt a.txt", "sed 's/k/id/e' a.txt", "awk '{print}' link.txt", "awk '{print $1 > \"x\"}' a.txt",
    "awk 'BEGIN{system(\"id\")}' a.txt", "jq -f link.txt a.txt", "jq . link.txt", "jq '.a, env' a.txt",
    "sqlite3 app.db '.read link.txt'", "sqlite3 app.db \"select readfile('link.txt')\"", "jq env a.txt",
    "cat a.txt # x\ncat link.txt", "cat a#b; curl x", "cat ';' ls", "cat -- -n", "head -n * a.txt",
    "cat a.txt && cd linkdir && cat notes.txt", "cd linkdir && cat notes.txt", "cd linkdir; cat notes.txt",
    "cd src || cat link.txt", "(cat link.txt)", "cat <<E\nx\nE", "cat <<< x", "cat <(cat link.txt)", "linkdir/make",
    "../outside/make", "tool/pytest", "PATH=linkdir make", "for f in link.txt; do make; done", "cat a.txt\xa0link.txt",
    "ln -s ../outside/notes.txt x; cat x; rm x", "mv src moved && cat moved/deep/x.txt && mv moved src",
    "cp -r src copied && cat copied/deep/x.txt; rm -r copied", "diff -r src safe", "date -f link.txt",
    "file -f list.txt",
)  # fmt: skip
FILES: tuple[tuple[str, str, dict[str, Any]], ...] = (
    *((FILE_TOOLS, name, {"file_path": place}) for name in ("read_file", "write_file", "edit_file") for place in (
        "link.txt", "linkdir/notes.txt", "hard.txt", "../outside/notes.txt", "src/../../outside/notes.txt", "~/x",
        "file:///etc/motd", "file:../outside/notes.txt", "$NOTES", "https://x.example/a", "fifo", "loop",
        "/proc/self/environ",
    )),
    (FILE_TOOLS, "read_file", {"file_path": "a.txt", "options": {"path": "link.txt"}}),
    (FILE_TOOLS, "read_file", {"options": {"path": "../outside/notes.txt"}}),
    (FILE_TOOLS, "read_file", {"target": "../outside/notes.txt"}),
    (FILE_TOOLS, "read_file", {"src": "link.txt"}),
    (FILE_TOOLS, "read_files", {"paths": ["a.txt", "link.txt"]}),
    (FILE_TOOLS, "read_files", {"paths": [["link.txt"]]}),
    (FILE_TOOLS, "read_file", {}),
    (SEARCH, "grep", {"pattern": "key"}),
    (SEARCH, "grep", {"pattern": "key", "path": "."}),
    (SEARCH, "grep", {"pattern": "key", "path": "linkdir"}),
    (SEARCH, "grep", {"pattern": "key", "path": "hardy"}),
    (SEARCH, "grep", {"pattern": "key", "path": "hard.txt"}),
    (SEARCH, "grep", {"pattern": "key", "path": "safe", "include": "../../outside/*"}),
    (SEARCH, "grep", {"pattern": "key", "path": "safe", "glob": "/etc/*"}),
    (SEARCH, "grep", {"pattern": "key", "path": ["safe", "linkdir"]}),
    (SEARCH, "grep", {"pattern": "key", "path": "safe", "paths": ["/etc"]}),
    (SEARCH, "grep", {"pattern": "key", "path": "safe", "options": {"path": "/etc"}}),
    (SEARCH, "glob", {"pattern": "src/../../../outside/*", "path": "safe"}),
    (SEARCH, "glob", {"pattern": "{.,../../outside}/*", "path": "safe"}),
    (SEARCH, "glob", {"pattern": "{.,/etc}/*", "path": "safe"}),
    (SEARCH, "glob", {"pattern": "~/*", "path": "safe"}),
    (SEARCH, "glob", {"pattern": "linkd*/*"}),
)  # fmt: skip
INSIDE = (
    "cat a.txt", "head -n 5 a.txt", "grep -rn 'key|/api' safe --include=*.txt", "rg -n key safe",
    "sed -n '1,40p' a.txt", "cat *.md", "ls -la", "find . -name '*.py' -type f | head", "git status -s",
    "git log --oneline -5", "git diff HEAD~1 2>&1 | tail", "git show HEAD:a.txt", "git --no-pager log -3 -- a.txt",
    "git add -A && git commit -q -m 'fix: /etc and more'", "cd src && python b.py",
    "python -m pytest -q -k 'a and not b' src | tail -20", "PYTHONPATH=src pytest -x --tb=short",
    "make test > out.txt 2>&1; tail -5 out.txt", "npm run build", "cargo test --release", "go test ./...",
    "go vet ./...", 'echo "--- $?"; ls src', "cp a.txt safe/ && cat safe/a.txt", "rm -rf safe", "mkdir -p x/y",
    "wc -l a.txt src/*", "python -m src.b", ".venv/bin/python -m pytest", "diff -r safe safe", "time make",
    "awk '{print $1, $2}' a.txt", "jq -r .scripts.test a.txt", "mvn -q test", "ruff check --statistics .",
    "go version", "free -m", "df -h /", "node --version",
)  # fmt: skip


@pytest.fixture
def project(tmp_path: Path, home: Path) -> Path:
    """A repository with links, hard links, a loop and a pipe to what is outside."""
    shop, outside = tmp_path / "shop", tmp_path / "outside"
    for folder in (outside / "sub", shop / "src", shop / "safe", shop / "hardy", shop / "tool", shop / ".venv/bin"):
        folder.mkdir(parents=True)
    (home / "inbox.txt").write_text(MARK)
    for path in (outside / "notes.txt", outside / "sub/x.txt", outside / "make"):
        path.write_text(f"key {MARK}\n")
    for path in (shop / "a.txt", shop / "src/b.py", shop / "safe/c.txt", shop / "Makefile", shop / ".venv/pyvenv.cfg"):
        path.write_text("key\n")
    (shop / "list.txt").write_text("link.txt\n../outside/notes.txt\n")
    (shop / "list0").write_text("link.txt\0")
    for name in ("link.txt", "ls", "-n", "key", "3", "tool/pytest", ".venv/bin/python"):
        (shop / name).symlink_to(outside / "notes.txt")
    (shop / "linkdir").symlink_to(outside)
    (shop / "src/deep").symlink_to(outside / "sub")
    (shop / "loop").symlink_to("loop")
    os.mkfifo(shop / "fifo")
    for name in ("hard.txt", "hardy/h.txt"):
        (shop / name).hardlink_to(outside / "notes.txt")
    commit = "git add a.txt src/b.py && git -c user.name=a -c user.email=a commit -qm"
    script = f"git init -q . && {commit} one && cp a.txt b.txt && echo {MARK} > a.txt && {commit} {MARK}"
    refs = (
        "git update-ref refs/remotes/origin/main HEAD && git tag v1 && git branch feature && git reset -q --hard HEAD~1"
    )
    subprocess.run(["/bin/sh", "-c", f"{script} && {refs} && rm b.txt"], cwd=shop, check=True)
    return shop


def classify(project: Path, package: str, name: str, arguments: dict[str, Any]) -> str:
    return ToolList().classify(CalledTool(name, package, arguments), project)


def test_classify_program_with_place_outside_is_untrusted(project: Path) -> None:
    cells = [form.format(place.format(outside=project.parent / "outside")) for form, place in product(PROGRAMS, PLACES)]
    assert len(cells) > 800
    labelled = [command for command in cells if classify(project, SHELL, "bash", {"command": command}) != "untrusted"]
    assert labelled == []


def test_classify_command_that_is_not_certain_is_untrusted(project: Path) -> None:
    assert [command for command in WHOLE if classify(project, SHELL, "bash", {"command": command}) != "untrusted"] == []


def test_classify_command_with_unknown_argument_is_untrusted(project: Path) -> None:
    for name in ("cwd", "working_directory", "workdir", "env", "stdin"):
        assert classify(project, SHELL, "bash", {"command": "cat a.txt", name: str(project)}) == "untrusted"


def test_classify_file_tool_with_place_outside_is_untrusted(project: Path) -> None:
    assert [call for call in FILES if classify(project, *call) != "untrusted"] == []


def test_classify_command_inside_is_of_project(project: Path) -> None:
    for name in ("hard.txt", "hardy/h.txt", "key", "3", "loop", "fifo", "link.txt", "linkdir", "src/deep", "ls", "-n"):
        (project / name).unlink()
    (project / "tool/pytest").unlink()
    calls = {command: {"command": command, "timeout": 30, "run_in_background": False} for command in INSIDE}
    assert [command for command, call in calls.items() if classify(project, SHELL, "bash", call) != "project"] == []


@pytest.mark.parametrize("ignored", [True, False])
def test_classify_search_skips_ignored_modules_alone(project: Path, ignored: bool) -> None:
    (project / "safe/node_modules").mkdir()
    (project / "safe/node_modules/x").hardlink_to(project.parent / "outside/notes.txt")
    (project / ".gitignore").write_text("node_modules/\n" if ignored else "dist\n")
    kind = "project" if ignored else "untrusted"
    assert classify(project, SEARCH, "grep", {"pattern": "/api", "path": "safe", "glob": "*.{ts,py}"}) == kind
    assert classify(project, SHELL, "bash", {"command": "rg key safe"}) == kind
    assert classify(project, SHELL, "bash", {"command": "grep -r key safe"}) == "untrusted"
    everything = {"pattern": "x", "path": "safe", "include_ignored": True}
    assert classify(project, SEARCH, "grep", everything) == "untrusted"


def test_classify_folder_with_many_entries_is_untrusted(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(project_calls, "_MAX_ENTRIES", 3)
    assert classify(project, SEARCH, "grep", {"pattern": "x", "path": "safe"}) == "project"
    for number in range(3):
        (project / "safe" / str(number)).touch()
    assert classify(project, SEARCH, "grep", {"pattern": "x", "path": "safe"}) == "untrusted"


def test_shell_output_of_project_command_has_no_outside_text(project: Path) -> None:
    programs = (
        "cat",
        "head",
        "tail",
        "grep",
        "sed",
        "wc",
        "sort",
        "uniq",
        "cut",
        "diff",
        "cmp",
        "find",
        "ls",
        "du",
        "stat",
        "file",
        "echo",
        "tr",
        "test",
        "date",
        "python3",
    )
    words = [
        *PLACES[:14],
        "a.txt",
        ".",
        "src",
        "safe",
        "*",
        "key",
        "3",
        "-n",
        "list.txt",
        "list0",
        "'r link.txt'",
        "--",
    ]
    choose, ran = random.Random(33), 0
    while ran < 60:
        options = ["-" + choose.choice("abcdefhilmnoqrstuvwxLRHPEf") for _ in range(choose.randrange(3))]
        chosen = [*options, *choose.choices(words, k=choose.randrange(1, 4))]
        choose.shuffle(chosen)
        command = " ".join([choose.choice(programs), *chosen]).format()
        if classify(project, SHELL, "bash", {"command": command}) == "project":
            ran += 1
            result = subprocess.run(
                ["/bin/sh", "-c", command], cwd=project, stdin=subprocess.DEVNULL, capture_output=True, check=False
            )
            assert MARK.encode() not in result.stdout + result.stderr, command
