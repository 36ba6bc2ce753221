"""Train the model of what kind a name is: `python -m scripts.names.train_kinds --wnut DIR --tweets DIR [--with-dev]`.

As `scripts.names.train`; what the other corpus has no kind for is not learnt from it.
"""

from __future__ import annotations

import argparse
import importlib
import json
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from agent_memory.entities.kinds import LEARNT, kind_features
from agent_memory.entities.tagger import word_lists
from agent_memory.entities.tokens import tokens_of
from scripts.names.corpora import broad_twitter, wnut
from scripts.names.lists import DATA, write

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from scripts.names.corpora import Sentence

KIND_OF: Final = {"person": "person", "location": "place", "group": "organisation", "corporation": "organisation",
                  "product": "product", "creative-work": "other"}  # fmt: skip
_LEAST_WEIGHT: Final = 0.02


def main() -> None:
    """Train, print the share of right kinds in the development part, and write the weights."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--wnut", type=Path, required=True)
    parser.add_argument("--tweets", type=Path, required=True)
    parser.add_argument("--with-dev", action="store_true")
    options = parser.parse_args()
    development = wnut(options.wnut / "emerging.dev.conll")
    own = wnut(options.wnut / "wnut17train.conll") + development * options.with_dev
    weights = trained([*_examples(own * 2), *_examples(broad_twitter(options.tweets))])
    if options.with_dev:
        rows = {name: [round(each * 100) for each in row] for name, row in sorted(weights.items())}
        write(DATA / "kinds.json.gz", json.dumps(rows, ensure_ascii=False, separators=(",", ":")))
        return
    told = [(_told(weights, features), kind) for features, kind in _examples(development)]
    print(f"{sum(one == two for one, two in told) / len(told):.3f} of {len(told)} kinds are right")


def _examples(sentences: Iterable[Sentence]) -> Iterator[tuple[list[str], str]]:
    for sentence in sentences:
        tokens = tokens_of(sentence.text)
        words = [token.word for token in tokens]
        for start, end, kind in sentence.names:
            inside = [at for at, token in enumerate(tokens) if token.start < end and token.end > start]
            if inside:
                yield kind_features(words, inside[0], inside[-1] + 1, word_lists()), KIND_OF[kind]


def trained(examples: Iterable[tuple[list[str], str]]) -> dict[str, list[float]]:
    """Return the weight of each feature for each kind."""
    crfsuite = importlib.import_module("pycrfsuite")
    trainer: Any = crfsuite.Trainer(verbose=False)
    for features, kind in examples:
        trainer.append([features], [kind])
    trainer.set_params({"c1": 0.3, "c2": 0.3, "max_iterations": 100, "feature.minfreq": 2})
    with tempfile.TemporaryDirectory() as folder:
        trainer.train(f"{folder}/kinds.crf")
        tagger = crfsuite.Tagger()
        tagger.open(f"{folder}/kinds.crf")
        weights: dict[str, list[float]] = {}
        for (feature, kind), weight in tagger.info().state_features.items():
            if abs(weight) >= _LEAST_WEIGHT:
                weights.setdefault(feature, [0.0] * len(LEARNT))[LEARNT.index(kind)] = weight
    return weights


def _told(weights: dict[str, list[float]], features: list[str]) -> str:
    totals = [sum(weights[feature][at] for feature in features if feature in weights) for at in range(len(LEARNT))]
    return LEARNT[totals.index(max(totals))]


if __name__ == "__main__":
    main()
