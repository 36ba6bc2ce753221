"""Parts that all benchmarks share: reports as text."""

from __future__ import annotations

from benchmarks.harness import render_figures


def test_render_figures_nested_report_has_a_line_for_each_group() -> None:
    report = {"set": {"rules": {"F1": 0.97041, "right": 3}, "pairs": 7}, "problems": ["lost: a", "lost: b"], "none": []}
    lines = [" ".join(line.split()) for line in render_figures(report)]
    assert lines == ["set", "rules F1 0.9704, right 3", "pairs 7", "problems", "lost: a", "lost: b", "none []"]
