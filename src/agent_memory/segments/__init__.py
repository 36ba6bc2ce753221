"""Segments: what is derived from a stretch of a journal, sealed in arrays that are mapped and never loaded.

A segment holds the records of that stretch as they were at its end, their columns, their words and the hashes of what
is embedded. It is immutable; what came later hides what it says. All of it can be made anew from the journal.
"""

from agent_memory.segments.chain import (
    Chain,
    arrivals,
    check_segments,
    is_ours,
    list_segments,
    listed,
    next_arrival,
    open_chain,
    unlist_segments,
)
from agent_memory.segments.merging import merge
from agent_memory.segments.part import Part
from agent_memory.segments.rows import ASKS, PINNED, TELLS_TIME, TRUSTS, Row
from agent_memory.segments.segment import NONE, VERSION, About, Segment, facet_key, hash_of, read_about
from agent_memory.segments.vectors import Vectors, add_vectors, folder_name, remove_unfinished
from agent_memory.segments.writing import seal

__all__ = [
    "ASKS",
    "NONE",
    "PINNED",
    "TELLS_TIME",
    "TRUSTS",
    "VERSION",
    "About",
    "Chain",
    "Part",
    "Row",
    "Segment",
    "Vectors",
    "add_vectors",
    "arrivals",
    "check_segments",
    "facet_key",
    "folder_name",
    "hash_of",
    "is_ours",
    "list_segments",
    "listed",
    "merge",
    "next_arrival",
    "open_chain",
    "read_about",
    "remove_unfinished",
    "seal",
    "unlist_segments",
]
