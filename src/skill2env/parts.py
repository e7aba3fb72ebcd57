"""The heavy parts of a batch (base images, the sandbox, the gates), loaded when something first needs them.

So a batch with nothing left to do loads neither Harbor nor a sandbox and is over in a second.
"""

import threading
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from skill2env.config import RunConfig
from skill2env.progress import Event, EventKind, Progress

if TYPE_CHECKING:
    from skill2env.grounding import Grounder
    from skill2env.harbor.sandboxes import SandboxChoice
    from skill2env.hub.policy import LicencePolicy
    from skill2env.verify.gate import GateContext


class Parts:
    """The heavy parts of a batch, made when first needed. Safe to use from several threads."""

    def __init__(
        self,
        config: RunConfig,
        evidence: Path,
        notices: Path,
        progress: Progress,
        cancelled: threading.Event,
    ) -> None:
        """Remember what the parts are made from.

        Args:
            config: settings of the batch.
            evidence: folder below which gates keep their logs.
            notices: folder for licence texts of public files.
            progress: told while a base image is built.
            cancelled: set when the batch is being stopped; downloads end then.
        """
        self._config = config
        self._evidence = evidence
        self._notices = notices
        self._progress = progress
        self._cancelled = cancelled
        self._lock = threading.RLock()

    @cached_property
    def bases(self) -> dict[str, str]:
        """Catalog name -> what its content depends on, for the ledger; their order is the order in prompts.

        That is the reference for the default base, and the recipe for the others, which are built when a Dockerfile
        names them: what is offered to authors must not depend on what this machine happens to have built.
        """
        from skill2env.sandbox.base_store import recipe_digest
        from skill2env.sandbox.catalog import CATALOG, DEFAULT_BASE

        found = {name: recipe_digest(name) for name in CATALOG}
        return {**found, DEFAULT_BASE: self.base_image(DEFAULT_BASE) or ""}

    def base_image(self, name: str) -> str | None:
        """Reference with digest of a catalog base, as Dockerfiles name it; None for a name not in the catalog.

        A base is built on its first use, half a minute for the default and some minutes for the largest.

        Raises:
            InfraError: it cannot be built.
        """
        from skill2env.sandbox.catalog import CATALOG
        from skill2env.sandbox.containers import ensure_base

        def tell(text: str) -> None:
            self._progress(Event(EventKind.NOTE, "base image", text))

        with self._lock:
            _ = self.sandbox  # decides who builds
            return ensure_base(name, progress=tell).reference if name in CATALOG else None

    @cached_property
    def sandbox(self) -> "SandboxChoice":
        """Where trials run, images are built and skills are studied.

        Raises:
            UserError: the configuration names no such thing.
            InfraError: it does not run here.
        """
        from skill2env.harbor.sandboxes import choose_sandbox

        config = self._config.sandbox
        with self._lock:
            return choose_sandbox(config.kind, allow_unlimited=config.allow_unlimited)

    @cached_property
    def gates(self) -> "GateContext":
        """How gates run in this batch; evidence goes to a folder of each item (`gates_for`)."""
        from skill2env.verify.gate import GateContext

        config = self._config
        with self._lock:
            return GateContext(
                sandbox=self.sandbox,
                evidence=self._evidence,
                oracle_repeats=config.verify.oracle_repeats,
                infra_retries=config.verify.infra_retries,
            )

    @cached_property
    def asset_policy(self) -> "LicencePolicy":
        """Which licences public files in tasks may have.

        Raises:
            UserError: the policy file cannot be read.
        """
        from skill2env.hub.policy import LicencePolicy, load_policy

        path = self._config.assets.licences
        return load_policy(path) if path else LicencePolicy()

    @cached_property
    def grounder(self) -> "Grounder":
        """What puts public files into tasks.

        Raises:
            UserError: as for `asset_policy`.
        """
        from skill2env.grounding import make_grounder

        with self._lock:
            return make_grounder(
                self._config.assets, policy=self.asset_policy, notices=self._notices, stop=self._cancelled
            )

    @cached_property
    def degraded(self) -> str:
        """What a reader of the published task must know about the sandbox its gates ran in; empty when nothing."""
        from skill2env.sandbox.identity import Tier, current_identity

        if self.gates.sandbox.name == "namespace" and current_identity().tier is Tier.SINGLE:
            return f"degraded: {Tier.SINGLE.value}"
        return ""

    def cancel(self, wait: Callable[[], object]) -> None:
        """Stop running trials, an author's as well, and let none begin while `wait` waits for whoever ran them."""
        from skill2env.harbor.running import halted

        with halted():
            wait()
