"""The table of docs/maintainers/attacks.md says what happens: each cell is measured in whole sessions."""

from __future__ import annotations

from fnmatch import fnmatchcase
from pathlib import Path

import pytest

from tests.architecture.test_security_page import list_marked
from tests.hostile.matrix import ACTS, CELLS, ORIGINS, OUTCOMES, WITHOUT_CELL, measure, render

PAGE = Path(__file__).parents[2] / "docs" / "maintainers" / "attacks.md"
_UNTRUSTED = [name for name in OUTCOMES if not name.startswith(("typed", "model"))]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository that the sessions work in."""
    folder = tmp_path / "shop"
    (folder / ".git").mkdir(parents=True)
    monkeypatch.chdir(folder)
    return folder


@pytest.mark.usefixtures("project")
@pytest.mark.parametrize("origin", ORIGINS)
async def test_outcomes_of_origin(root: Path, origin: str) -> None:
    assert dict(zip(ACTS, await measure(root, ORIGINS[origin]), strict=True)) == dict(
        zip(ACTS, OUTCOMES[origin], strict=True)
    )


def test_untrusted_origins_act_nowhere() -> None:
    for origin in _UNTRUSTED:
        outcomes = dict(zip(ACTS, OUTCOMES[origin], strict=True))
        assert outcomes["kept"] in {"low", "no"}
        assert outcomes["shown later"] in {"no", "as a labeled fact"}
        assert {outcomes[act] for act in ACTS[2:]} <= {"proposal", "refused", "no"}


def test_matrix_has_enough_cells() -> None:
    assert list(OUTCOMES) == list(ORIGINS)
    assert len(OUTCOMES) * len(ACTS) >= 150


def test_named_attacks_have_cells() -> None:
    attacks = [(Path(file).stem.removeprefix("test_"), name) for file, name in list_marked()]
    names = [f"{file}:{name}" for file, name in attacks if file not in WITHOUT_CELL]
    used = {next((pattern for pattern in CELLS if fnmatchcase(name, pattern)), name) for name in names}
    assert used == set(CELLS)
    assert {origin for origin, _ in CELLS.values()} <= set(ORIGINS)
    assert {act for _, act in CELLS.values()} <= set(ACTS)
    assert {file for file, _ in attacks} >= WITHOUT_CELL


def test_page_has_the_matrix() -> None:
    assert render() in PAGE.read_text(encoding="utf-8")
