"""docs/doctor.md and docs/lifecycle.md have the tables of the code."""

from __future__ import annotations

from pathlib import Path

from agent_memory.care.checks import CHECKS, CODES

DOCS = Path(__file__).parents[4] / "docs"


def render_codes() -> str:
    """Return the table of findings for docs/doctor.md."""
    lines = ["| code | severity | reported when | `--repair` |", "|---|---|---|---|"]
    for name, code in CODES.items():
        lines.append(f"| `{name}` | {code.severity.name.lower()} | {code.meaning} | {code.repair} |")
    return "\n".join(lines)


def render_checks() -> str:
    """Return the table of health checks for docs/lifecycle.md."""
    lines = ["| check | what is looked at | warning | critical |", "|---|---|---|---|"]
    lines += [f"| `{code}` | {row.about} | {row.warning} | {row.critical} |" for code, row in CHECKS.items()]
    return "\n".join(lines)


def test_page_of_doctor_has_all_findings() -> None:
    assert render_codes() in (DOCS / "doctor.md").read_text(encoding="utf-8"), render_codes()


def test_page_of_lifecycle_has_all_checks() -> None:
    assert render_checks() in (DOCS / "lifecycle.md").read_text(encoding="utf-8"), render_checks()
