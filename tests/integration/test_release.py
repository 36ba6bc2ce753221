"""A release has one version: every place that names it names the same one."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import yaml

import agent_memory
from tests.rows import check_rows

HERE = Path(__file__).resolve().parents[2]
PROJECTS = sorted([HERE / "pyproject.toml", *HERE.glob("modules/*/pyproject.toml"), HERE / "demo" / "pyproject.toml"])
BUNDLES = sorted([HERE / "bundle.yaml", *HERE.glob("behaviors/*.yaml")])


@check_rows("path", PROJECTS, ids=lambda path: path.parent.name)
def test_a_project_has_the_version_of_the_library(path: Path) -> None:
    assert tomllib.loads(path.read_text())["project"]["version"] == agent_memory.__version__


@check_rows("path", BUNDLES, ids=lambda path: path.stem)
def test_a_bundle_has_the_version_of_the_library(path: Path) -> None:
    assert yaml.safe_load(path.read_text())["bundle"]["version"] == agent_memory.__version__


def test_what_is_not_released_yet_stands_above_what_is() -> None:
    heads = re.findall(r"^## \[(.+?)\]", (HERE / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert heads[0] == "Unreleased"
    assert heads[1:] == sorted(heads[1:], key=lambda each: [int(part) for part in each.split(".")], reverse=True)
