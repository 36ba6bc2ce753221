"""The eight tools of the server: arguments, questions for the user, answers.

Each maps to the memory tools of `tools/`, so that rules and texts exist once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, TypeVar, cast

from pydantic import Field

from agent_memory.errors import UnknownIdError, ValidationError
from agent_memory.memory import views
from agent_memory.memory.briefing import SessionBriefing
from agent_memory.memory.inbox_access import opened_inbox
from agent_memory.models import is_memory_id, is_stated, to_text, visible
from agent_memory.models.record import new_list
from agent_memory.redaction import quoted
from agent_memory.tools.agent_tool import AgentTool
from agent_memory.tools.argument_reader import ToolArguments, read_arguments
from agent_memory.tools.arguments import CategoryName, IdText  # noqa: TC001 - pydantic reads them
from agent_memory.tools.memory_tools import (
    ForgetTool,
    ListRecentTool,
    SearchTool,
    StatusTool,
    StoreTool,
    UpdateTool,
)

if TYPE_CHECKING:
    from agent_memory.integrations.mcp.server_session import ServerSession
    from agent_memory.memory import MemoryService, Suspect
    from agent_memory.memory.conflict_review import Decision
    from agent_memory.models import Memory

_TITLE_CHARS: Final = 60
_MAX_BUDGET: Final = 4_000
_DECISIONS: Final[dict[str, tuple[Decision, bool]]] = {
    "newer": ("replace", False),
    "older": ("replace", True),
    "both": ("keep", False),
    "different": ("not_same", False),
}
"""Decision by verdict; True if the older replaces the newer."""


class SearchArguments(ToolArguments):
    """Arguments of `search`."""

    query: str = Field(max_length=10_000, json_schema_extra={"x-aliases": ["q"], "x-empty": True})
    limit: int = Field(5, ge=1, le=100, json_schema_extra={"x-aliases": ["k", "top_k", "max_results"]})
    category: CategoryName | None = Field(None, json_schema_extra={"x-unlisted": True})
    since: str | None = Field(None, description="day")
    until: str | None = None
    replaced: bool = Field(default=False, description="older versions too")


class FetchArguments(ToolArguments):
    """Arguments of `fetch`."""

    id: IdText = Field(json_schema_extra={"x-aliases": ["memory_id"]})
    history: bool = False


class ContextArguments(ToolArguments):
    """Arguments of `context`."""

    query: str = Field(description="the user's first words", json_schema_extra={"x-empty": True})
    budget: int = Field(500, ge=100, le=_MAX_BUDGET, description="tokens")


class StoreArguments(ToolArguments):
    """Arguments of `store`."""

    content: str = Field(json_schema_extra={"x-aliases": ["text", "memory", "fact"]})
    category: CategoryName = "note"
    tags: list[str] = Field(default_factory=new_list, json_schema_extra={"x-aliases": ["tag"]})
    supersedes: IdText | None = Field(None, description="id of what it replaces")


class UpdateArguments(ToolArguments):
    """Arguments of `update`."""

    id: IdText = Field(json_schema_extra={"x-aliases": ["memory_id"]})
    content: str | None = None
    tags: list[str] | None = None
    pinned: bool | None = None
    expires_at: str | None = Field(None, description="'' for never", json_schema_extra={"x-empty": True})


class ForgetArguments(ToolArguments):
    """Arguments of `forget`: a description first, then IDs."""

    what: str | None = Field(None, description="the user's words", json_schema_extra={"x-aliases": ["query"]})
    ids: list[IdText] | None = Field(None, json_schema_extra={"x-aliases": ["id", "memory_ids"]})


class ListArguments(ToolArguments):
    """Arguments of `list`."""

    limit: int = Field(10, ge=1, le=100)
    counts: bool = Field(default=False, description="status only")


class DecideArguments(ToolArguments):
    """Arguments of `decide`."""

    id: IdText
    verdict: Literal["newer", "older", "both", "different", "reject", "undo"]


ArgumentsT = TypeVar("ArgumentsT", bound=ToolArguments)


class ClientTool(AgentTool[ArgumentsT]):
    """Tool of the server.

    Attributes:
        title: Name for people.
        hints: True annotations of the protocol, of `destructive` and `idempotent`.
        fields: Type of each field of the answer, required ones first.
    """

    session: ServerSession
    title: ClassVar[str]
    hints: ClassVar[frozenset[str]] = frozenset()
    fields: ClassVar[dict[str, str]] = {}

    async def find_question(self, arguments: Any) -> str:
        """Return the question for the user before the call; empty for none.

        Raises:
            AgentMemoryError: The call would fail.
        """
        args = read_arguments(self.name, self.arguments_model, arguments)
        return await self._describe_act(cast("ArgumentsT", args))

    async def _describe_act(self, args: ArgumentsT) -> str:  # noqa: ARG002 - for the tools that ask
        return ""

    async def _load(self, ids: list[str]) -> list[Memory]:
        """Return the existing memories among the named ones."""
        storage = (await self.session.require()).storage
        memories = [await storage.get(memory_id) for memory_id in ids if is_memory_id(memory_id)]
        return [memory for memory in memories if memory is not None]

    async def _find_protected(self, ids: list[str]) -> list[Memory]:
        """Return the named memories that a model changes only with a yes."""
        is_tainted = self.session.caller.trust == "low"
        return [
            memory for memory in await self._load(ids) if (memory.trust != "low" if is_tainted else is_stated(memory))
        ]

    def describe_command(self, arguments: Any) -> str:
        """Return the command that does the same for a person."""
        record_ids = arguments.get("ids") or arguments.get("id") or "ID"
        return f"agent-memory {self.name} {record_ids if isinstance(record_ids, str) else ' '.join(record_ids)}"


class ClientSearch(ClientTool[SearchArguments]):
    """search."""

    name = "search"
    title = "Search memory"
    description = SearchTool.description
    only_reads = True
    hints = frozenset({"idempotent"})
    fields: ClassVar = {"results": "array", "match": "string"}

    async def _run(self, args: SearchArguments) -> dict[str, Any]:
        bounds = {"start": args.since, "end": args.until}
        filters = {"category": args.category, "date_range": {key: day for key, day in bounds.items() if day}}
        found = await SearchTool(self.session).call(
            {
                "query": args.query,
                "limit": args.limit,
                "filters": {key: value for key, value in filters.items() if value},
                "include_superseded": args.replaced,
            }
        )
        return {**found, "results": [_add_place(hit) for hit in found["results"]]}


class ClientFetch(ClientTool[FetchArguments]):
    """fetch."""

    name = "fetch"
    title = "Fetch one record"
    description = "Return one record with its source; `history` adds earlier versions."
    only_reads = True
    hints = frozenset({"idempotent"})
    fields: ClassVar = {"id": "string", "text": "string", "title": "string", "url": "string"}

    async def _run(self, args: FetchArguments) -> dict[str, Any]:
        found = await SearchTool(self.session).call({"query": args.id, "limit": 1, "detail": "full", "full": True})
        hit = next((hit for hit in found["results"] if hit["id"] == args.id), None)
        if hit is None:
            raise UnknownIdError(f"There is no record {quoted(args.id)}.", recovery="Search for it by its words.")
        record = {**_add_place(hit), "text": hit["content"]}
        if args.history and is_memory_id(args.id):
            service = await self.session.require()
            record["history"] = [
                {
                    "at": to_text(version.at),
                    "op": version.op,
                    "content": version.record.content if version.record else None,
                }
                for version in await service.history.history(args.id)
            ]
        return record


class ClientContext(ClientTool[ContextArguments]):
    """context."""

    name = "context"
    title = "Get the briefing"
    description = "Call first in a conversation: what is pinned, preferred and decided, and what bears on the query."
    only_reads = True
    fields: ClassVar = {"text": "string", "sources": "array", "tokens": "integer"}

    async def _run(self, args: ContextArguments) -> dict[str, Any]:
        service = await self.session.require()
        briefings = SessionBriefing(service, args.budget)
        try:
            made = await briefings.make(args.query, self.session.caller)
        finally:
            await briefings.close()
        shown = [*made.memories, *made.turns]
        self.session.note_returned(shown)
        sources = [memory.id for memory in shown]
        return {"text": made.text, "sources": sources, "tokens": made.tokens}


class ClientStore(ClientTool[StoreArguments]):
    """store."""

    name = "store"
    title = "Store a memory"
    description = StoreTool.description
    hints = frozenset({"idempotent"})
    fields: ClassVar = {"memory_id": "string", "trust": "string", "similar": "array", "suspects": "array"}

    async def _run(self, args: StoreArguments) -> dict[str, Any]:
        return await StoreTool(self.session).call(args.model_dump(exclude_none=True))

    async def _describe_act(self, args: StoreArguments) -> str:
        if args.supersedes is None:
            return ""
        older = await self._find_protected([args.supersedes])
        return f"Replace {_list_memories(older)}\nwith\n- {visible(args.content)}\n?" if older else ""


class ClientUpdate(ClientTool[UpdateArguments]):
    """update."""

    name = "update"
    title = "Change a memory"
    description = "Correct a memory, let it expire, or pin it."
    hints = frozenset({"idempotent"})
    fields: ClassVar = {"memory_id": "string", "fields": "array"}

    async def _run(self, args: UpdateArguments) -> dict[str, Any]:
        changes = args.model_dump(exclude={"id"}, exclude_none=True)
        return await UpdateTool(self.session).call({"memory_id": args.id, **changes})

    async def _describe_act(self, args: UpdateArguments) -> str:
        memories = await self._find_protected([args.id])
        changes = args.model_dump(exclude={"id"}, exclude_none=True)
        if not memories or not changes:
            return ""
        lines = "\n".join(f"- {name}: {visible(str(value))}" for name, value in changes.items())
        return f"Change {_list_memories(memories)}\nto\n{lines}\n?"


class ClientForget(ClientTool[ForgetArguments]):
    """forget."""

    name = "forget"
    title = "Forget memories"
    description = ForgetTool.description
    hints = frozenset({"destructive", "idempotent"})
    fields: ClassVar = {"forgotten": "boolean", "candidates": "array"}

    async def _run(self, args: ForgetArguments) -> dict[str, Any]:
        return await ForgetTool(self.session).call({"query": args.what} if args.ids is None else {"ids": args.ids})

    async def _describe_act(self, args: ForgetArguments) -> str:
        memories, caller = await self._load(args.ids or []), self.session.caller
        is_free = all(memory.trust == "low" for memory in memories)
        is_free &= caller.proposals.is_within_limit([memory.id for memory in memories])
        return "" if is_free else f"Forget {_list_memories(memories)}\n?"


class ClientList(ClientTool[ListArguments]):
    """list."""

    name = "list"
    title = "List memories"
    description = "List the newest memories; `counts` returns the status."
    only_reads = True
    hints = frozenset({"idempotent"})
    fields: ClassVar = {"memories": "array", "count": "integer", "counts": "object"}

    async def _run(self, args: ListArguments) -> dict[str, Any]:
        if args.counts:
            return {**await StatusTool(self.session).call({"detail": "short"}), "hooks": self.session.hooks}
        return await ListRecentTool(self.session).call({"limit": args.limit})


class ClientDecide(ClientTool[DecideArguments]):
    """decide."""

    name = "decide"
    title = "Decide about a memory"
    description = (
        "As the user says: a conflict by the id of one of its memories; reject a waiting note; undo your change."
    )
    fields: ClassVar = {"id": "string", "verdict": "string", "done": "boolean"}

    async def _run(self, args: DecideArguments) -> dict[str, Any]:
        service = await self.session.require()
        if args.verdict == "undo":
            await self._undo(service, args.id)
        elif args.verdict == "reject":
            async with opened_inbox(service) as inbox:
                await inbox.reject([args.id], self.session.caller)
        else:
            pair = await self._find_pair(service, args.id)
            decision, is_reversed = _DECISIONS[args.verdict]
            first, second = (pair.older, pair.newer) if is_reversed else (pair.newer, pair.older)
            await service.writer.conflicts.decide(first.id, second.id, decision, self.session.caller)
            self.session.decided |= dict.fromkeys((first.id, second.id), (first.id, second.id))
        return {"id": args.id, "verdict": args.verdict, "done": True}

    async def _describe_act(self, args: DecideArguments) -> str:
        if args.verdict not in _DECISIONS:
            return ""
        pair = await self._find_pair(await self.session.require(), args.id)
        words = {"newer": "The newer replaces the older", "older": "The older replaces the newer"}
        outcome = words.get(args.verdict, "Both stay")
        return f"{outcome}:{_list_memories([pair.newer, pair.older])}\n?"

    async def _find_pair(self, service: MemoryService, memory_id: str) -> Suspect:
        for pair in await service.suspects(self.session.caller):
            if memory_id in {pair.newer.id, pair.older.id}:
                return pair
        raise UnknownIdError(f"{quoted(memory_id)} is in no conflict; nothing was decided.")

    async def _undo(self, service: MemoryService, memory_id: str) -> None:
        """Take back a memory's last change, if this session made it.

        Raises:
            ValidationError: Another session or a person made it (`needs_user`).
        """
        last = next(
            iter(await service.history.find_last_changes(self.session.decided.get(memory_id, (memory_id,)))), None
        )
        own_changes = [] if self.session.is_shared else await service.history.list_session(self.session.session_id)
        change = next((own for own in own_changes if last is not None and own.seq == last.seq), None)
        if change is None:
            raise ValidationError(
                f"The last change of {quoted(memory_id)} was not made in this session; nothing was undone.",
                code="needs_user",
                recovery=f"The user runs: agent-memory undo {memory_id}",
            )
        undone = await service.history.take_back(change, self.session.caller)
        if undone.conflicts:
            raise ValidationError(f"Nothing was undone: {'; '.join(undone.conflicts.values())}.", code="conflict")


def _list_memories(memories: list[Memory]) -> str:
    return "".join(f"\n- {memory.id}: {visible(memory.content)}" for memory in memories)


def _add_place(hit: dict[str, Any]) -> dict[str, Any]:
    """Return a hit with title and address, as ChatGPT's connectors need them."""
    title = views.shorten_line(hit.get("content", ""), _TITLE_CHARS)
    return {**hit, "title": title, "url": f"memory://{hit['id']}"}


CLIENT_TOOLS: Final[tuple[type[ClientTool[Any]], ...]] = (
    ClientSearch, ClientFetch, ClientContext, ClientStore, ClientUpdate, ClientForget, ClientList, ClientDecide,
)  # fmt: skip
"""Tools of the server, reading ones first."""
