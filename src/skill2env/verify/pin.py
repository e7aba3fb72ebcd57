"""Gate `pin`: the base image that was run is the one that the Dockerfile names by digest."""

from skill2env.verify.dockerfile import base_reference
from skill2env.verify.gate import GateContext, Hit, Report, Subject
from skill2env.verify.reading import read_text

WHERE = "environment/Dockerfile"


def check(subject: Subject, context: GateContext) -> Report:
    """Compare the two digests; a reference that the caller has mapped to our base is run as that base."""
    if subject.image is None:
        return Report(not_run="the image was not built by this gate sequence")
    if not subject.image.base.name:
        return Report(not_run="the image stands on none of the catalog")
    text = read_text(subject.task_dir / WHERE)
    written = base_reference(text) if text is not None else ""
    _, _, digest = written.rpartition("@")
    run = subject.image.base.digest
    values: dict[str, float | int | str | bool | None] = {"run": run}
    if not digest.startswith("sha256:"):
        return Report([Hit("pin-missing", f"FROM {written} names no digest; {run} was run", WHERE)], values)
    if digest != run and _is_mapped(written, context):
        return Report(values={**values, "written": digest, "stood_in": True})
    if digest != run:
        return Report([Hit("pin-mismatch", f"FROM names {digest}, but {run} was run", WHERE)], values)
    return Report(values={**values, "written": digest})


def _is_mapped(written: str, context: GateContext) -> bool:
    without_digest = written.partition("@")[0]
    return bool({written, without_digest} & context.image_map.keys())
