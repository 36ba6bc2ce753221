"""What in a message is not its author's own statement: our own recalled text, code, logs, traces, quotes, mark-up.

Also decides which part of a tool's output a teammate wrote. Knows no category.
"""

from __future__ import annotations

import re
from typing import Final

INJECTED_PREFIX: Final = "[agent-memory:"
_MAX_BLOCK_LINES: Final = 12
_MAX_BLOCK_CHARS: Final = 800

_FENCE: Final = re.compile(r"^[ \t]{0,8}(`{3,}|~{3,})")
_COMMENT: Final = re.compile(r"<!--.{0,4000}?(?:-->|\Z)", re.DOTALL)
_TAGGED: Final = re.compile(
    r"<(script|style|system-reminder|system|memory|context|blockquote|pre|code|document|quote)\b[^>]{0,200}>.{0,20000}?</\1>",
    re.DOTALL | re.IGNORECASE,
)
_TAG: Final = re.compile(r"</?[a-zA-Z][^<>]{0,200}>")
# A line that a machine wrote. One alternative per kind of machine.
_MACHINE_LINE: Final = re.compile(
    r"""(?xi)
    \s*(?:
      \[?\d{4}-\d\d-\d\d[T ]\d\d:\d\d                       # time stamp
    | \[?\d\d:\d\d:\d\d(?:[.,]\d+)?\]?\s
    | (?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)\s+\d+\s\d\d:\d\d
    | \[?(?:INFO|WARN(?:ING)?|ERROR|DEBUG|TRACE|FATAL|CRITICAL|NOTICE)\]?[\s:\]]
    | (?:npm|yarn|pip|cargo|pnpm|error|warning|fatal|panic|E\d{4}|make(?:\[\d+\])?)\s?(?:WARN|ERR!|notice|:)\s
    | File\s"[^"]+",\sline\s\d+ | Traceback\s\( | at\s[\w.$<>/]+\s?\( | Caused\sby: | goroutine\s\d+ | \w+(?:\.\w+)*(?:Error|Exception|Warning):
    | \$\s+\S | %\s\w+ | >>>\s | In\s\[\d+\]: | Out\[\d+\]: | PS\s[A-Z]:\\
    | [\w./-]+\.\w{1,6}:\d+(?::\d+)?[:\s]                   # path:line:
    | (?:[+-]{3}\s|@@\s|diff\s--git|index\s[0-9a-f]{7})     # diff
    | [+-]\s{2,}\S
    | [0-9a-f]{7,40}\s.{3,}                                 # git log
    | \#\d+\s(?:\[|\d|sha256:|DONE|CACHED)                  # docker
    | \|.*\|\s*$                                            # table
    | [\[{(]?"?[\w-]+"?\s*[:=]\s*["\[{\d].{0,200}[,;{\]}]\s*$   # JSON and the like
    | [{}\[\]();,]+\s*$
    | (?:import|from|def|class|func|fn|const|let|var|public|private|static|return|package|use|struct|enum|interface|export|SELECT|INSERT|UPDATE|CREATE)\s[\w.*{("'<\s]{1,80}[;{(=:]\s*$
    | (?://|/\*|\*\s|\#!|--\s|<\?|<!)                       # comments
    | [\w-]+\s*=\s*\S+\s*$
    | \[[\w./-]+\]\s
    )
    """
)
_QUOTE_LINE: Final = re.compile(r"^\s{0,3}(?:>|&gt;|\|\s)")


def separate(text: str) -> tuple[str, dict[str, str]]:
    """Return the author's own lines, and the code blocks taken out (placeholder line to block).

    A short block stays reachable: a sentence that introduces it with a colon may keep it.
    """
    text = _TAGGED.sub("\n", _COMMENT.sub("\n", text)) if "<" in text else text
    lines, blocks = _without_fences(_without_injected(text.splitlines()))
    kept = [line for line in lines if not _QUOTE_LINE.match(line)]
    own = [_TAG.sub(" ", line) if "<" in line else line for line in kept if not _is_machine_line(line)]
    return "\n".join(own), blocks


def _is_machine_line(line: str) -> bool:
    return bool(line.startswith(("    ", "\t")) and not line.strip().startswith(("-", "*"))) or (
        _MACHINE_LINE.match(line) is not None
    )


def strip_injected(text: str) -> str:
    """Return `text` without any block that this project injected into a conversation."""
    return "\n".join(_without_injected(text.splitlines())) if INJECTED_PREFIX in text else text


def _without_injected(lines: list[str]) -> list[str]:
    """Drop each block that begins with our marker line and ends with the fence that closes it."""
    kept: list[str] = []
    position = 0
    while position < len(lines):
        if not lines[position].lstrip().startswith(INJECTED_PREFIX):
            kept.append(lines[position])
            position += 1
            continue
        position = _end_of_injected(lines, position + 1)
    return kept


def _end_of_injected(lines: list[str], position: int) -> int:
    """Return the line after the block: after its closing fence, or the end of the text if it never closes."""
    fence = ""
    while position < len(lines):
        line = lines[position].strip()
        position += 1
        if not fence and (match := _FENCE.match(line)):
            fence = match[1]
        elif fence and line.startswith(fence) and not line.strip(fence[0]):
            return position
    return position


def _without_fences(lines: list[str]) -> tuple[list[str], dict[str, str]]:
    kept: list[str] = []
    blocks: dict[str, str] = {}
    inside: list[str] | None = None
    fence = ""
    for line in lines:
        match = _FENCE.match(line)
        if inside is None and match:
            inside, fence = [line.strip()], match[1]
        elif inside is not None:
            inside.append(line)
            if line.strip().startswith(fence) and not line.strip().strip(fence[0]):
                placeholder = f"\x00block{len(blocks)}\x00"
                kept.append(placeholder)
                blocks[placeholder] = _short("\n".join(inside))
                inside = None
        else:
            kept.append(line)
    return kept, {key: block for key, block in blocks.items() if block} | {key: "" for key in blocks if not blocks[key]}


def _short(block: str) -> str:
    small = block.count("\n") <= _MAX_BLOCK_LINES + 1 and len(block) <= _MAX_BLOCK_CHARS
    return block if small else ""


_BOT: Final = re.compile(
    r"(?i)\b(?:github-actions|dependabot|renovate|codecov|sonarcloud|\w+\[bot\]|\w+-bot|ci-bot|bot)\b"
)
_SPEAKER: Final = re.compile(
    r"""(?xi)^\s*(?:
      author:\s*@?(?P<a>[\w.-]+(?:\s[\w.-]+){0,3}) | @?(?P<b>[\w.-]+)\s(?:\([\w\s]+\)\s)?(?:commented|wrote|replied|reviewed|left\sa\scomment|requested\schanges|approved)\b
    | (?:written|handover|hand-off|posted|reported|prepared|geschrieben|escrito|écrit)\s(?:by|from|von|por|par):?\s+(?P<c>[^\n]{2,60}) | from:\s(?P<d>[^\n]{2,60})
    )"""
)
_INTERNAL: Final = re.compile(
    r"(?i)\.(?:internal|corp|intranet|lan|local)\b|\b(?:hand-?off|hand-?over|übergabe|our team|platform team|team wiki|internal wiki|post-?mortem|incident|retrospective|runbook|ADR|meeting notes|wiki)\b"
)
_OUTSIDE: Final = re.compile(
    r"(?i)\b(?:node_modules|vendor/|site-packages|third_party|engineering blog|cookie|was this page helpful|subscribe|newsletter|stack ?overflow|wikipedia|copyright|all rights reserved|sponsor|tests?/(?:data|fixtures)|fixtures?/|\{\{|you are an? )"
)
_SEPARATOR: Final = re.compile(r"^\s*(?:-{2,}|={3,}|\*{3,}|_{3,})\s*$")
_FIELD: Final = re.compile(
    r"^\s*(?:title|state|labels?|status|assignees?|reviewers?|milestone|number|url|date|projects?|author|association|edited|severity|services?)\s*:",
    re.IGNORECASE,
)


def teammate_statements(text: str) -> str:
    """Return the part of a tool's output that a teammate said: comments, hand-over notes, own post-mortems.

    Everything else a tool returns (files, pages, logs, listings) is nobody's statement to this agent: "".
    """
    if _OUTSIDE.search(text[:20_000]):
        return ""
    spoken: list[str] = []
    speaking = False
    seen_speaker = False
    for line in text.splitlines():
        if match := _SPEAKER.match(line):
            speaking = not _BOT.search(line)
            seen_speaker = seen_speaker or bool(match.lastgroup and speaking)
        elif _FIELD.match(line) or line.startswith("$ "):
            continue
        elif _SEPARATOR.match(line):
            spoken.append("")
        elif speaking:
            spoken.append(line)
    if not seen_speaker:
        return ""
    commented = re.search(
        r"(?im)^\s*(?:@?[\w.-]+ (?:\([\w ]+\) )?(?:commented|wrote|replied|reviewed)|author:\s*\S+ ?(?:\([\w ]+\))?\s*$)",
        text,
    )
    return "\n".join(spoken) if commented or _INTERNAL.search(text) else ""
