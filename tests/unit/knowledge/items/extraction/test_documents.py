"""What documents state, and where."""

from __future__ import annotations

import random

import pytest

from agent_memory.knowledge.items.extraction.claims import Passage
from agent_memory.knowledge.items.extraction.documents import claims_of_document

DOCUMENT = """---
title: none of it
---
# The boat

The mast is made of spruce.
It is 7.5 metres high.

## Hull

- Painted in May
- [ ] Sand the keel

```
code = "is left out"
```

| part | weight |
|---|---|
| keel | 40 kg |
| mast | 12 kg |

# Crew

Ann steers.
"""


def test_headings_stand_before_what_is_below_them() -> None:
    found = claims_of_document(Passage("d", DOCUMENT))
    assert [claim.text for claim in found] == [
        "The boat: The mast is made of spruce. It is 7.5 metres high.",
        "The boat \u203a Hull: Painted in May",
        "The boat \u203a Hull: Sand the keel",
        "The boat \u203a Hull: part: keel; weight: 40 kg",
        "The boat \u203a Hull: part: mast; weight: 12 kg",
        "Crew: Ann steers.",
    ]
    assert DOCUMENT[found[0].start : found[0].end] == "The mast is made of spruce.\nIt is 7.5 metres high."
    assert DOCUMENT[found[3].start : found[3].end] == "| keel | 40 kg |"


def test_a_long_paragraph_is_cut_between_sentences() -> None:
    text = " ".join(f"Sentence number {at} says a little." for at in range(60))
    found = claims_of_document(Passage("d", text))
    assert len(found) > 1
    assert all(claim.end - claim.start <= 500 and claim.text.endswith(".") for claim in found)
    assert " ".join(text[claim.start : claim.end] for claim in found) == text


def test_every_quote_lies_in_its_document() -> None:
    parts = [
        "# A ",
        "## ",
        "- ",
        "| a | b |",
        "|---|",
        "```",
        "\n",
        "\n\n",
        "A sentence. ",
        "---\n",
        "\t",
        "\r\n",
        "x" * 700,
        "。",
        "1. ",
    ]
    for seed in range(400):
        draw = random.Random(seed)
        text = "".join(draw.choices(parts, k=draw.randrange(30)))
        for claim in claims_of_document(Passage("d", text)):
            assert 0 <= claim.start < claim.end <= len(text)
            assert text[claim.start : claim.end].strip()


@pytest.mark.parametrize(
    "atom", [" ", "\n", "|", "| ", "#", "# ", "- ", "`", "```\n", "a", ". ", "---\n", "a\n", "| a |\n"]
)
def test_a_long_document_of_one_atom_is_read_whole(atom: str) -> None:
    text = atom * (100_000 // len(atom))
    found = claims_of_document(Passage("d", text))
    assert all(text[claim.start : claim.end].strip() for claim in found)
    assert sum(claim.end - claim.start for claim in found) <= len(text)
