"""The pattern of docs/how-to/consent.md finds its sentence, and the line of data in docs/benchmarks.md can be read."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import yaml

from agent_memory.capture import Extractor
from agent_memory.settings import CaptureSettings

DOCS = Path(__file__).parents[3] / "docs"
PAGE = (DOCS / "how-to" / "consent.md").read_text("utf-8").partition("## Capture")[2]
DATA = (DOCS / "benchmarks.md").read_text("utf-8").partition("## Capture")[2].partition("\n## ")[0]


@pytest.fixture
def extractor() -> Extractor:
    block = re.search(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    assert block is not None
    [module] = yaml.safe_load(block[1])["hooks"]
    return Extractor(CaptureSettings.model_validate(module["config"]))


def test_pattern_of_the_page_finds_its_sentence(extractor: Extractor) -> None:
    quoted = re.search(r'With it, "(.*?)" becomes an (\w+)', PAGE)
    [observation] = extractor.extract(quoted[1], "user")
    assert (observation.content, observation.category) == (quoted[1], quoted[2])


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ("did the post-mortem say that?", "question"),
        ("the article about the post-mortem says that disks fail", "third_party"),
    ],
)
def test_pattern_of_the_page_skips_forbidden_text(extractor: Extractor, said: str, reason: str) -> None:
    assert extractor.examine(said, "user").skipped == {reason: 1}


def test_line_of_data_has_the_documented_keys() -> None:
    block = re.search(r"```json\n(.*?)```", DATA, re.DOTALL)
    line = json.loads(block[1])
    documented = set(re.findall(r"`(\w+)[^`]*`", DATA.partition("```json")[2].partition("```\n")[2]))
    assert documented >= {"source", "capture", "must_contain", "secret", "sample", "either"}
    assert set(line) == {"id", "source", "text", "capture", "secret", "sample"}
