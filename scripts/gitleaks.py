"""Take gitleaks' rules over as data: `python -m scripts.gitleaks CHECKOUT`, any clone of github.com/gitleaks/gitleaks.

Writes its rules of providers into the redactor's `patterns/gitleaks.json`, and what only the comparison in
`benchmarks.secrets` needs (the generic rule and the lists of what is allowed) into `benchmarks/secrets/gitleaks.json`.
Both name source, commit and licence. The patterns are those of Go's RE2, rewritten for Python where the two differ:
flags within a pattern, POSIX classes, the end of the text.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import tomllib
from pathlib import Path
from typing import Any, Final

SOURCE: Final = "https://github.com/gitleaks/gitleaks/blob/master/config/gitleaks.toml"
ROOT: Final = Path(__file__).resolve().parents[1]
RULES: Final = ROOT / "src" / "agent_memory" / "redaction" / "patterns" / "gitleaks.json"
REST: Final = ROOT / "benchmarks" / "secrets" / "gitleaks.json"
GENERIC: Final = "generic-api-key"
POSIX: Final = {"[:alnum:]": "a-zA-Z0-9", "[:alpha:]": "a-zA-Z", "[:digit:]": "0-9", "[:xdigit:]": "0-9a-fA-F"}
_PART: Final = re.compile(r"\\.|\[\^?\]?(?:\\.|\[:\w+:\]|[^\]\\])*\]|\(\?([a-z-]+)\)|\(|\)|\||[^\\\[()|]", re.DOTALL)
_LEAD: Final = re.compile(r"^(\(\?i:)?\[\\w\.-\]\{0,50\}\?(\(\?i:)?(?:\[\\w\.-\]\{0,50\}\?)?")


def main() -> None:
    """Write both files."""
    parser = argparse.ArgumentParser(description="take gitleaks' rules over as data")
    parser.add_argument("checkout", type=Path, help="a clone of gitleaks")
    checkout = parser.parse_args().checkout
    config = tomllib.loads(_git(checkout, "show", "HEAD:config/gitleaks.toml"))
    origin = {
        "source": SOURCE,
        "commit": _git(checkout, "rev-parse", "HEAD").strip(),
        "licence": "MIT",
        "notice": _git(checkout, "show", "HEAD:LICENSE").strip().splitlines(),
    }
    rules = {rule["id"]: converted(rule) for rule in config["rules"] if "regex" in rule and "path" not in rule}
    generic, allowed = rules.pop(GENERIC), config["allowlist"]
    rules = {name: rule for name, rule in rules.items() if not _finds_itself(rule)}
    _write(RULES, origin | {"rules": [{"id": name} | rule for name, rule in sorted(rules.items())]})
    rest = {"generic": generic, "regexes": [python(each) for each in allowed["regexes"]]}
    _write(REST, origin | rest | {"stopwords": sorted(allowed["stopwords"])})


def converted(rule: dict[str, Any]) -> dict[str, Any]:
    """Return what is used of a rule: keywords of which one must occur in lower case, pattern, entropy, what is allowed.

    Raises:
        re.error: Python does not understand a pattern.
    """
    kept: dict[str, Any] = {"keywords": rule.get("keywords", []), "regex": _LEAD.sub(r"\1\2", python(rule["regex"]))}
    kept |= {name: rule[name] for name in ("entropy", "secretGroup") if name in rule}
    lists = [each for each in rule.get("allowlists", ()) if "paths" not in each]
    if lists:
        kept["allowlists"] = [_allowed(one, re.compile(kept["regex"], re.ASCII)) for one in lists]
    return kept


def _finds_itself(rule: dict[str, Any]) -> bool:
    """Tell whether a rule is little but one literal: written down, it is what a scanner reports."""
    return re.search(rule["regex"], json.dumps(rule), re.ASCII) is not None


def _allowed(one: dict[str, Any], rule: re.Pattern[str]) -> dict[str, Any]:
    """Return a list of what is allowed, without keys of documentations: no file of ours holds what looks like one."""
    return {
        name: [python(each) for each in value if not rule.search(each)] if name == "regexes" else value
        for name, value in one.items()
    }


def python(pattern: str) -> str:
    """Return an RE2 pattern for Python's `re`: `x(?i)a|b` there is `x(?i:a)|(?i:b)` here."""
    parts: list[str] = []
    flags: list[list[str]] = [[]]  # those switched on since the beginning of each open group
    for match in _PART.finditer(pattern):
        part = match[0]
        if match[1]:
            flags[-1].append(part[:-1] + ":")
            part = flags[-1][-1]
        elif part == "(":
            flags.append([])
        elif part == ")":
            part = ")" * (1 + len(flags.pop()))
        elif part == "|":
            part = ")" * len(flags[-1]) + "|" + "".join(flags[-1])
        elif part == r"\z":
            part = r"\Z"
        elif part[0] == "[":
            for name, letters in POSIX.items():
                part = part.replace(name, letters)
        parts.append(part)
    result = "".join(parts) + ")" * len(flags[0])
    re.compile(result, re.ASCII)
    return result


def _write(path: Path, data: dict[str, Any]) -> None:
    """Write JSON with one entry a line, so that a change of one rule is a change of one line."""
    lines = []
    for name, value in data.items():
        if isinstance(value, list) and value and name != "stopwords":
            items = ",\n  ".join(json.dumps(item, ensure_ascii=False) for item in value)
            lines.append(f'"{name}": [\n  {items}\n ]')
        else:
            lines.append(f'"{name}": {json.dumps(value, ensure_ascii=False)}')
    path.write_text("{\n " + ",\n ".join(lines) + "\n}\n", encoding="utf-8")


def _git(checkout: Path, *command: str) -> str:
    return subprocess.run(["git", "-C", str(checkout), *command], check=True, capture_output=True, text=True).stdout  # noqa: S603, S607 - git on the caller's clone


if __name__ == "__main__":
    main()
