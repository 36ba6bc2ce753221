"""The registry names kinds, files and functions that exist."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from agent_memory.errors import StorageError
from agent_memory.memory.kinds import KINDS as LOADED
from agent_memory.registry import (
    CHECKS,
    FEATURES,
    KINDS,
    FeaturePackage,
    RegisteredCheck,
    list_uncleaned,
    load_handler,
)
from tests.rows import check_rows

if TYPE_CHECKING:
    from pathlib import Path

ABSENT = FeaturePackage("agent_memory.no_such_package", {"watcher": ".pages:Watcher"})


def test_kinds_have_the_names_and_files_of_the_registry() -> None:
    assert [(kind.name, kind.journal, kind.place) for kind in LOADED] == [
        (name, kind.file, kind.place) for name, kind in KINDS.items()
    ]


@check_rows("feature", FEATURES, ids=lambda feature: feature.package)
def test_feature_package_has_each_handler(feature: FeaturePackage) -> None:
    assert feature.is_installed
    assert all(callable(feature.load(use)) for use in feature.handlers)


def test_feature_package_has_files_once_a_journal_exists(tmp_path: Path) -> None:
    feature = FEATURES[0]
    assert not feature.has_files(tmp_path)
    (tmp_path / "episodes.yaml").touch()
    assert feature.has_files(tmp_path)


def test_absent_package_is_named_when_loaded() -> None:
    assert not ABSENT.is_installed
    with pytest.raises(StorageError, match=r"agent_memory\.no_such_package is absent") as caught:
        ABSENT.load("watcher")
    assert caught.value.code == "package_absent"


def test_journal_of_unknown_kind_is_not_cleaned() -> None:
    assert list_uncleaned(["memories.yaml", "gadgets.yaml"]) == [
        "not cleaned: gadgets.yaml (a journal of an unknown kind)"
    ]


@check_rows("check", CHECKS.values(), ids=CHECKS)
def test_check_of_feature_package_exists(check: RegisteredCheck) -> None:
    assert callable(load_handler(check.place))
