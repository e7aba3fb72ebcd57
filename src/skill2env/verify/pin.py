"""Gate `pin`: the base image that was run is the one that the Dockerfile names by digest."""

from skill2env.verify.dockerfile import base_reference
from skill2env.verify.gate import GateContext, Hit, Report, Subject
from skill2env.verify.reading import read_text

WHERE = "environment/Dockerfile"


def check(subject: Subject, context: GateContext) -> Report:  # noqa: ARG001
    """Compare the two digests."""
    if subject.image is None:
        return Report(not_run="the image was not built by this gate sequence")
    text = read_text(subject.task_dir / WHERE)
    written = base_reference(text) if text is not None else ""
    _, _, digest = written.rpartition("@")
    run = subject.image.base.digest
    values: dict[str, float | int | str | bool | None] = {"run": run}
    if not digest.startswith("sha256:"):
        return Report([Hit("pin-missing", f"FROM {written} names no digest; {run} was run", WHERE)], values)
    if digest != run:
        return Report([Hit("pin-mismatch", f"FROM names {digest}, but {run} was run", WHERE)], values)
    return Report(values={**values, "written": digest})
