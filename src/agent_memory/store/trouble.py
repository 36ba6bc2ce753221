"""What makes answers weaker than they could be, with the reason and what to do, for a person."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agent_memory.models import SearchResults

_EXPLAINED: Final = "`agent-memory doctor` tells more."
_SOON: Final = "Searching again in a moment finds more."


@dataclass(frozen=True, slots=True)
class Trouble:
    """One thing that does not work; memories are stored and found all the same.

    Attributes:
        component: embedder, engine or audit.
        code: Machine-readable word.
        message: What does not work.
        recovery: What to do.
    """

    component: str
    code: str
    message: str
    recovery: str = _EXPLAINED

    @property
    def sentence(self) -> str:
        """Message and what to do."""
        return f"{self.message} {self.recovery}"


def trouble_of_embedder(state: Mapping[str, Any]) -> Trouble | None:
    """Return what is wrong with search by embeddings; None while it works, is being loaded, or was switched off.

    Args:
        state: What `MemoryStorage.embedding_status` says.
    """
    if state.get("status") == "off" and not state.get("chosen"):
        return Trouble("embedder", "no_embedder", f"There is no search by meaning: {state['reason']}", "")
    if state.get("status") == "failing":
        problem = str(state["problem"]).rstrip(".")
        what = problem if state.get("loaded", True) else f"model not loaded ({problem})"
        message = f"Search by meaning does not work: {what}."
        return Trouble(
            "embedder", str(state.get("code", "embedder_failed")), message, state.get("recovery", _EXPLAINED)
        )
    if state.get("warning"):
        return Trouble("embedder", "reports", str(state["warning"]), "")
    return None


def trouble_of_engine(state: Mapping[str, Any]) -> Trouble | None:
    """Return what is wrong with the vector engine, from its own description."""
    problem = state.get("problem")
    if not problem:
        return None
    message = (
        f"The vector engine is not in use: {str(problem).rstrip('.')}. Searches compare with every memory instead."
    )
    return Trouble("engine", "engine", message)


def weakness(results: SearchResults, state: Mapping[str, Any]) -> str | None:
    """Return why an answer is weaker than it could be and what to do, None when it is not.

    Args:
        results: The answer.
        state: What `MemoryStorage.embedding_status` says.
    """
    if results.mode == "keyword" and (trouble := trouble_of_embedder(state)) is not None and trouble.code != "reports":
        return trouble.sentence.strip()
    pending = int(state.get("pending", 0))
    if results.mode == "keyword" and state.get("status") in {"loading", "found"}:
        left = f", and {_texts(pending)} still to be read" if pending else ""
        return f"Searched by words alone: the embedding model is being loaded{left}. {_SOON}"
    if pending and state.get("status") in {"loading", "ready"}:
        searched = (
            "Searched by words alone" if results.mode == "keyword" else "Some memories were searched by words alone"
        )
        return f"{searched}: {_texts(pending)} still to be read by meaning. {_SOON}"
    return None


def _texts(count: int) -> str:
    return "1 text is" if count == 1 else f"{count:,} texts are"
