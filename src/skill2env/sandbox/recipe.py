"""A recipe: what each layer of an image needs, with every variable resolved. Knows no files and no sandbox."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from skill2env.sandbox.instructions import Place

DEFAULT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@dataclass(frozen=True, slots=True)
class ImageConfig:
    """How commands run in an image: what the Dockerfile says, over the base."""

    env: Mapping[str, str]
    workdir: str
    """Absolute; ``/`` when the Dockerfile sets none."""
    user: str
    """Name or uid; empty for root."""
    command: tuple[str, ...] = ()
    entrypoint: tuple[str, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict[str, str])
    recorded: tuple[tuple[str, str], ...] = ()
    """EXPOSE, VOLUME, HEALTHCHECK and the like, as written."""


@dataclass(frozen=True, slots=True)
class RunStep:
    """A command to run as `user` in `workdir`; without a network when `offline`."""

    place: Place
    argv: tuple[str, ...]
    env: Mapping[str, str]
    workdir: str
    user: str
    offline: bool = False
    mounts: tuple[str, ...] = ()
    """Folders that start empty and that the layer does not keep."""


@dataclass(frozen=True, slots=True)
class CopyStep:
    """Files (patterns) and literal files (name, text) to `target`, absolute; a ``/`` at its end means a folder."""

    place: Place
    sources: tuple[str, ...]
    files: tuple[tuple[str, str], ...]
    target: str
    owner: str
    mode: int | None
    unpack: bool
    origin: int | str | None = None
    """Number of the stage, or reference of the image, to copy from; None for the build context."""


@dataclass(frozen=True, slots=True)
class WorkdirStep:
    """A folder to make when it is missing; what is made belongs to `user` (empty for root)."""

    place: Place
    path: str
    user: str = ""


Step = RunStep | CopyStep | WorkdirStep


@dataclass(frozen=True, slots=True)
class Stage:
    """One ``FROM`` and what follows it."""

    base: int | str
    """Number of the earlier stage it goes on from, or image reference."""
    place: Place
    """Where FROM stands."""
    steps: tuple[Step, ...]
    config: ImageConfig


@dataclass(frozen=True, slots=True)
class Recipe:
    """A Dockerfile with nothing left to look up but files. The last stage is the image."""

    stages: tuple[Stage, ...]

    @property
    def config(self) -> ImageConfig:
        """How commands run in the image."""
        return self.stages[-1].config

    @property
    def steps(self) -> tuple[Step, ...]:
        """Steps of the last stage alone."""
        return self.stages[-1].steps

    @property
    def root(self) -> Stage:
        """The stage whose base is the image that everything in the last stage stands on."""
        stage = self.stages[-1]
        while isinstance(stage.base, int):
            stage = self.stages[stage.base]
        return stage

    @property
    def base(self) -> str:
        """Reference of the image that the last stage stands on."""
        base = self.root.base
        assert isinstance(base, str)
        return base

    @property
    def place(self) -> Place:
        """Where that image is named."""
        return self.root.place
