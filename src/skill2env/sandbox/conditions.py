"""Unusual surroundings for a trial: what a task must bear without another verdict.

A script makes them in each container before anything else runs, and proves there that they bite: exit code 77 says that
they cannot in this image, with the reason as its last line.
"""

from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field

from skill2env.errors import Boundary, InfraError
from skill2env.sandbox.box import Box
from skill2env.sandbox.command import log_tail
from skill2env.sandbox.layout import Bind

NOT_APPLICABLE_CODE = 77
_TIMEOUT_SEC = 60.0


class NotApplicable(InfraError):
    """The conditions cannot be made in this image; the trial says nothing."""

    def __init__(self, why: str) -> None:
        """Say why, in a few words."""
        super().__init__(Boundary.SANDBOX, f"not applicable: {why}", transient=False)
        self.why = why


class Conditions(BaseModel):
    """How a trial's containers differ from usual ones."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    script: str = Field(
        default="", description="Run with bash as root in each container, before anything else."
    )
    files: dict[str, str] = Field(
        default_factory=dict, description="Absolute path inside -> file of the host, copied there first."
    )
    env: dict[str, str] = Field(
        default_factory=dict, description="Variables of every command; what image and task set wins."
    )
    visible_cpus: int = Field(
        default=0, ge=0, description="Processors that programs see; 0 for the usual number."
    )
    hostname: str = Field(default="", description="Name of the machine; empty for the usual one.")
    proc: dict[str, str] = Field(
        default_factory=dict,
        description="Name of a file below /proc -> file of the host that is shown there; the sandbox's user reads it.",
    )

    folders: dict[str, str] = Field(
        default_factory=dict,
        description="Absolute path inside -> folder of the host that is shown there read-only, whatever is copied "
        "there later; the sandbox's user reads it.",
    )

    @property
    def binds(self) -> tuple[Bind, ...]:
        """What has to be mounted when the box starts."""
        files = {f"/proc/{name}": source for name, source in self.proc.items()} | self.folders
        return tuple(Bind(Path(source), target) for target, source in sorted(files.items()))

    def make(self, box: Box) -> None:
        """Change a box that has just started.

        Raises:
            NotApplicable: the script says so.
            InfraError: it failed.
        """
        for target, source in self.files.items():
            box.put(Path(source), target)
        if self.visible_cpus:
            self._check_cpus(box)
        if self.hostname:
            self._check(box, ["uname", "-n"], self.hostname.encode() + b"\n", "the host name")
        for name, source in sorted(self.proc.items()):
            self._check(box, ["cat", f"/proc/{name}"], Path(source).read_bytes(), f"/proc/{name}")
        for target in sorted(self.folders):
            self._check_folder(box, target)
        if self.script:
            self._run(box)

    def _check_folder(self, box: Box, target: str) -> None:
        test = '[ -n "$(ls -A "$1")" ] && ! (: > "$1/.written") 2>/dev/null'
        if box.exec(["/bin/bash", "-c", test, "test", target], timeout_sec=_TIMEOUT_SEC).return_code:
            raise NotApplicable(f"{target} cannot be made read-only here")

    def _check_cpus(self, box: Box) -> None:
        told = box.exec(["nproc"], timeout_sec=_TIMEOUT_SEC).stdout.decode(errors="replace").strip()
        if told != str(self.visible_cpus):
            raise NotApplicable(f"programs see {told or 'an unknown number of'} processors here")

    def _check(self, box: Box, command: list[str], wanted: bytes, what: str) -> None:
        if box.exec(command, timeout_sec=_TIMEOUT_SEC).stdout != wanted:
            raise NotApplicable(f"{what} cannot be changed here")

    def _run(self, box: Box) -> None:
        done = box.exec(
            ["/bin/bash", "-c", self.script], env=self.env, timeout_sec=_TIMEOUT_SEC, merge_stderr=True
        )
        told = log_tail(done.stdout).strip()
        if done.return_code == NOT_APPLICABLE_CODE:
            raise NotApplicable(told.rpartition("\n")[2] or "the script gave no reason")
        if done.return_code:
            raise InfraError(
                Boundary.SANDBOX,
                f"the conditions of a probe could not be made (exit code {done.return_code}): {told[-500:]}",
                transient=False,
            )
