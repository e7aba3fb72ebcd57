"""`NamespaceEnvironment`: Harbor's environment interface on top of `Sandbox`.

    harbor run -p TASK -a oracle -e skill2env.sandbox:NamespaceEnvironment

Covers: shared and separate verifiers (a fresh copy of environment/ or tests/Dockerfile), prebuilt catalog images,
users, working directory, environment variables, limits, health checks, artifacts, and every network mode, switched
between phases: what is not offline goes through a logged proxy on the host, so it covers HTTP and what HTTP's CONNECT
carries, and nothing else. Does not cover: compose services, GPUs, Windows.

Nothing here blocks the event loop: every call that waits does so in a thread of its own, and cancelling the awaiting
task kills what that thread started.
"""

import contextlib
from pathlib import Path
from typing import Any, override

from harbor.models.task.verifier_mode import task_has_any_shared_verifier
from pydantic import Field

from skill2env.errors import UserError
from skill2env.sandbox import catalog
from skill2env.sandbox.box import Box
from skill2env.sandbox.box_calls import ROOT_USERS
from skill2env.sandbox.box_environment import VERIFIER_SESSION, BoxEnvironment, BoxOptions
from skill2env.sandbox.chores import read_chore
from skill2env.sandbox.difference import difference
from skill2env.sandbox.identity import Identity, current_identity, find_identity, subuid_fix, user_name
from skill2env.sandbox.images import BuiltImage, add_agent, build_image, resolve_image
from skill2env.sandbox.limits import absent_limits
from skill2env.sandbox.network import trial_network
from skill2env.sandbox.off_loop import off_loop
from skill2env.sandbox.scratch import kept_folder, remove_tree
from skill2env.sandbox.session import HOSTNAME, Sandbox, SandboxSpec

DIFFERENCE_FILE = "difference.json"
"""Name of the record of changed files, in the trial's folder."""


class NamespaceOptions(BoxOptions):
    """Settings of the namespace sandbox (``--ek name=value``)."""

    tier: str = Field(
        default="", description="Identity tier: root, subuid or single-uid; empty for the best."
    )
    difference: bool = Field(
        default=False,
        description="Write beside the trial what the agent's container changed (difference.json).",
    )


class NamespaceEnvironment(BoxEnvironment):
    """One sandbox per trial role, without an engine, a registry or a daemon."""

    options_model = NamespaceOptions

    @staticmethod
    @override
    def type() -> str:
        return "skill2env-namespace"

    @property
    @override
    def _settings(self) -> NamespaceOptions:
        options = self.options
        return options if isinstance(options, NamespaceOptions) else NamespaceOptions()

    @property
    def identity(self) -> Identity:
        """How ids map in this sandbox.

        Raises:
            UserError: the tier of the options is not possible here.
        """
        return find_identity(self._settings.tier) if self._settings.tier else current_identity()

    @override
    def _validate_definition(self) -> None:
        if (self.environment_dir / "docker-compose.yaml").exists():
            raise UserError(
                "the namespace sandbox cannot run compose services",
                hint="Run this task with `--sandbox docker`.",
            )
        if not self.task_env_config.docker_image and not (self.environment_dir / "Dockerfile").exists():
            raise FileNotFoundError(
                f"{self.environment_dir} has no Dockerfile and the task names no docker_image"
            )
        self._forwarded_ports()
        self._validate_users()
        self._validate_limits()

    def _validate_users(self) -> None:
        """With a single uid, an agent could read and rewrite what root puts beside it for the verifier."""
        if self.identity.several_users:
            return
        task = self._task()
        if task is not None and task.agent.user not in ROOT_USERS and task_has_any_shared_verifier(task):
            raise UserError(
                f"agent user {task.agent.user!r} and a shared verifier need several user ids, and this machine gives "
                f"{user_name()!r} one",
                hint=subuid_fix(),
            )

    def _validate_limits(self) -> None:
        absent = absent_limits(self.limits, self.identity)
        if absent and not self._settings.allow_unlimited:
            raise UserError(
                f"this machine cannot enforce the task's limit on {', '.join(absent)}",
                hint="Run as root or with delegated control groups, or allow it with --allow-unlimited.",
            )

    # ---------------------------------------------------------------------------------------- life

    @override
    def _build(self, *, prebuilt: bool) -> BuiltImage:
        image_map = dict(self._settings.image_map)
        if prebuilt and self.task_env_config.docker_image:
            return resolve_image(self.task_env_config.docker_image, image_map=image_map)
        return build_image(
            self.environment_dir,
            image_map=image_map,
            timeout_sec=self.task_env_config.build_timeout_sec,
        )

    @override
    def _add_agent(self, image: BuiltImage, file: Path) -> BuiltImage:
        return add_agent(
            image,
            file,
            image_map=dict(self._settings.image_map),
            timeout_sec=self.task_env_config.build_timeout_sec,
        )

    @override
    def _new_box(self, image: BuiltImage) -> Sandbox:
        network = None
        if not self._offline:
            suite = catalog.lookup(image.base.name).suite
            rules, ports = self._rules(self._network_policy), self._forwarded_ports()
            network = self._network_life.enter_context(trial_network(rules, suite, ports))
            self._network = network
        conditions = self._settings.conditions
        spec = SandboxSpec(
            layers=image.layers,
            limits=self.limits,
            binds=(*(network.binds if network else ()), *conditions.binds),
            proxy_socket=network.proxy.socket_path if network else None,
            forwards=network.forwards if network else {},
            hostname=conditions.hostname or HOSTNAME,
        )
        return Sandbox(spec, identity=self.identity)

    @override
    async def _done_by_itself(self, command: str) -> bool:
        chore, box = read_chore(command), self._running()
        return chore is not None and isinstance(box, Sandbox) and await off_loop(lambda: box.do_chore(chore))

    @override
    def _end(self, box: Box, keep: str) -> None:
        wanted = self._settings.difference and VERIFIER_SESSION not in self.session_id
        super()._end(box, keep or (self.session_id if wanted else ""))
        if not wanted or self.image is None:
            return
        upper = kept_folder(self.session_id)
        try:
            with contextlib.suppress(OSError):
                found = difference(upper, self.image.layers)
                (self.trial_paths.trial_dir / DIFFERENCE_FILE).write_text(
                    found.model_dump_json(), encoding="utf-8"
                )
        finally:
            if not keep:
                remove_tree(upper, self.identity)

    @override
    def _confinement(self, box: Box) -> dict[str, Any]:
        assert isinstance(box, Sandbox)
        return {
            "tier": box.identity.tier.value,
            "degraded": "" if box.several_users else "single-uid",
            "hard": box.enforced.hard,
            "watched": box.enforced.watched,
            "absent": box.enforced.absent,
        }
