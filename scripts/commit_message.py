"""Check the first line of a commit message: `python -m scripts.commit_message FILE`, run by pre-commit."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Final

MAX_CHARS: Final = 60
_FORM: Final = re.compile(r"[a-z][a-z0-9 .&/-]*: [a-z`].*[^.]")
_NOT_IMPERATIVE: Final = re.compile(
    r"[a-z]+: (?:added|adds|adding|fixed|fixes|fixing|changed|changes|updated|updates)\b"
)


def find_faults(message: str) -> list[str]:
    """Return what is wrong with the first line of a message."""
    line = message.partition("\n")[0]
    if line.startswith(("Merge ", "Revert ")):
        return []
    faults = []
    if not _FORM.fullmatch(line):
        faults.append("write `area: imperative`, lower case after the colon, no full stop")
    if _NOT_IMPERATIVE.match(line):
        faults.append("use the imperative: add, fix, change")
    if len(line) > MAX_CHARS:
        faults.append(f"use at most {MAX_CHARS} characters; there are {len(line)}")
    return faults


def main(arguments: list[str]) -> int:
    """Print the faults of the message in a file; return 1 if there are any."""
    faults = find_faults(Path(arguments[0]).read_text(encoding="utf-8"))
    for fault in faults:
        print(f"commit message: {fault}", file=sys.stderr)
    return int(bool(faults))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
