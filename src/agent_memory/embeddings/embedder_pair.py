"""Pair of embedders, for memories in several languages.

MiniLM is the better one for English, the multilingual model the only one for everything else. The vectors of both are
joined, so that the cosine of two joined vectors is a weighted mean of both cosines. Each model has its own rows in the
vector cache and its own folder in a segment: an agent that begins to use a pair keeps the vectors that it has.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from typing_extensions import override

from agent_memory.embeddings.local import LOCAL
from agent_memory.embeddings.multilingual import PACKAGE, MultilingualEmbedder, is_readable
from agent_memory.embeddings.protocol import Embedder, EmbedderIdentity, Provider
from agent_memory.files.vectors import concatenate_vectors
from agent_memory.language.questions import is_other_question

if TYPE_CHECKING:
    from agent_memory.embeddings.protocol import Matrix, Vector

ENGLISH_SHARE: Final = 0.36
"""Share of the multilingual model in the cosine of an English question.

On XQuAD from English to five languages, any@10 by cosine is .965 (.937 with .3, .657 by MiniLM alone); on facts.jsonl,
MRR is .927 (.944, .942)."""
FOREIGN_SHARE: Final = 0.85
"""The same for any other question.

On XQuAD from five languages to English, MRR is .859 (.837 with .64, .861 by the multilingual model alone). On 30 own
pairs it is .944 (.471 with reciprocal ranks: the list of MiniLM is noise)."""
THRESHOLD: Final = 0.1
"""Least cosine of a hit by its embeddings alone. On facts.jsonl 99 % of the answers are above it and 23 % of everything
else; of Arabic questions about English texts, 93 % and 11 % (89 % with .12)."""
SCALE: Final = 1.25
"""Factor of a cosine in a match grade. Of the best hits of 262 questions, 81 of them wrong, a limit of .28 takes .51 of
the wrong and .94 of the right ones for strong; .35 of MiniLM takes .53 and .91."""


class EmbedderPair(Embedder):
    """Embedder whose vectors join those of two embedders.

    Args:
        english: Embedder that is the better one for English.
        foreign: Embedder that reads other languages, too.

    Attributes:
        parts: Both embedders, in the order of their numbers in a vector.
    """

    cosine_scale = SCALE
    reads_latin_alone = False
    similarity_threshold = THRESHOLD

    def __init__(self, english: Embedder, foreign: Embedder) -> None:
        self.parts = (english, foreign)

    @staticmethod
    def reads_script(text: str) -> bool:
        """Return True if the multilingual model reads the script."""
        return is_readable(text)

    @property
    def identity(self) -> EmbedderIdentity:
        """Identity of the joined vectors, with those of the parts."""
        identities = tuple([part.identity for part in self.parts])
        dimension = sum(identity.dimension for identity in identities)
        return EmbedderIdentity("languages", "+".join(map(str, identities)), dimension, parts=identities)

    @property
    def is_known(self) -> bool:
        """True if `identity` loads nothing."""
        return all(getattr(part, "is_known", True) for part in self.parts)

    def missing(self) -> str | None:
        """Return a sentence about the first missing model, or None."""
        sentences = [getattr(part, "missing", lambda: None)() for part in self.parts]
        return next(filter(None, sentences), None)

    def embed_documents(self, texts: list[str]) -> Matrix:
        """Return one unit vector per text, shape (len(texts), dimension), float32.

        Raises:
            EmbeddingError: One of the models is missing, altered or cannot run.
        """
        return concatenate_vectors([part.embed_documents(texts) for part in self.parts])

    @override
    def embed_query(self, text: str) -> Vector:
        """Return the unit vector of a query, shape (dimension,), float32.

        Its product with a joined vector is the weighted mean of both cosines, times .96 or .82.

        Raises:
            EmbeddingError: As `embed_documents`.
        """
        import numpy as np  # nothing slow at import

        share = FOREIGN_SHARE if is_other_question(text) else ENGLISH_SHARE
        shares = (1 - share, share)
        pairs = zip(self.parts, shares, strict=True)
        query: Vector = np.concatenate([share * part.embed_query(text) for part, share in pairs])
        query /= np.float32(math.hypot(*shares))
        return query


LANGUAGES: Final = Provider(
    make=lambda settings: EmbedderPair(LOCAL.make(settings), MultilingualEmbedder()),
    needs=(*LOCAL.needs, PACKAGE),
    part="languages",
    seconds_a_text=LOCAL.seconds_a_text + 0.004,
)
