"""RunConfig: every setting of a run, with meaning and unit, from a TOML file and from flags (flags win).

`RunConfig.digest()` covers exactly what determines results. Paths, the number of workers, the budget and how often
the surroundings are tried again are left out: they decide whether and when a result is reached, never which one.
"""

import difflib
import tomllib
from collections.abc import Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Any, Literal, cast, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic_core import ErrorDetails

from skill2env.errors import UserError
from skill2env.records import digest_of


class Part(BaseModel):
    """Base of the configuration: immutable, unknown keys forbidden."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class SolutionMode(StrEnum):
    """What the solution session may see."""

    INFORMED = "informed"
    """The session sees tests/, as an ordinary maintainer would."""
    BLIND = "blind"
    """tests/ is hidden, so a passing solution also proves that the instruction alone specifies the task."""


class CheckLevel(StrEnum):
    """How much is checked before a task is published; see `skill2env.verify.gate.Level`."""

    STANDARD = "standard"
    """Every gate, with the probes that find most for their time."""
    STRICT = "strict"
    """Every gate with every probe, for benchmarks; about three times as many trials."""


class AuthorConfig(Part):
    """Who plans and creates."""

    name: str = ""
    """``recorded``, ``code`` or another name of `authors.registry`, or one of your own as ``module:factory`` or
    ``FILE.py:factory``, the file relative to the configuration file. Empty: ``recorded`` when recordings are given,
    else ``code``."""
    model: str = ""
    """Model for authors that call one, as ``provider/model``. Empty for authors without a model."""
    recordings: Path | None = None
    """Folder of recorded sessions for the ``recorded`` author. Relative to the configuration file."""
    accept_stale: bool = False
    """Replay recordings of a skill that has changed since."""
    record_to: Path | None = None
    """Folder in which every finished session is stored, for ``recorded`` to replay; none stores nothing. Relative to
    the configuration file."""
    api: str = ""
    """Wire format of the model's endpoint: ``openai-chat``, ``openai-responses`` or ``anthropic``. Empty to choose by
    the model's name."""
    api_base: str = ""
    """Address of the endpoint, ``http://HOST:PORT/v1``. Empty for the public one."""
    key_variable: str = ""
    """Environment variable that holds the key. Empty for ``OPENAI_API_KEY`` or ``ANTHROPIC_API_KEY``."""
    prices: Path | None = None
    """TOML file with prices of one's own, dollars per million tokens. Relative to the configuration file."""
    network: Literal["no-network", "public", "allowlist"] = "no-network"
    """Network of authoring sessions, through the logged proxy. Tasks never have one."""
    hosts: tuple[str, ...] = ()
    """Hosts that an ``allowlist`` opens."""
    requests_at_once: int = Field(default=8, ge=1, le=1024)
    """Requests to one endpoint at once, however many workers there are; for ``harbor:NAME`` sessions at once."""
    timeout_sec: float = Field(default=3600, gt=0)
    """Longest authoring session, seconds."""
    agent_dockerfile: Path | None = None
    """Dockerfile (``FROM task``) that puts a command-line agent into the session's image. Relative to the configuration
    file."""
    options: dict[str, Any] = Field(default_factory=dict[str, Any])
    """Further options of an agent as Harbor takes them, such as ``max_turns``."""


class AssetConfig(Part):
    """Public files that contracts name: downloaded by the host, never by a task."""

    download: bool = True
    """Whether the host may download. Off, only what the cache holds can be staged."""
    hosts: tuple[str, ...] = ()
    """Hosts that may be asked, names or ``*.suffix``; empty for every public host."""
    private_hosts: tuple[str, ...] = ()
    """``HOST:PORT`` of this machine or a private network that may be asked as well, also without TLS."""
    max_file_mb: int = Field(default=16, ge=1, le=4096)
    """Largest file, MiB."""
    max_total_mb: int = Field(default=48, ge=1, le=16384)
    """Largest sum of the assets of one task, MiB."""
    timeout_sec: float = Field(default=120, gt=0)
    """Longest download of one file, seconds; those of one task together take at most four times as long."""
    licences: Path | None = None
    """Licence policy in TOML, as for `skill2env hub sync`. Empty for permissive terms, proved by a text beside the
    file. Relative to the configuration file."""


class PlanConfig(Part):
    """How much is made of each skill."""

    workflows: int = Field(default=3, ge=1, le=50)
    """Workflows asked for per skill; an author may find fewer."""
    variants: int = Field(default=1, ge=1, le=100)
    """Tasks per workflow, each with its own axes."""


class CreateConfig(Part):
    """How a candidate is made."""

    solution: SolutionMode = SolutionMode.INFORMED
    """Whether the solution session sees tests/."""
    max_repairs: int = Field(default=2, ge=0, le=10)
    """Solution repairs after a failing Oracle before the candidate is rejected; 0 means none."""
    max_mends: int = Field(default=2, ge=0, le=10)
    """Mending sessions for a contract that the checks turn away, before the seal; 0 means none."""
    organisation: str = Field(default="skill2env", pattern=r"^[a-z0-9](?:[a-z0-9-]{0,38}[a-z0-9])?$")
    """First half of every task name (``organisation/slug``)."""


class VerifyConfig(Part):
    """How candidates are verified."""

    level: CheckLevel = CheckLevel.STANDARD
    """How much is checked before a task is published: a benchmark deserves ``strict``. Another level verifies every
    candidate again; no session is repeated."""
    oracle_repeats: int = Field(default=2, ge=1, le=20)
    """Runs of the reference solution in the task's own mode that must agree, the first one included."""
    infra_retries: int = Field(default=2, ge=0, le=10)
    """Further tries after a failure of the surroundings, before the item is left pending."""


class SandboxConfig(Part):
    """Where and how containers run."""

    kind: str = "auto"
    """Which environment runs trials: ``auto`` (namespaces where the machine allows them, else docker or podman),
    ``namespace``, ``docker``, ``podman``, or the name of another environment that is built into Harbor."""
    allow_unlimited: bool = False
    """Accept a machine that cannot enforce a requested limit on memory, processes or CPU."""
    allow_degraded: bool = False
    """Publish also from a sandbox with a single uid, where agent and root are one; the task then says so."""


class PublishConfig(Part):
    """What the dataset says about itself."""

    name: str = Field(default="skill2env/dataset", pattern=r"^[a-z0-9][a-z0-9._-]*/[a-z0-9][a-z0-9._-]*$")
    """``organisation/name`` in dataset.toml; used when the dataset is first made."""
    description: str = "Verified environments compiled from Agent Skills."
    """One sentence for the card."""
    near_duplicates: bool = False
    """Let tasks join that nearly equal one of the dataset; exact copies never do."""


class BudgetConfig(Part):
    """When to stop paying. Applies to authors with a model."""

    usd: float | None = Field(default=None, gt=0)
    """Most that the run folder may cost, US dollars; none means no limit."""
    usd_per_task: float | None = Field(default=None, gt=0)
    """Most that one task may cost; a task that needs more is skipped."""
    usd_per_session: float = Field(default=2.0, gt=0)
    """Set aside for each session while a limit is given, so that neither sessions side by side nor a kill overspend."""

    @property
    def limited(self) -> bool:
        """Whether any limit is given."""
        return self.usd is not None or self.usd_per_task is not None

    @property
    def micro_dollars_per_session(self) -> int:
        """`usd_per_session` in micro-dollars."""
        return round(self.usd_per_session * 1e6)


class RunConfig(Part):
    """All settings of one run."""

    seed: int = Field(default=0, ge=0, lt=2**63)
    """Root of every derived seed: another seed gives other axes."""
    workers: int = Field(default=2, ge=1, le=256)
    """Items worked on at once. Never changes a result."""
    author: AuthorConfig = AuthorConfig()
    plan: PlanConfig = PlanConfig()
    create: CreateConfig = CreateConfig()
    verify: VerifyConfig = VerifyConfig()
    sandbox: SandboxConfig = SandboxConfig()
    publish: PublishConfig = PublishConfig()
    assets: AssetConfig = AssetConfig()
    budget: BudgetConfig = BudgetConfig()

    def determining(self) -> dict[str, Any]:
        """The settings that determine results, as plain data.

        The author is left out as well: its `AuthorIdentity` is part of every key and knows more than its name.
        """
        values = self.model_dump(
            mode="json", exclude={"workers", "author", "sandbox", "budget", "publish", "assets"}
        )
        del values["verify"]["infra_retries"]
        return values

    def digest(self) -> str:
        """Digest of `determining`."""
        return digest_of(self.determining())


def load_config(path: Path | None = None, flags: Mapping[str, Any] | None = None) -> RunConfig:
    """Read a TOML file, lay flags over it and check the result.

    Args:
        path: a TOML file; None for the defaults.
        flags: dotted key (``plan.workflows``) to value; a value of None means that the flag was not given.

    Raises:
        UserError: the file cannot be read or parsed, or a key or value is wrong. Unknown keys come with the nearest
            known one.
    """
    tree = read_toml(path) if path else {}
    if path:
        _resolve(tree, path.parent, "author", ("recordings", "record_to", "prices", "agent_dockerfile"))
        _resolve(tree, path.parent, "assets", ("licences",))
        _resolve_author(tree, path.parent)
    for key, value in (flags or {}).items():
        if value is not None:
            _assign(tree, key.split("."), value)
    try:
        return RunConfig.model_validate(tree)
    except ValidationError as error:
        origin = str(path) if path else "the command line"
        details = error.errors(include_url=False)
        hints = [hint for detail in details if (hint := _hint(detail))]
        raise UserError(
            f"{origin}: " + "; ".join(_describe(detail) for detail in details),
            hint="; ".join(hints) or "docs/configuration.md lists every key with its meaning and unit",
        ) from None


CONFIG_LIMIT_BYTES = 1 << 20


def read_toml(path: Path) -> dict[str, Any]:
    """A file of settings, unchecked.

    Raises:
        UserError: it cannot be read, is no TOML, or is larger than settings are.
    """
    if path.exists() and not path.is_file():
        raise UserError(f"{path} is no regular file", hint="give a TOML file")
    if path.exists() and path.stat().st_size > CONFIG_LIMIT_BYTES:
        raise UserError(f"{path} has more than {CONFIG_LIMIT_BYTES} bytes", hint="give a TOML file")
    try:
        return tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except tomllib.TOMLDecodeError as error:
        raise UserError(f"{path} is not valid TOML: {error}") from None
    except UnicodeDecodeError:
        raise UserError(f"{path} is not UTF-8 text") from None
    except OSError as error:
        raise UserError(f"cannot read the configuration {path}: {error.strerror}") from None


def _resolve(tree: dict[str, Any], root: Path, part: str, keys: Sequence[str]) -> None:
    """Make paths of a part of the file relative to its folder."""
    section = tree.get(part)
    if not isinstance(section, dict):
        return
    for key in keys:
        given = cast("dict[str, Any]", section).get(key)
        if isinstance(given, str):
            section[key] = str(root / Path(given).expanduser())


def _resolve_author(tree: dict[str, Any], root: Path) -> None:
    """As `_resolve`, for an author that is named by the file that holds it."""
    section = tree.get("author")
    if not isinstance(section, dict):
        return
    name = cast("dict[str, Any]", section).get("name")
    if isinstance(name, str):
        place, colon, factory = name.rpartition(":")
        if place.endswith(".py"):
            section["name"] = f"{root / Path(place).expanduser()}{colon}{factory}"


def _assign(tree: dict[str, Any], keys: Sequence[str], value: Any) -> None:
    for key in keys[:-1]:
        below = tree.setdefault(key, {})
        if not isinstance(below, dict):
            return  # the file holds a scalar where a table belongs; validation names it
        tree = cast("dict[str, Any]", below)
    tree[keys[-1]] = value


def _describe(detail: ErrorDetails) -> str:
    where = ".".join(str(step) for step in detail["loc"])
    if detail["type"] == "extra_forbidden":
        return f"unknown key {where!r}"
    return f"{where}: {detail['msg']} (got {detail['input']!r})"


def _hint(detail: ErrorDetails) -> str:
    """Suggest the nearest key for an unknown one: at the same level first, then anywhere."""
    if detail["type"] != "extra_forbidden":
        return ""
    loc = [str(step) for step in detail["loc"]]
    dotted = ".".join(loc)
    siblings = _keys(_part_at(loc[:-1]), ".".join(loc[:-1]))
    near = difflib.get_close_matches(dotted, siblings, n=1, cutoff=0.6)
    if not near:
        leaves = {key.rsplit(".", 1)[-1]: key for key in _keys(RunConfig, "")}
        near = [leaves[name] for name in difflib.get_close_matches(loc[-1], leaves, n=1, cutoff=0.6)]
    return f"did you mean {near[0]!r}?" if near else ""


def _part_at(loc: Sequence[str]) -> type[Part]:
    part: type[Part] = RunConfig
    for step in loc:
        part = _part_of(part.model_fields[step].annotation) or part
    return part


def _part_of(annotation: Any) -> type[Part] | None:
    for option in (annotation, *get_args(annotation)):
        if isinstance(option, type) and issubclass(option, Part):
            return option
    return None


def _keys(part: type[Part], prefix: str) -> list[str]:
    found: list[str] = []
    for name, field in part.model_fields.items():
        dotted = f"{prefix}.{name}" if prefix else name
        found.append(dotted)
        below = _part_of(field.annotation)
        if below:
            found += _keys(below, dotted)
    return found
