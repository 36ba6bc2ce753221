"""`SearchIndex`: the memories of one agent, searchable by word and by meaning, in this process's memory.

Owns what is indexed and how memories are filed. Must not read or write files, start threads or read the clock. Not
thread-safe: its owner lets one caller in at a time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from agent_memory.retrieval import fusion
from agent_memory.retrieval.candidates import Sieve
from agent_memory.retrieval.facets import Facets
from agent_memory.retrieval.postings import Postings
from agent_memory.retrieval.query import read_question
from agent_memory.retrieval.ranking import rank, rank_recent
from agent_memory.retrieval.results import Ranking, RankingSettings
from agent_memory.retrieval.text_forms import (
    embedded_texts,
    filed_terms,
    moment_of,
    session_of,
    speaker_of,
    speakers_within,
    tells_time,
)
from agent_memory.retrieval.turns.sessions import Conversations

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from agent_memory.embeddings.protocol import Vector
    from agent_memory.engine import Where
    from agent_memory.models import Memory
    from agent_memory.retrieval.dense import VectorSource

_DEFAULT = RankingSettings()


@dataclass(slots=True)
class Entry:
    """A memory and what the index knows of it; `document` is None until its words are read."""

    memory: Memory
    arrival: int
    document: int | None = None
    moment: float = 0.0  # seconds; set with `document`
    length_share: float = 0.0
    tells_time: bool = False


class SearchIndex:
    """An in-memory index over the memories of one agent.

    Args:
        ranking: Constants a user may set.
        vectors: Where meaning comes from; None searches by words alone.
    """

    def __init__(self, ranking: RankingSettings = _DEFAULT, vectors: VectorSource | None = None) -> None:
        self.settings = ranking
        self.vectors = vectors
        self.entries: dict[str, Entry] = {}
        self.postings = Postings(ranking.k1, ranking.b)
        self.owners: dict[int, str] = {}  # document -> memory
        self.conversations = Conversations()
        self.facets = Facets()
        self._unread: dict[str, None] = {}
        self._arrivals = 0

    def __len__(self) -> int:
        return len(self.entries)

    def put(self, memory: Memory) -> None:
        """Insert a memory or replace the one of the same id; reading its words waits for a search or `warm`."""
        known = self.entries.get(memory.id)
        if known is None:
            self._arrivals += 1
            self.entries[memory.id] = Entry(memory, self._arrivals)
            self._unread[memory.id] = None
            return
        if _filed_by(known.memory) != _filed_by(memory):
            self._unfile(known)
            self._unread[memory.id] = None
        known.memory = memory

    def remove(self, memory_id: str) -> None:
        """Forget a memory; an unknown id changes nothing."""
        entry = self.entries.pop(memory_id, None)
        if entry is None:
            return
        self._unfile(entry)
        self._unread.pop(memory_id, None)
        if self.vectors is not None:
            self.vectors.remove(memory_id)

    def clear(self) -> None:
        """Forget everything."""
        self.entries.clear()
        self.owners.clear()
        self._unread.clear()
        self.postings = Postings(self.settings.k1, self.settings.b)
        self.conversations = Conversations()
        self.facets = Facets()
        if self.vectors is not None:
            self.vectors.clear()

    def warm(self, at_most: int | None = None) -> bool:
        """Read memories put since the last search, and ask for their vectors.

        Args:
            at_most: Stop after so many, so that a background thread can let others in between; None reads all.

        Returns:
            Whether everything is read.
        """
        for memory_id in list(self._unread)[:at_most]:
            self._file(self.entries[memory_id])
            del self._unread[memory_id]
        return not self._unread

    def prune(self) -> int:
        """Drop vectors kept for texts that no memory has any more; return how many.

        Reads everything first: a memory not read yet must not lose its vector.
        """
        self.warm()
        return self.vectors.prune() if self.vectors is not None else 0

    def meaning_of(self, query: str, now: datetime) -> Vector | None:
        """Return the vector a search for `query` would use, None without a model.

        Safe to call before taking the owner's lock for `search`: a remote embedder may take its time.
        """
        if self.vectors is None:
            return None
        question = read_question(query, now, self.conversations.speakers())
        return self.vectors.embed_query(question.meaning) if question.meaning else None

    def search(
        self,
        query: str,
        *,
        limit: int,
        now: datetime,
        allowed: Callable[[Memory], bool] | None = None,
        where: Where | None = None,
        explain: bool = False,
        vector: Vector | None = None,
    ) -> Ranking:
        """Rank the memories for a query.

        Args:
            query: Any text; one without content words answers with the most recent memories.
            limit: Most hits to return, at least 1.
            now: The moment ages are counted from, aware.
            allowed: Keeps memories for which it is true; None keeps all.
            where: What everything that is allowed meets; a hint by which fewer memories are looked at.
            explain: Also report what was left out, and why.
            vector: What `meaning_of` returned for this query; None asks the embedder here.
        """
        self.warm()
        question = read_question(query, now, self.conversations.speakers())
        cosines = None
        if self.vectors is not None and question.meaning and self.vectors.ready:
            if vector is None:
                vector = self.vectors.embed_query(question.meaning)
            cosines = None if vector is None else self.vectors.cosines(vector)
        if cosines is None and not question.weights:
            return rank_recent(self, limit=limit, now=now, allowed=allowed)
        sieve = None
        if allowed is not None:
            # Who wants an explanation wants to see all that is left out.
            sieve = Sieve(allowed, None if where is None or explain else self.facets.meeting(where))
        return rank(self, question, cosines, limit=limit, now=now, sieve=sieve, explain=explain)

    def _file(self, entry: Entry) -> None:
        memory = entry.memory
        terms = filed_terms(memory)
        entry.document = self.postings.add(terms)
        self.facets.add(entry.document, memory)
        entry.moment = moment_of(memory).timestamp()
        entry.length_share = fusion.length_share(len(terms))
        entry.tells_time = tells_time(terms)
        self.owners[entry.document] = memory.id
        speaker = speaker_of(memory.content)
        within = speakers_within(memory.content)
        if within:
            self.conversations.add_whole(memory.id, within)
        elif speaker is not None:
            self.conversations.add(
                memory.id,
                session=session_of(memory),
                speaker=speaker,
                moment=entry.moment,
                arrival=entry.arrival,
            )
        if self.vectors is not None:
            self.vectors.put(memory.id, embedded_texts(memory))

    def _unfile(self, entry: Entry) -> None:
        if entry.document is None:
            return
        self.postings.remove(entry.document, filed_terms(entry.memory))
        self.facets.remove(entry.document, entry.memory)
        del self.owners[entry.document]
        self.conversations.remove(entry.memory.id)
        entry.document = None


def _filed_by(memory: Memory) -> tuple[object, ...]:
    """Return what decides how a memory is filed: a change of anything else costs nothing."""
    return (memory.content, memory.category, tuple(memory.tags), moment_of(memory), memory.created_by_session)
