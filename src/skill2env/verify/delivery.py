"""What the reference solution delivers, as files that a stage can put where the verifier looks."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

from skill2env.sandbox.conditions import NotApplicable
from skill2env.sandbox.tools import host_file
from skill2env.verify.config import facts_of
from skill2env.verify.gate import GateContext, Hit, Subject
from skill2env.verify.study import Study, study_of

FILES = 60
"""More delivered files than this are not touched one by one."""


@dataclass(frozen=True, slots=True)
class Delivery:
    """Files that the verifier can see and that the solution made or changed."""

    files: Mapping[str, bytes]
    """By path, sorted."""
    made: frozenset[str]
    """Those that did not exist before."""
    study: Study

    def put(self, changed: Mapping[str, bytes] | None = None) -> dict[str, str]:
        """For `Stage.files`: the files as delivered, or `changed` ones."""
        files = self.files if changed is None else changed
        return {path: str(host_file("delivered", data)) for path, data in files.items()}


def delivery_of(subject: Subject, context: GateContext) -> Delivery:
    """What the reference solution delivers.

    Raises:
        NotApplicable: no file, too many files, or one that is too large.
        InfraError: the machine failed.
    """
    study = study_of(subject, context)
    facts = facts_of(subject)
    assert not isinstance(facts, Hit)  # a study needs facts
    places = facts.artifacts if facts.mode == "separate" else ("/",)
    files = {
        path: file.data
        for path, file in sorted(study.outputs.items())
        if any(PurePosixPath(path).is_relative_to(place) for place in places)
    }
    if not files:
        raise NotApplicable("the reference solution delivers no file that the verifier sees")
    if len(files) > FILES:
        raise NotApplicable(f"the reference solution delivers {len(files)} files")
    contents = {path: data for path, data in files.items() if data is not None}
    if len(contents) < len(files):
        raise NotApplicable("a delivered file is too large to be put back")
    return Delivery(contents, frozenset(contents) - frozenset(study.originals), study)
