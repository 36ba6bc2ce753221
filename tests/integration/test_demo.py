"""The demo: how its days end, and what it leaves behind."""

from __future__ import annotations

import signal
import subprocess
import sys

from agent_memory_demo.__main__ import shortened, told

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


def test_a_day_that_a_signal_ended_is_said_to_have_crashed() -> None:
    assert told(-signal.SIGSEGV).startswith("crashed with SIGSEGV;")
    assert told(1) == "did not go as promised (exit status 1)."
