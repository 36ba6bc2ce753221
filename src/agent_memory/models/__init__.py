"""The data model: what a memory is, what a search takes and returns. Imports errors and redaction alone."""

from agent_memory.models.document import Document, Facet
from agent_memory.models.fields import ACCESS, ESTIMATES, IDENTITY, PLACE, offered_fields, offered_values
from agent_memory.models.identifiers import check_agent_id, check_id, check_texts, is_memory_id, new_memory_id
from agent_memory.models.invalid import describe
from agent_memory.models.kind import Kind
from agent_memory.models.links import (
    BESIDE,
    DERIVED_FROM,
    DISTINCT,
    REPLACES,
    SUSPECT,
    Linked,
    Surroundings,
    is_told,
    listed_as,
    rests_on,
)
from agent_memory.models.listing import ANY_STATE, Listed, Listing, ListOrder, RecordState
from agent_memory.models.memory import CATEGORIES, MAX_CONTENT_CHARS, MEMORY, Memory
from agent_memory.models.observation import Observation
from agent_memory.models.record import MAX_TAGS, Link, Record, Source, SourceKind, Trust, may_stand_for, record_of
from agent_memory.models.scratchpad import Scratchpad
from agent_memory.models.search import (
    DateRange,
    Doubt,
    MatchType,
    MemorySearchResult,
    SearchFilters,
    SearchMode,
    SearchRequest,
    SearchResults,
    check_limit,
    filters_of,
)
from agent_memory.models.tally import Tally
from agent_memory.models.text import STEERING, check_text, content_hash, content_mark, visible
from agent_memory.models.times import Clock, as_utc, from_seconds, parse_bound, to_text, utc_now
from agent_memory.models.trace import MAX_REASON_CHARS, Trace
from agent_memory.models.version import Version

__all__ = [
    "ACCESS",
    "ANY_STATE",
    "BESIDE",
    "CATEGORIES",
    "DERIVED_FROM",
    "DISTINCT",
    "ESTIMATES",
    "IDENTITY",
    "MAX_CONTENT_CHARS",
    "MAX_REASON_CHARS",
    "MAX_TAGS",
    "MEMORY",
    "PLACE",
    "REPLACES",
    "STEERING",
    "SUSPECT",
    "Clock",
    "DateRange",
    "Document",
    "Doubt",
    "Facet",
    "Kind",
    "Link",
    "Linked",
    "ListOrder",
    "Listed",
    "Listing",
    "MatchType",
    "Memory",
    "MemorySearchResult",
    "Observation",
    "Record",
    "RecordState",
    "Scratchpad",
    "SearchFilters",
    "SearchMode",
    "SearchRequest",
    "SearchResults",
    "Source",
    "SourceKind",
    "Surroundings",
    "Tally",
    "Trace",
    "Trust",
    "Version",
    "as_utc",
    "check_agent_id",
    "check_id",
    "check_limit",
    "check_text",
    "check_texts",
    "content_hash",
    "content_mark",
    "describe",
    "filters_of",
    "from_seconds",
    "is_memory_id",
    "is_told",
    "listed_as",
    "may_stand_for",
    "new_memory_id",
    "offered_fields",
    "offered_values",
    "parse_bound",
    "record_of",
    "rests_on",
    "to_text",
    "utc_now",
    "visible",
]
