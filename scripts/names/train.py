"""Train the model of names: `python -m scripts.names.train --wnut DIR --tweets DIR [--with-dev]`.

Needs the package python-crfsuite. Without `--with-dev` the development part is only measured; the model that ships is
trained with it. The test part is not read.
"""

from __future__ import annotations

import argparse
import importlib
import json
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from agent_memory.entities.features import features_of
from agent_memory.entities.tagger import LABELS, Chain, word_lists
from scripts.names.corpora import broad_twitter, labelled, wnut
from scripts.names.lists import DATA, write

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from scripts.names.corpora import Sentence

SETTINGS: Final = {"c1": 2.0, "c2": 0.05, "max_iterations": 120, "feature.possible_transitions": True,
                   "feature.minfreq": 2}  # fmt: skip
RELUCTANCE: Final = -0.85
_LEAST_WEIGHT: Final = 0.02


def main() -> None:
    """Train, print how well it does on the development part, and write the model."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--wnut", type=Path, required=True, help="folder of leondz/emerging_entities_17")
    parser.add_argument("--tweets", type=Path, required=True, help="folder of GateNLP/broad_twitter_corpus")
    parser.add_argument("--with-dev", action="store_true", help="train with the development part, too, and write")
    parser.add_argument("--c1", type=float, default=SETTINGS["c1"])
    options = parser.parse_args()
    development = wnut(options.wnut / "emerging.dev.conll")
    sentences = wnut(options.wnut / "wnut17train.conll") + broad_twitter(options.tweets)
    model = trained(sentences + development * options.with_dev, {**SETTINGS, "c1": options.c1})
    print(len(model.weights), "features")
    if options.with_dev:
        save(model)
        return
    for reluctance in (0.0, -0.25, -0.5, -0.75, -1.0):
        print(reluctance, "precision {:.3f} recall {:.3f} F1 {:.3f}".format(*score(model, reluctance, development)))


def trained(sentences: Iterable[Sentence], settings: dict[str, Any]) -> Chain:
    """Return the model of what is labelled."""
    crfsuite = importlib.import_module("pycrfsuite")
    trainer = crfsuite.Trainer(verbose=False)
    for sentence in sentences:
        words, labels = labelled(sentence)
        if words:
            trainer.append(features_of(words, word_lists()), labels)
    trainer.set_params(settings)
    with tempfile.TemporaryDirectory() as folder:
        trainer.train(f"{folder}/names.crf")
        tagger = crfsuite.Tagger()
        tagger.open(f"{folder}/names.crf")
        return chain_of(tagger.info())


def chain_of(info: Any) -> Chain:
    """Return a trained model as the library reads it."""
    weights: dict[str, list[float]] = {}
    for (feature, label), weight in info.state_features.items():
        if abs(weight) >= _LEAST_WEIGHT:
            weights.setdefault(feature, [0.0, 0.0, 0.0])[LABELS.index(label)] = weight
    steps = [[info.transitions.get((one, two), 0.0) for two in LABELS] for one in LABELS]
    steps[0][2] = -1e9
    return Chain(
        {feature: (each[0], each[1], each[2]) for feature, each in weights.items()},
        tuple(tuple(step) for step in steps),  # type: ignore[arg-type]
        RELUCTANCE,
    )


def save(model: Chain) -> None:
    """Write the model as data of the package, in hundredths."""
    weights = {name: [round(each * 100) for each in scores] for name, scores in sorted(model.weights.items())}
    steps = [[round(each, 3) for each in step] for step in model.steps]
    text = {"reluctance": model.reluctance, "steps": steps, "weights": weights}
    write(DATA / "model.json.gz", json.dumps(text, ensure_ascii=False, separators=(",", ":")))


def score(model: Chain, reluctance: float, sentences: Sequence[Sentence]) -> tuple[float, float, float]:
    """Return precision, recall and F1 of whole names, whatever their kind."""
    chain = Chain(model.weights, model.steps, reluctance)
    right = said = wanted = 0
    for sentence in sentences:
        words, labels = labelled(sentence)
        gold = _spans("".join(labels))
        told = _spans(chain.best(chain.scores(features_of(words, word_lists()))))
        right, said, wanted = right + len(gold & told), said + len(told), wanted + len(gold)
    precision, recall = right / max(said, 1), right / max(wanted, 1)
    return precision, recall, 2 * right / max(said + wanted, 1)


def _spans(labels: str) -> set[tuple[int, int]]:
    found = set()
    for at, label in enumerate(labels):
        if label == "B":
            end = at + 1
            while end < len(labels) and labels[end] == "I":
                end += 1
            found.add((at, end))
    return found


if __name__ == "__main__":
    main()
