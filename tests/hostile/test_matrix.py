"""The table of docs/maintainers/attacks.md says what happens: each cell is measured in whole sessions."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.hostile.matrix import ACTS, ORIGINS, OUTCOMES, measure, render

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


def test_page_has_the_matrix() -> None:
    assert render() in PAGE.read_text(encoding="utf-8")
