"""Parts that benchmarks share: reports as text and temporary folders."""

from __future__ import annotations

from agent_memory.store import memory_storage
from benchmarks.harness import open_scratch, render_figures


def test_render_figures_nested_report_has_a_line_for_each_group() -> None:
    report = {"set": {"rules": {"F1": 0.97041, "right": 3}, "pairs": 7}, "problems": ["lost: a", "lost: b"], "none": []}
    lines = [" ".join(line.split()) for line in render_figures(report)]
    assert lines == ["set", "rules F1 0.9704, right 3", "pairs 7", "problems", "lost: a", "lost: b", "none []"]


def test_open_scratch_starts_no_child_and_is_removed() -> None:
    real = memory_storage.start_child
    with open_scratch() as folder:
        assert memory_storage.start_child(["/bin/false"]) is None
        (folder / "left").touch()
    assert memory_storage.start_child is real
    assert not folder.exists()
