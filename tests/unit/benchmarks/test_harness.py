"""Parts that benchmarks share: reports as text, temporary folders; and `similar` in small."""

from __future__ import annotations

from agent_memory.store import memory_storage
from benchmarks import similar
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


async def test_similar_lists_the_note_that_became_untrue() -> None:
    texts = {"old": "The gate opens at six.", "new": "The gate opens at seven.", "other": "The lamp is green."}
    report = await similar.measure(texts, [similar.ReplacedPair("drift", "new", "old")], ["The tea is hot."], None)
    assert (report["memories"], report["shapes"]) == (4, {"drift": {"n": 1, "found": 1.0}})
