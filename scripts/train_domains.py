"""Train the domain classifier of the hub: seeds and labelled skills in, ``domain_weights.tsv`` out.

    python scripts/train_domains.py CORPUS [--check] [--words 6000]

CORPUS is a folder with the labelled skills at the paths that ``tests/data/hub/labels_*.jsonl`` name (the unpacked
``skills-md.tar.xz``). Multinomial logistic regression, no randomness but the seeded folds. Of the held-out labels
nothing is read but their paths, to be sure that no skill is in both sets. Temperature and threshold come from
out-of-fold guesses about all labelled skills of the training side. ``--check`` only prints those figures.
"""

import argparse
import json
import math
import sys
import tomllib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix
from sklearn.linear_model import LogisticRegression

from skill2env.domains import BIAS, SCALE, WEIGHTS_FILE, features
from skill2env.ingest import load_skill
from skill2env.records import Domain

ROOT = Path(__file__).resolve().parent.parent
LABELS = ROOT / "tests/data/hub"
DOMAINS = [domain.value for domain in Domain]
FOLDS = 5
PENALTY = 1e-4
ROUNDS = 200
MIN_DOCUMENTS = 2
LEAST_ACCURACY = 0.6
"""Below the confidence at which about so many of the guesses are right, a guess is called unsure."""

type Bag = dict[str, float]
type Array = Any


@dataclass(frozen=True)
class Examples:
    """Bags of words and the places of their domains."""

    bags: list[Bag]
    domains: list[int]

    def pick(self, places: Sequence[int]) -> "Examples":
        """Those at the given places."""
        return Examples([self.bags[at] for at in places], [self.domains[at] for at in places])

    def __add__(self, other: "Examples") -> "Examples":
        return Examples(self.bags + other.bags, self.domains + other.domains)


@dataclass(frozen=True)
class Model:
    """Vocabulary, rarity of each word, weights (words x domains) and bias."""

    words: dict[str, int]
    rarity: Array
    weights: Array
    bias: Array

    def scores(self, bags: Sequence[Bag]) -> Array:
        """A score for each bag and domain."""
        return matrix(bags, self.words, self.rarity) @ self.weights + self.bias


def read_labels(name: str) -> list[dict[str, Any]]:
    """The records of one file of labels."""
    return [json.loads(line) for line in (LABELS / name).read_text(encoding="utf-8").splitlines()]


def labelled(corpus: Path, name: str) -> Examples:
    """The skills of one file of labels."""
    rows = read_labels(name)
    bags: list[Bag] = []
    for row in rows:
        skill = load_skill(corpus / row["path"])
        bags.append(features(skill.name, skill.description, skill.body))
    return Examples(bags, [DOMAINS.index(row["domain"]) for row in rows])


def seeds() -> Examples:
    """The seeds of our own, each as the description of a skill without body."""
    found = tomllib.loads((ROOT / "scripts/domain_seeds.toml").read_text(encoding="utf-8"))
    pairs = [(line, domain) for domain, text in found.items() for line in text.strip().splitlines()]
    return Examples(
        [features("", line, "") for line, _ in pairs], [DOMAINS.index(domain) for _, domain in pairs]
    )


def vocabulary(examples: Examples, most: int) -> dict[str, int]:
    """The words that say most about the domain (mutual information), in alphabetical order."""
    total = len(examples.bags)
    sizes = Counter(examples.domains)
    documents: dict[str, Counter[int]] = {}
    for bag, domain in zip(examples.bags, examples.domains, strict=True):
        for word in bag:
            documents.setdefault(word, Counter())[domain] += 1
    scored: list[tuple[float, str]] = []
    for word, counts in documents.items():
        with_word = counts.total()
        if with_word < MIN_DOCUMENTS:
            continue
        gain = 0.0
        for domain, size in sizes.items():
            for both, this in ((counts[domain], with_word), (size - counts[domain], total - with_word)):
                if both and this:
                    gain += both / total * np.log(both * total / (this * size))
        scored.append((-gain, word))
    return {word: place for place, word in enumerate(sorted(word for _, word in sorted(scored)[:most]))}


def matrix(bags: Sequence[Bag], words: dict[str, int], rarity: Array) -> Array:
    """Sparse rows of length 1: damped counts times rarity."""
    sizes: list[float] = []
    places: list[int] = []
    ends = [0]
    for bag in bags:
        known = [(words[word], count) for word, count in bag.items() if word in words]
        row = [count * float(rarity[place]) for place, count in known]
        length = math.sqrt(math.sumprod(row, row)) or 1.0
        sizes += [size / length for size in row]
        places += [place for place, _ in known]
        ends.append(len(places))
    return csr_matrix((sizes, places, ends), shape=(len(bags), len(words)))


def train(examples: Examples, most: int) -> Model:
    """Penalised likelihood; every domain counts the same."""
    words = vocabulary(examples, most)
    documents = Counter(word for bag in examples.bags for word in bag if word in words)
    rarity = np.asarray([round(float(np.log(len(examples.bags) / documents[word])), 3) for word in words])
    domains = np.asarray(examples.domains)
    share = 1 / np.bincount(domains, minlength=len(DOMAINS))[domains]
    model: Any = LogisticRegression(C=1 / (PENALTY * len(domains)), max_iter=ROUNDS, tol=1e-4)
    model.fit(matrix(examples.bags, words, rarity), domains, sample_weight=share / share.mean())
    weights, bias = np.asarray(model.coef_).T, np.asarray(model.intercept_)
    return Model(words, rarity, np.rint(weights * SCALE) / SCALE, np.rint(bias * SCALE) / SCALE)


def softmax(scores: Array) -> Array:
    """Chances from scores, row by row."""
    raised = np.exp(scores - scores.max(axis=1, keepdims=True))
    return raised / raised.sum(axis=1, keepdims=True)


def macro_f1(truth: Array, guesses: Array) -> float:
    """Mean over the domains of the harmonic mean of precision and recall."""
    found = [
        2
        * float(((truth == at) & (guesses == at)).sum())
        / max(int((truth == at).sum() + (guesses == at).sum()), 1)
        for at in range(len(DOMAINS))
    ]
    return sum(found) / len(found)


def figures(truth: Array, guesses: Array) -> str:
    """Macro-F1 and share of right guesses, in words."""
    return f"macro-F1 {macro_f1(truth, guesses):.3f}, right {np.mean(guesses == truth):.3f}"


def out_of_fold(tested: Examples, always: Examples, most: int) -> Array:
    """Scores of each tested example by a model that has not seen it."""
    folds = np.arange(len(tested.bags)) % FOLDS
    np.random.default_rng(0).shuffle(folds)
    scores = np.zeros((len(tested.bags), len(DOMAINS)))
    for fold in range(FOLDS):
        seen = tested.pick(np.flatnonzero(folds != fold).tolist())
        unseen = np.flatnonzero(folds == fold)
        scores[unseen] = train(seen + always, most).scores([tested.bags[at] for at in unseen])
    return scores


def calibrate(scores: Array, truth: Array) -> tuple[float, float]:
    """Temperature of the best likelihood, and the least confidence around which enough guesses are right."""
    grid = [round(0.05 * step, 2) for step in range(4, 41)]
    rows = np.arange(len(truth))
    best = min(grid, key=lambda heat: -float(np.log(softmax(scores / heat)[rows, truth]).mean()))
    confidence, right = softmax(scores / best).max(axis=1), scores.argmax(axis=1) == truth
    for least in (round(0.02 * step, 2) for step in range(10, 40)):
        near = (confidence >= least) & (confidence < least + 0.2)
        if near.sum() < 10 or right[near].mean() >= LEAST_ACCURACY:
            return best, least
    return best, 0.5


def write(model: Model, temperature: float, unsure: float) -> str:
    """The weights file."""
    lines = [
        "# Weights of the domain classifier, by scripts/train_domains.py: word, rarity, weight by domain.",
        f"# temperature {temperature}",
        f"# unsure {unsure}",
        "\t".join(["word", "rarity", *DOMAINS]),
        "\t".join([BIAS, "0", *(str(round(number * SCALE)) for number in model.bias)]),
    ]
    for word, place in model.words.items():
        numbers = [round(number * SCALE) for number in model.weights[place]]
        lines.append("\t".join([word, f"{model.rarity[place]:g}", *map(str, numbers)]))
    return "\n".join(lines) + "\n"


def main() -> int:
    """Train, report, write; returns the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--check", action="store_true", help="print the figures, write nothing")
    parser.add_argument("--words", type=int, default=6000)
    chosen = parser.parse_args()
    names = ("labels_train.jsonl", "labels_domains.jsonl")
    paths = {row["path"] for name in names for row in read_labels(name)}
    if paths & {row["path"] for row in read_labels("labels_heldout.jsonl")}:
        print("a skill is labelled for training and held out", file=sys.stderr)
        return 1
    tested, always = labelled(chosen.corpus, names[0]) + labelled(chosen.corpus, names[1]), seeds()
    scores, truth = out_of_fold(tested, always, chosen.words), np.asarray(tested.domains)
    temperature, unsure = calibrate(scores, truth)
    confidence, guesses = softmax(scores / temperature).max(axis=1), scores.argmax(axis=1)
    sure = confidence >= unsure
    print(f"{len(truth)} skills out of fold: {figures(truth, guesses)}")
    print(f"temperature {temperature}, unsure below {unsure}: {np.mean(~sure):.3f} of them")
    print(f"of the rest: {figures(truth[sure], guesses[sure])}")
    for at, domain in enumerate(DOMAINS):
        hits, said, true = (
            int(n)
            for n in (((truth == at) & (guesses == at)).sum(), (guesses == at).sum(), (truth == at).sum())
        )
        print(f"| {domain} | {hits}/{said} = {hits / max(said, 1):.2f} | {hits / true:.2f} | {true} |")
    if not chosen.check:
        text = write(train(tested + always, chosen.words), temperature, unsure)
        target = ROOT / "src/skill2env" / WEIGHTS_FILE
        target.write_text(text, encoding="utf-8")
        print(f"{target.relative_to(ROOT)}: {len(text.encode()):,} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
