"""Gate `metrics`: every metric checks a sentence that the agent was shown."""

from collections.abc import Iterator, Mapping

from skill2env.harbor.rewards import TOTAL
from skill2env.verify.config import facts_of
from skill2env.verify.gate import GateContext, Hit, Report, Stage, Subject
from skill2env.verify.reading import read_text

MIN_METRICS, MAX_METRICS = 2, 6
MIN_SENTENCE = 10
"""Shorter quotes occur everywhere and prove nothing; characters."""
WHERE = "instruction.md"


def check(subject: Subject, context: GateContext) -> Report:  # noqa: ARG001
    """Look every metric's sentence up in the instruction."""
    sources = metric_sources(subject)
    if sources is None:
        place = "contract.json" if subject.stage is not Stage.TASK else "task.toml"
        return Report([Hit("metric-map-missing", "no metric names the sentence that it checks", place)])
    instruction = read_text(subject.task_dir / WHERE)
    hits = [*_count(sources), *_quotes(sources, instruction or "")]
    return Report(hits, {"metrics": len(sources)})


def metric_sources(subject: Subject) -> Mapping[str, str] | None:
    """Metric to quoted sentence, from the contract or from ``[metadata.skill2env.metric_sources]``; None without."""
    if subject.contract is not None:
        return {metric.name: metric.sentence for metric in subject.contract.metrics}
    facts = facts_of(subject)
    found = None if isinstance(facts, Hit) else facts.metadata.get("metric_sources")
    if not isinstance(found, dict) or not found:
        return None
    return {str(name): str(sentence) for name, sentence in found.items()}  # pyright: ignore[reportUnknownArgumentType,reportUnknownVariableType]


def _count(sources: Mapping[str, str]) -> Iterator[Hit]:
    named = [name for name in sources if name != TOTAL]
    if not MIN_METRICS <= len(named) <= MAX_METRICS:
        yield Hit("metric-count", f"{len(named)} metrics, not {MIN_METRICS} to {MAX_METRICS}")
    if TOTAL in sources:
        yield Hit("metric-count", f"{TOTAL!r} is the mean of the metrics and checks nothing itself")


def _quotes(sources: Mapping[str, str], instruction: str) -> Iterator[Hit]:
    text = _plain(instruction)
    for name, sentence in sources.items():
        quote = _plain(sentence)
        if len(quote) < MIN_SENTENCE:
            yield Hit(
                "metric-unsourced", f"metric {name}: the quote {quote!r} is too short to be a sentence", WHERE
            )
        elif quote not in text:
            yield Hit(
                "metric-unsourced", f"metric {name}: the instruction does not say {_cut(quote)!r}", WHERE
            )


def _plain(text: str) -> str:
    """Line breaks are layout, everything else is wording."""
    return " ".join(text.split())


def _cut(text: str) -> str:
    return text if len(text) <= 120 else text[:117] + "..."
