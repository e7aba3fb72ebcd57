"""Ask a model about rollouts: several samples, bounded retries, a cache, and a record of every paid request.

A failed endpoint ends the run with its own error; what was judged before is in the cache. An answer that is malformed
after all tries is data: a judgement without a score.
"""

import asyncio
import json
import os
import statistics
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import Field, ValidationError

from skill2env.errors import BudgetReached, InfraError, UserError
from skill2env.judge.asking import CONSTITUTION, flags_of, once_more, question, read_answer
from skill2env.judge.records import Case, Evidence, Judgement, Sample
from skill2env.llm.dialogue import ChatModel, Completion, TokenUsage, Turn, estimate_turn
from skill2env.llm.prices import Price
from skill2env.llm.retrying import RetryingModel
from skill2env.llm.settings import ModelSettings, make_model
from skill2env.progress import Event, EventKind, Progress, silent
from skill2env.records import Record, digest_of
from skill2env.store.files import storage, write_text

_ASKING_VERSION = 1
"""Part of every key; raised when the form of the question changes in a way that the texts below do not show."""


class JudgeConfig(Record):
    """How rollouts are judged."""

    samples: int = Field(default=1, ge=1, le=15)
    """Answers a rollout; the score is their median."""
    tries: int = Field(default=3, ge=1, le=10)
    """Requests for one answer, until it is valid."""
    evidence: Evidence = Evidence.TRACE
    workers: int = Field(default=4, ge=1, le=256)
    """Rollouts judged at once."""
    max_usd: float = Field(default=0, ge=0)
    """Most that this run may cost; needs a price. 0 for no limit."""


@dataclass(slots=True)
class Judge:
    """A model with its settings. One call of `judge` at a time."""

    settings: ModelSettings
    config: JudgeConfig = field(default_factory=JudgeConfig)
    price: Price | None = None
    cache: Path | None = None
    """Folder of earlier judgements; None for none."""
    ledger: Path | None = None
    """File that gets one line a request: what was asked about, tokens, micro-dollars."""
    progress: Progress = silent
    spent: int = 0
    """Micro-dollars of the requests so far; not counted where the price is unknown."""
    reserved: int = 0

    def judge(self, cases: Sequence[Case]) -> list[Judgement]:
        """Judge cases side by side; the result has their order and does not depend on the number of workers.

        Raises:
            UserError: the key is missing, or a limit on cost is asked for without a price.
            BudgetReached: the limit is reached; what was judged is in the cache.
            ProviderError: the endpoint failed for good.
            InfraError: boundary ``storage``; the ledger cannot be written.
        """
        if self.config.max_usd and self.price is None:
            raise UserError(
                f"the model {self.settings.name} has no price, so its cost cannot be limited",
                hint="give its price in a TOML file with --prices",
            )
        return asyncio.run(self._judge_all(cases))

    def key_of(self, case: Case) -> str:
        """What a judgement of a case is kept under."""
        settings = self.settings
        asked = [[turn.role.value, turn.text] for turn in question(case, self.config.evidence)]
        return digest_of(
            {
                "version": _ASKING_VERSION,
                "constitution": CONSTITUTION,
                "asked": asked,
                "model": settings.name,
                "endpoint": [settings.api.value, settings.base_url],
                "sampling": [settings.temperature, settings.reasoning_effort, settings.max_output_tokens],
                "samples": self.config.samples,
                "tries": self.config.tries,
            }
        )

    async def _judge_all(self, cases: Sequence[Case]) -> list[Judgement]:
        model = RetryingModel(make_model(self.settings), attempts=self.settings.attempts)
        gate = asyncio.Semaphore(self.config.workers)

        failures: list[BaseException] = []

        async def one(case: Case) -> Judgement | None:
            async with gate:
                if failures:
                    return None
                try:
                    return await self._one(model, case)
                except (
                    Exception
                ) as error:  # what is under way is paid for: it ends before the first failure is raised
                    failures.append(error)
                    return None

        try:
            made = await asyncio.gather(*(one(case) for case in cases))
        finally:
            await asyncio.shield(model.close())
        if failures:
            raise failures[0]
        return [item for item in made if item is not None]

    async def _one(self, model: ChatModel, case: Case) -> Judgement:
        key = self.key_of(case)
        known = self._recall(key)
        if known is not None:
            self.progress(Event(EventKind.REUSED, case.id))
            return known.model_copy(update={"id": case.id, "group": case.group, "step": case.step})
        samples: list[Sample] = []
        usage = TokenUsage()
        for _ in range(self.config.samples):
            sample, used = await self._sample(model, case)
            samples.append(sample)
            usage += used
        scores = [sample.score for sample in samples if sample.score is not None]
        made = Judgement(
            id=case.id,
            group=case.group,
            step=case.step,
            score=statistics.median(scores) if 2 * len(scores) > len(samples) else None,
            samples=tuple(samples),
            flags=flags_of(case),
            evidence=self.config.evidence,
            model=self.settings.name,
            input_tokens=usage.input,
            output_tokens=usage.output,
            cached_tokens=usage.cached,
            micro_dollars=None if self.price is None else self.price.micro_dollars(usage),
            key=key,
        )
        self._store(made)
        told = "no valid answer" if made.score is None else f"{made.score:+g}"
        self.progress(Event(EventKind.DONE, case.id, detail=told))
        return made

    async def _sample(self, model: ChatModel, case: Case) -> tuple[Sample, TokenUsage]:
        turns = question(case, self.config.evidence)
        usage, problem = TokenUsage(), ""
        for number in range(1, self.config.tries + 1):
            reply = await self._ask(model, turns, case)
            usage += reply.usage
            answer = read_answer(reply.text)
            if not isinstance(answer, str):
                return Sample(score=answer.score, reason=answer.reason, tries=number), usage
            problem = answer if reply.text else f"the reply is empty ({reply.finish.value})"
            turns = once_more(turns, reply.turn, problem)
        return Sample(problem=problem, tries=self.config.tries), usage

    async def _ask(self, model: ChatModel, turns: Sequence[Turn], case: Case) -> Completion:
        """One request, with its cost set aside before and written down after."""
        price, aside = self.price, 0
        if price is not None and self.config.max_usd:
            upcoming = TokenUsage(sum(map(estimate_turn, turns)), self.settings.max_output_tokens)
            aside = price.micro_dollars(upcoming)
            if self.spent + self.reserved + aside > round(self.config.max_usd * 1e6):
                raise BudgetReached(
                    f"judging has cost ${self.spent / 1e6:.4f}, and one more request may exceed the limit",
                    hint="raise --max-usd and run again: what was judged is kept",
                )
        self.reserved += aside
        try:
            reply = await model.complete(turns)
        finally:
            self.reserved -= aside
        cost = None if price is None else price.micro_dollars(reply.usage)
        self.spent += cost or 0
        self._enter(case, reply, cost)
        return reply

    def _enter(self, case: Case, reply: Completion, cost: int | None) -> None:
        if self.ledger is None:
            return
        line = {
            "id": case.id,
            "model": self.settings.name,
            "input_tokens": reply.usage.input,
            "output_tokens": reply.usage.output,
            "cached_tokens": reply.usage.cached,
            "estimated": reply.estimated,
            "micro_dollars": cost,
        }
        with storage("writing the judge's ledger", self.ledger):
            descriptor = os.open(self.ledger, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
            with os.fdopen(descriptor, "a", encoding="utf-8") as stream:
                stream.write(json.dumps(line, sort_keys=True) + "\n")

    # ---------------------------------------------------------------------------------------- cache

    def _path(self, key: str) -> Path | None:
        name = key.removeprefix("sha256:")
        return self.cache / name[:2] / f"{name}.json" if self.cache is not None else None

    def _recall(self, key: str) -> Judgement | None:
        path = self._path(key)
        if path is None:
            return None
        try:
            found = Judgement.model_validate_json(path.read_bytes())
        except (OSError, ValidationError):
            return None
        if found.key != key or found.score is None:
            return None
        with suppress(OSError):
            os.utime(path)  # it counts as used now
        return found

    def _store(self, made: Judgement) -> None:
        """Keep a judgement that has a score; a full disk costs the next run its money and no more."""
        path = self._path(made.key)
        if path is None or made.score is None:
            return
        with suppress(OSError, InfraError):
            path.parent.mkdir(parents=True, exist_ok=True)
            write_text(path, made.model_dump_json())
