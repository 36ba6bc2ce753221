"""Settings of single modules: tools, scratchpad, capture."""

from __future__ import annotations

import re
from typing import Annotated, Final

import pydantic
from pydantic import AfterValidator, Field

from agent_memory.settings.base import Fraction, Positive, Settings, did_you_mean

TOOL_NAMES: Final = (
    "memory_search",
    "memory_store",
    "memory_promote",
    "memory_list_recent",
    "memory_update",
    "memory_forget",
    "memory_status",
    "memory_activate",
    "memory_suspects",
)
KNOWLEDGE_TOOLS: Final = ("recall", "remember", "list_categories", "get_category", "digest")
TENANT: Final = r"[A-Za-z0-9][A-Za-z0-9_.@-]{0,63}"
"""Regular expression for the name of a tenant: whose a session is where one host serves many."""
OFFERED_TOOLS: Final = TOOL_NAMES[:-1]
"""Those that are offered unless a configuration names others: each costs tokens in every request."""
DEFAULT_TOKEN_BUDGET: Final = 2000  # of the scratchpad


def tools_among(known: tuple[str, ...]) -> AfterValidator:
    """Return what refuses names that no tool has, and takes each once."""

    def check(tools: tuple[str, ...]) -> tuple[str, ...]:
        for name in tools:
            if name not in known:
                raise ValueError(f"there is no tool {name!r}{did_you_mean(name, known)}")
        return tuple(dict.fromkeys(tools))

    return AfterValidator(check)


class ToolSettings(Settings):
    """Of `tool-memory-semantic` alone."""

    tools: Annotated[tuple[str, ...], tools_among(TOOL_NAMES)] = Field(
        default=OFFERED_TOOLS, description="Allow-list: the tools to offer."
    )
    low_trust_tools: tuple[str, ...] = Field(
        default=(
            *("*web*", "*fetch*", "*brows*", "*http*", "*scrap*", "*crawl*", "*mail*", "mcp*", "*search*", "*url*"),
            *("*curl*", "*wget*", "*download*", "*rss*", "feed_*", "*_feed*", "*news*", "*internet*", "*online*"),
            *("*inbox*", "*github*", "*gitlab*", "gh_*", "*issue*", "*ticket*", "*jira*", "linear_*", "*slack*"),
            *("*discord*", "*teams*", "*telegram*", "*notion*", "*confluence*", "*wiki*", "*drive*", "*dropbox*"),
            *("*sharepoint*", "*calendar*", "*outlook*", "*imap*", "*chat_history*", "*transcript*", "*youtube*"),
            *("*video*", "*twitter*", "*tweet*", "*reddit*", "*arxiv*", "*pubmed*", "*tavily*", "*perplexity*"),
            *("*exa_*", "*page*", "*visit*", "*navigat*", "*playwright*", "*puppeteer*", "*selenium*"),
            *("*computer_use*", "*_prs", "*api_request*", "*api_call*", "*get_message*", "*read_message*"),
            *("*whatsapp*", "*zendesk*", "*intercom*", "*firecrawl*", "*serp*", "*pull_request*", "*comment*"),
            *("*forum*", "*stackoverflow*", "*a2a*"),
        ),
        description="Patterns of tool names whose output is strangers' words; after it the session is untrusted, see "
        "trust.md. The words of a shell that calls the network count, too.",
    )
    trusted_tools: tuple[str, ...] = Field(
        default=(
            *("memory_search", "grep*", "glob*", "todo*", "lsp*", "code_search", "search_code", "codebase_search"),
            *("search_codebase", "search_files", "search_file", "file_search", "find_files", "symbol_search"),
            *("search_symbols", "search_replace", "search_and_replace", "tool_search", "search_tools"),
            *("skill_search", "search_skills"),
        ),
        description="Patterns of names that are none of these, although one fits: tools that read what is here.",
    )


class ScratchpadSettings(Settings):
    """Of `context-memory-scratchpad` alone."""

    token_budget: int = Field(default=DEFAULT_TOKEN_BUDGET, ge=1, le=100_000, description="Tokens it takes at most.")
    include_timestamps: bool = Field(default=True, description="Show the day a memory was stored.")
    include_categories: bool = Field(default=True, description="Show its category.")
    include_tags: bool = Field(default=True, description="Show its tags.")
    exclude_categories: tuple[str, ...] = Field(default=(), description="Categories that are not shown.")
    inject_in_subsessions: bool = Field(
        default=False, description="Also show it to sub-agents; the memory-assistant always sees it."
    )
    briefing: bool = Field(default=True, description="Tell, once, what bears on the first prompt of a session.")
    briefing_tokens: int = Field(default=500, ge=100, le=10_000, description="Tokens the briefing takes at most.")


class CapturePattern(Settings):
    """One rule of a user's own: a regular expression, the category of what it finds, how sure it is (0..1)."""

    pattern: str = Field(min_length=1, max_length=1000)
    category: str = Field(default="note", pattern=r"^[a-z][a-z0-9_]{0,63}$")
    confidence: Fraction = 0.6

    @pydantic.model_validator(mode="before")
    @classmethod
    def _from_text(cls, values: object) -> object:
        return {"pattern": values} if isinstance(values, str) else values

    @pydantic.field_validator("pattern")
    @classmethod
    def _compiles(cls, pattern: str) -> str:
        try:
            re.compile(pattern)
        except re.error as error:
            raise ValueError(f"not a regular expression: {error}") from None
        return pattern


class CaptureSettings(Settings):
    """Of `hooks-memory-capture` alone."""

    capture_patterns: tuple[CapturePattern, ...] = Field(
        default=(), description="Further rules, beside the built-in ones; a bare string is a pattern."
    )
    builtin_rules: bool = Field(
        default=True, description="Whether the built-in rules find anything; `false` leaves your own patterns alone."
    )
    min_confidence: Fraction = Field(
        default=0.5,
        description="Findings less sure than this are dropped.",
    )
    observe_tool_outputs: bool = Field(default=True, description="Look at what tools return.")
    observe_turn_completions: bool = Field(
        default=True, description="Look at what the agent says at the end of a turn."
    )
    observe_session_end: bool = Field(default=False, description="Look once more at the end of a session.")
    min_content_length: Positive = Field(
        default=10,
        description="Characters a captured text has at least; Chinese, Japanese and Korean ones count twice.",
    )
    max_content_length: int = Field(default=10_000, ge=1, le=10_000, description="Characters it has at most.")
    max_captures_per_session: int = Field(default=100, ge=0, description="Captures in one session at most.")
    async_capture: bool = Field(default=True, description="Capture behind the conversation instead of within it.")
