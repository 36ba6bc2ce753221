"""A program may end at any moment, however busy the model is: with its own exit code, and never by an abort."""

from __future__ import annotations

import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.concurrency.processes import REPOSITORY, environment

if TYPE_CHECKING:
    from pathlib import Path

PROGRAM = REPOSITORY / "tests" / "hostile" / "endings.py"
PATIENCE = 90


def _start(how: str, root: Path) -> subprocess.Popen[str]:
    command = [sys.executable, str(PROGRAM), how, str(root)]
    env = environment()
    return subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8")


def _ended(how: str, root: Path) -> tuple[int, str, str]:
    program = _start(how, root)
    said, complained = program.communicate(timeout=PATIENCE)
    return program.returncode, said, complained


@pytest.mark.parametrize(("how", "code"), [("returns", 0), ("closes", 0), ("exits", 0), ("fails", 1)])
def test_a_program_ends_with_its_own_code_while_texts_are_embedded(root: Path, how: str, code: int) -> None:
    ended, _, complained = _ended(how, root)
    assert (ended, "terminate called" in complained) == (code, False), complained


def test_ctrl_c_ends_a_program_that_waits_for_vectors(root: Path) -> None:
    program = _start("waits_for_all", root)
    assert program.stdout.readline() == "busy\n"
    program.send_signal(signal.SIGINT)
    _, complained = program.communicate(timeout=PATIENCE)
    assert program.returncode == -signal.SIGINT, complained
    assert "KeyboardInterrupt" in complained
    assert "terminate called" not in complained


def test_a_program_that_is_terminated_ends_at_once(root: Path) -> None:
    program = _start("waits_for_all", root)
    assert program.stdout.readline() == "busy\n"
    program.terminate()
    program.communicate(timeout=PATIENCE)
    assert program.returncode == -signal.SIGTERM


@pytest.mark.deep
@pytest.mark.parametrize("how", ["closes_a_slow_one", "is_interrupted_twice"])
def test_no_slowness_and_no_impatience_makes_the_end_an_abort(root: Path, how: str) -> None:
    ended, said, complained = _ended(how, root)
    assert (ended, "ended" in said) == (0, True), complained
    assert "terminate called" not in complained
