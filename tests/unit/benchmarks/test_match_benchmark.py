"""The benchmark of match grades, run end to end on a small set."""

import json
import sys
from pathlib import Path

import pytest

pytest.importorskip("numpy")

from agent_memory import embeddings
from agent_memory.embeddings.testing import HashEmbedder
from benchmarks.match import benchmark as match


def test_match_benchmark_reports_grades_by_kind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    rows: list[dict[str, object]] = []
    for group, word in (("g", "ledger"), ("h", "garden")):
        rows += [{"type": "memory", "group": group, "id": f"{n}", "text": f"the {word} {n}"} for n in range(3)]
        rows.append({"type": "query", "group": group, "text": f"which {word} 1", "gold": ["1"]})
        rows.append({"type": "query", "group": group, "text": "who sings", "gold": []})
    file = tmp_path / "one.jsonl"
    file.write_text("\n".join(map(json.dumps, rows)), "utf-8")
    monkeypatch.setattr(embeddings, "LocalEmbedder", HashEmbedder)
    monkeypatch.setattr(sys, "argv", ["match", "--json", "--jsonl", str(file)])
    assert match.main() == 0
    kinds = json.loads(capsys.readouterr().out)["one"]
    assert {kind: row["count"] for kind, row in kinds.items()} == {"answerable": 2, "next group": 2, "of the set": 2}
    assert (kinds["answerable"]["strong"], kinds["answerable"]["right_answers"]) == (1, 1)
    assert kinds["of the set"]["strong"] == 0
