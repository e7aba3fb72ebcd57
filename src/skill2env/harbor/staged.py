"""A verifier that does more than one thing in its container: change files, run scripts, and grade several times.

It is Harbor's own verifier in every grading, so a task cannot tell the first of several gradings from the only one. It
works in the agent's container and in one of the verifier's own, with tests that are uploaded or baked in.
"""

import json
from pathlib import Path
from typing import Any, override

from harbor.models.verifier.result import VerifierResult
from harbor.utils.scripts import quote_shell_arg
from harbor.verifier.verifier import (
    RewardFileEmptyError,
    RewardFileNotFoundError,
    Verifier,
    VerifierOutputParseError,
)
from pydantic import ValidationError

from skill2env.harbor.outcome import read_head
from skill2env.harbor.stages import DONE_FILE, FOLDER, OUTPUT_FILE

_REFUSED = (RewardFileEmptyError, RewardFileNotFoundError, VerifierOutputParseError, ValidationError)
_PASSAGE = "/var/tmp/.passage"
"""Where files wait inside for a moment before their content is moved into place."""
_LOG_LIMIT = 64 * 1024
_KEPT = ("reward.json", "reward.txt", "test-stdout.txt")


class StagedVerifier(Verifier):
    """Plays stages (see `stages.Stage`); its result is the last reward that Harbor counted, else zero."""

    def __init__(self, *args: Any, stages: list[dict[str, Any]], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._stages = stages

    @override
    async def verify(self) -> VerifierResult:
        """Play all stages in their order.

        Raises:
            Exception: whatever Harbor raises for a failing container; refused rewards are noted instead.
        """
        last = VerifierResult(rewards={"reward": 0.0})
        for number, stage in enumerate(self._stages):
            place = self.trial_paths.trial_dir / FOLDER / f"{number:03}-{stage['name']}"
            place.mkdir(parents=True)
            for inside, source in stage["files"].items():
                await self._replace(Path(source), inside)
            code, output, failure = 0, "", ""
            if stage["script"]:
                done = await self.environment.exec(stage["script"], user=stage["user"])
                code, output = done.return_code, done.stdout or ""
            if stage["grade"]:
                try:
                    last = await self._grade(stage["workdir"])
                except _REFUSED as error:
                    failure = f"{type(error).__name__}: {error}"[:300]
                self._keep(place)
            (place / OUTPUT_FILE).write_text(output, encoding="utf-8")
            done_text = json.dumps({"code": code, "failure": failure})
            (place / DONE_FILE).write_text(done_text, encoding="utf-8")
        return last

    async def _grade(self, workdir: str) -> VerifierResult:
        if not workdir:
            return await super().verify()
        before = self.environment.task_env_config
        self.environment.task_env_config = before.model_copy(update={"workdir": workdir})
        try:
            return await super().verify()
        finally:
            self.environment.task_env_config = before

    async def _replace(self, source: Path, inside: str) -> None:
        """Give a file new content; one that exists keeps its owner, mode and inode."""
        await self.environment.upload_file(source, _PASSAGE)
        target = quote_shell_arg(inside, self.environment.os)
        await self.environment.exec(
            f"mkdir -p -- $(dirname -- {target}); cat {_PASSAGE} > {target}; rm -f {_PASSAGE}", user="root"
        )

    def _keep(self, place: Path) -> None:
        for name in _KEPT:
            data = read_head(self.trial_paths.verifier_dir / name, _LOG_LIMIT)
            if data is not None:
                (place / name).write_bytes(data)
