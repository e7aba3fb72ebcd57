"""Gate `build`: the agent's image, and the verifier's own when it has one, build from what the task holds.

A build that fails twice the same way while the mirror answers is the task's fault; everything else is the machine's
(`sandbox.images` tells them apart).
"""

from pathlib import Path

from skill2env.errors import Boundary, InfraError
from skill2env.sandbox.containers import build_image, resolve_image
from skill2env.sandbox.images import BuiltImage
from skill2env.sandbox.instructions import BuildFailed, NeedsDocker
from skill2env.verify.config import facts_of
from skill2env.verify.gate import BUILDING, GateContext, Hit, Report, Subject

NAME = "build"
LOG_LIMIT = 1024 * 1024
"""Bytes of a build log that are kept (the end of it)."""


def check(subject: Subject, context: GateContext) -> Report:
    """Build; later gates find the agent's image in `subject.image`."""
    facts = facts_of(subject)
    if isinstance(facts, Hit):
        return Report([facts])
    if context.sandbox.name not in BUILDING:
        return Report(not_run=f"{context.sandbox.name} builds the image within each trial")
    if facts.compose:
        return Report(not_run="compose services are built by an engine")
    environment = subject.task_dir / "environment"
    if facts.docker_image and not (environment / "Dockerfile").is_file():
        subject.image = resolve_image(
            facts.docker_image, image_map=context.image_map, kind=context.sandbox.name
        )
        return Report(values={"base": subject.image.base.digest})
    built = _build(environment, context, facts.build_timeout_sec, "environment")
    if isinstance(built, Hit):
        return Report([built])
    subject.image = built
    values: dict[str, float | int | str | bool | None] = {
        "base": built.base.digest,
        "layers": built.height,
    }
    if facts.verifier_image and (subject.task_dir / "tests" / "Dockerfile").is_file():
        own = _build(subject.task_dir / "tests", context, facts.build_timeout_sec, "tests")
        if isinstance(own, Hit):
            return Report([own], values)
        values["verifier_base"] = own.base.digest
    return Report(values=values)


def _build(folder: Path, context: GateContext, timeout_sec: float, where: str) -> BuiltImage | Hit:
    def once() -> BuiltImage:
        kind = context.sandbox.name
        return build_image(folder, image_map=context.image_map, timeout_sec=timeout_sec, kind=kind)

    try:
        return once()
    except BuildFailed as first:
        if isinstance(first, NeedsDocker):
            raise InfraError(
                Boundary.SANDBOX,
                f"this sandbox cannot build {where}/Dockerfile: {first.step}: {first.log.strip()[:300]}",
                hint="run it with --sandbox docker",
                transient=False,
            ) from first
        try:
            return once()
        except BuildFailed as failure:
            log = (
                failure.log
                if failure.step == first.step
                else f"{first.log}\n--- second try ---\n{failure.log}"
            )
            target = context.evidence / NAME / f"{where}.log"
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(log[-LOG_LIMIT:], encoding="utf-8", errors="replace")
            last = next((line for line in reversed(log.splitlines()) if line.strip()), "no output")
            return Hit("build-failed", f"step {failure.step}: {last.strip()[:300]}", f"{where}/Dockerfile")
