"""No text makes a regular expression of the product, or a reader of foreign text, slow out of proportion."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys

import pytest

from tests.hostile.patterns import ROOT
from tests.hostile.pumps import LIMIT, find_slow_text

pytestmark = pytest.mark.deep
_MODULES = ("tests.hostile.patterns", "tests.hostile.readers")


@pytest.mark.parametrize(
    ("pattern", "flags"),
    [
        (r"(a+)+b", 0),
        (r"\s+(?=x)", 0),
        (r"(?:-?[a-z0-9]+)*-?\d{1,3}", 0),
        (r"^\s*#", re.MULTILINE),
        (r"foo.*bar", 0),
        (r"\[[^\]]*\]\(", 0),
        (r"[ \t]+$", re.MULTILINE),
        (r"\w+@\w+", 0),
        (r"(\w+\s?)*!$", 0),
        (r"\s*,?\s*who\b", 0),
    ],
)
def test_slow_text_of_bad_pattern_is_found(pattern: str, flags: int) -> None:
    slow = find_slow_text(re.compile(pattern, flags))
    assert slow is not None
    assert slow.slope > LIMIT


@pytest.mark.parametrize(
    ("pattern", "flags"),
    [
        (r"a+b?", 0),
        (r"(?<!\s)\s++x", 0),
        (r"\d{4}-\d\d-\d\d", 0),
        (r"\b\w+\b", 0),
        (r"^[^\S\n]{0,80}#", re.MULTILINE),
        (r"(?:a|b)*+c?", 0),
    ],
)
def test_slow_text_of_linear_pattern_is_none(pattern: str, flags: int) -> None:
    assert find_slow_text(re.compile(pattern, flags)) is None


@pytest.mark.parametrize("method", ["match", "fullmatch"])
def test_slow_text_counts_only_the_method_used(method: str) -> None:
    assert find_slow_text(re.compile(r"\s+x"), method) is None


def find_slow(module: str) -> list[str]:
    """Return what a sweep finds slow twice: what another program disturbs is slow once."""
    slow = run_sweep(module)
    again = [
        run_sweep(module, "--only", json.loads(line).get("reader") or json.loads(line)["places"][0]) for line in slow
    ]
    return [line for line, repeated in zip(slow, again, strict=True) if repeated]


def run_sweep(module: str, *options: str) -> list[str]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(ROOT), str(ROOT / "src")))}
    done = subprocess.run(
        [sys.executable, "-m", module, *options],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    *slow, last = done.stdout.splitlines()
    assert json.loads(last)["slow"] == len({json.loads(line).get("reader", line) for line in slow})
    return slow


@pytest.mark.parametrize("module", _MODULES)
def test_every_pattern_and_reader_is_linear(module: str) -> None:
    """Both programs measure more texts with `--deep`, which takes an hour."""
    assert find_slow(module) == []
