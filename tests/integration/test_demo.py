"""The demo: how its days end, and what it leaves behind."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

from agent_memory_demo import knowledge
from agent_memory_demo.__main__ import shortened, told

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

_ENDING = """
import atexit, threading
from agent_memory_demo.__main__ import end
atexit.register(print, "cleaned up")
threading.Thread(target=threading.Event().wait).start()
print("checked")
end(3)
"""


def test_a_day_ends_with_its_status_and_all_its_output_whatever_threads_are_left() -> None:
    ended = subprocess.run([sys.executable, "-c", _ENDING], capture_output=True, text=True, check=False, timeout=60)
    assert (ended.returncode, ended.stdout, ended.stderr) == (3, "checked\ncleaned up\n", "")


def test_a_tools_answer_is_shown_by_its_outcome() -> None:
    stored = {"memory_id": "mem-0123456789ab", "stored_at": "2026-03-01T12:00:00Z", "in_scratchpad": True}
    assert shortened(stored) == 'memory_id "mem-0123456789ab", in_scratchpad true'
    assert shortened({"memories": [{"id": "mem-1"}, {"id": "mem-2"}], "count": 2}) == "2 memories: mem-1, mem-2"
    assert shortened({"message": "The disk is full.", "code": "disk_full"}) == 'message "The disk is full."'


def test_both_days_end_as_promised(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "agent_memory_demo", "--home", str(tmp_path)]
    played = subprocess.run(command, capture_output=True, text=True, check=False)
    assert played.returncode == 0, played.stdout + played.stderr
    assert "found, match strong: mem-" in played.stdout


def test_a_day_that_a_signal_ended_is_said_to_have_crashed() -> None:
    assert told(-signal.SIGSEGV).startswith("crashed with SIGSEGV;")
    assert told(1) == "did not go as promised (exit status 1)."


def test_a_conversation_becomes_pages_and_answers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert knowledge.main(["--home", str(tmp_path), "--words"]) == 0
    said = capsys.readouterr().out
    assert "81 new, 0 there already" in said
    assert "footnotes on all pages; 0 do not lead to the very words." in said
    assert "[^9]: Extracted from conversation heron (res-" in said
    pages = {path.name for path in (tmp_path / ".amplifier" / "memory" / "crew" / "topics").iterdir()}
    assert {"index.md", "heron.md", "nadia.md", "priya.md", "tomas.md"} <= pages
    assert knowledge.main(["--home", str(tmp_path), "--words"]) == 0
    assert "0 new, 81 there already" in capsys.readouterr().out


def test_a_file_of_ones_own_can_be_asked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    talk = tmp_path / "talk.jsonl"
    talk.write_text(json.dumps({"speaker": "Lea", "text": "I moved to Bern with my two cats in spring."}))
    home = str(tmp_path / "home")
    assert knowledge.main(["--home", home, "--words", "--ask", "Where did Lea move to?", str(talk)]) == 0
    said = capsys.readouterr().out
    assert "No page: nothing is spoken of five times." in said
    assert "Lea: I moved to Bern" in said
    assert knowledge.main(["--home", home, "--words", str(tmp_path / "nowhere.jsonl")]) == 1
