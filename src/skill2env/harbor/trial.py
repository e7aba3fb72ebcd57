"""Run one agent on one task in one sandbox: the only place that enters asyncio.

Covers: many calls at once from threads, cancelling them, every failure of a trial as a record with its phase, and
telling failures of the machine (raised) from failures of the task (returned). Does not cover: retries and verdicts,
which are `verify`'s; judging the reward, which `TrialOutcome.reward` reads and gates judge.
"""

import asyncio
import uuid
from collections.abc import Sequence
from contextlib import ExitStack
from datetime import datetime
from pathlib import Path
from typing import Any

from harbor.agents.factory import AgentFactory
from harbor.environments.factory import EnvironmentFactory
from harbor.models.agent.name import AgentName
from harbor.models.task.verifier_mode import VerifierEnvironmentMode
from harbor.models.trial.config import AgentConfig, TaskConfig, TrialConfig, VerifierConfig
from harbor.models.trial.result import ExceptionInfo, TimingInfo, TrialResult
from harbor.trial.trial import Trial

from skill2env.errors import Boundary, InfraError, Skill2EnvError, boundary
from skill2env.harbor.faults import creation_fault, is_suspect, machine_fault
from skill2env.harbor.limits import Timeouts
from skill2env.harbor.namespace import START_ERRORS
from skill2env.harbor.outcome import (
    TrialFailure,
    TrialOutcome,
    TrialPhase,
    read_confinement,
    read_head,
    read_tail,
)
from skill2env.harbor.quiet import quiet_harbor
from skill2env.harbor.running import registered
from skill2env.harbor.sandboxes import SandboxChoice
from skill2env.harbor.stages import STAGED_VERIFIER, Stage
from skill2env.harbor.variant import variant

_MESSAGE_LIMIT = 4000


def run_trial(
    task_dir: Path,
    agent: str,
    *,
    environment: SandboxChoice,
    trials_dir: Path,
    mode: str | None = None,
    offline: bool = False,
    timeouts: Timeouts | None = None,
    agent_kwargs: dict[str, Any] | None = None,
    model: str = "",
    base_url: str = "",
    stages: Sequence[Stage] = (),
    skills: Sequence[Path] = (),
) -> TrialOutcome:
    """Run one trial to its end.

    Args:
        task_dir: a task directory; need not be a valid task.
        agent: ``oracle``, ``nop``, or ``module:Class`` of an agent.
        environment: where it runs.
        trials_dir: Harbor's trial folder is made below it; the caller owns and removes it.
        mode: ``shared`` or ``separate`` to run the verifier in that mode whatever the task asks for.
        offline: run without network whatever the task asks for.
        timeouts: limits that replace or cap the task's own.
        agent_kwargs: options of the agent.
        model: the agent's model; passed on as it stands.
        base_url: address of the model's endpoint, for agents whose connection Harbor resolves.
        stages: what to do where the verifier runs instead of one grading; `read_stages` tells what they left.
        skills: folders of skills that the agent finds in its container; agents that cannot use skills refuse them.

    Returns:
        What happened. A task that Harbor cannot even read is an outcome too, with a failure of phase ``create``.

    Raises:
        InfraError: the machine failed while the container was being started, the trial was cancelled, or the chosen
            sandbox cannot run this task at all (not transient then).
    """
    quiet_harbor()
    with boundary(Boundary.STORAGE, "making the trials folder"):
        trials_dir.mkdir(parents=True, exist_ok=True)
    name = f"{agent.rsplit(':', 1)[-1].lower()}-{uuid.uuid4().hex[:8]}"
    folder = trials_dir / name
    with ExitStack() as stack:
        try:
            task = stack.enter_context(variant(task_dir, mode=mode, offline=offline))
        except (ValueError, OSError) as error:
            return _unreadable(agent, folder, error)
        config = _config(
            task,
            agent,
            environment=environment,
            folder=folder,
            timeouts=timeouts or Timeouts(),
            agent_kwargs=agent_kwargs or {},
            model=model,
            base_url=base_url,
            stages=stages,
            skills=skills,
        )
        _require_classes(config)
        try:
            return asyncio.run(_run(config))
        except asyncio.CancelledError as error:
            raise InfraError(Boundary.HARBOR, "the trial was cancelled", transient=False) from error


def _config(
    task_dir: Path,
    agent: str,
    *,
    environment: SandboxChoice,
    folder: Path,
    timeouts: Timeouts,
    agent_kwargs: dict[str, Any],
    model: str,
    base_url: str,
    stages: Sequence[Stage],
    skills: Sequence[Path],
) -> TrialConfig:
    by_path = ":" in agent
    gradings = sum(stage.grade for stage in stages)
    return TrialConfig(
        task=TaskConfig(path=task_dir.resolve()),
        trial_name=folder.name,
        trials_dir=folder.parent.resolve(),
        environment_build_timeout_multiplier=timeouts.build_multiplier,
        agent=AgentConfig(
            name=None if by_path else AgentName(agent).value,
            import_path=agent if by_path else None,
            override_timeout_sec=timeouts.agent_sec,
            max_timeout_sec=timeouts.agent_cap_sec,
            kwargs=agent_kwargs,
            skills=[str(folder.resolve()) for folder in skills],
            model_name=model or None,
            base_url=base_url or None,
            # Splitting the name imports a library that takes seconds, and agents of ours do it themselves.
            skip_model_parsing=bool(model) and by_path,
        ),
        environment=environment.for_task(task_dir).to_config(),
        verifier_timeout_multiplier=max(1.0, gradings) if stages else None,
        verifier=VerifierConfig(
            override_timeout_sec=timeouts.verifier_sec,
            max_timeout_sec=timeouts.verifier_cap_sec,
            import_path=STAGED_VERIFIER if stages else None,
            kwargs={"stages": [stage.to_json() for stage in stages]} if stages else {},
        ),
    )


def _require_classes(config: TrialConfig) -> None:
    """An environment or agent that cannot be imported would otherwise look like a task that cannot be loaded."""
    try:
        EnvironmentFactory.get_environment_class(config.environment.type, config.environment.import_path)
        AgentFactory.get_agent_class_from_config(config.agent)
    except Exception as error:
        hint = "check the import path, and that its package is installed"
        raise InfraError(
            Boundary.HARBOR, f"Harbor cannot load a part: {error}", hint=hint, transient=False
        ) from error


async def _run(config: TrialConfig) -> TrialOutcome:
    with registered():
        folder = config.trials_dir / config.trial_name
        start_errors: list[Skill2EnvError] = []
        START_ERRORS.set(start_errors)
        try:
            trial = await Trial.create(config)
        except Exception as error:
            fault = creation_fault(error)
            if fault is not None:
                raise fault from error
            return _unreadable(_agent_name(config), folder, error)
        result = await trial.run()
        for error in start_errors:
            if isinstance(error, InfraError):
                raise error
        return _outcome(config, folder, result)


def _outcome(config: TrialConfig, folder: Path, result: TrialResult) -> TrialOutcome:
    recorded = result.recorded_exceptions()
    failure = _failure(recorded[0], result) if recorded else None
    if failure is not None:
        fault = machine_fault(failure)
        if fault is not None:
            raise fault
    confinement = read_confinement(folder)
    verifier = folder / "verifier"
    agent_log = "oracle.txt" if config.agent.name == AgentName.ORACLE.value else "script.txt"
    mode = result.verifier_environment_mode
    return TrialOutcome(
        agent=_agent_name(config),
        folder=folder,
        mode=mode.value if isinstance(mode, VerifierEnvironmentMode) else "",
        rewards=None if result.verifier_result is None else result.verifier_result.rewards,
        valid=result.reward_valid,
        failure=failure,
        suspect=failure is not None and is_suspect(failure) and not confinement.breaches,
        solve_exit_code=_exit_code(folder),
        reward_json=read_head(verifier / "reward.json"),
        reward_txt=read_head(verifier / "reward.txt"),
        agent_output=read_tail(folder / "agent" / agent_log),
        verifier_output=read_tail(verifier / "test-stdout.txt"),
        seconds=_seconds(result),
        degraded=confinement.degraded,
        absent_limits=confinement.absent,
        breaches=confinement.breaches,
        steps=result.step_results is not None,
    )


def _agent_name(config: TrialConfig) -> str:
    return config.agent.name or config.agent.import_path or ""


def _unreadable(agent: str, folder: Path, error: Exception) -> TrialOutcome:
    message = str(error)[:_MESSAGE_LIMIT]
    return TrialOutcome(agent, folder, failure=TrialFailure(type(error).__name__, message, TrialPhase.CREATE))


def _failure(info: ExceptionInfo, result: TrialResult) -> TrialFailure:
    return TrialFailure(
        info.exception_type, info.exception_message[:_MESSAGE_LIMIT], _phase(info.occurred_at, result)
    )


def _phase(when: datetime, result: TrialResult) -> TrialPhase:
    """The phase that had begun last when the exception was recorded."""
    phase = TrialPhase.ENVIRONMENT
    begun = (
        (TrialPhase.AGENT_SETUP, result.agent_setup),
        (TrialPhase.AGENT, result.agent_execution),
        (TrialPhase.VERIFIER, result.verifier),
    )
    if result.environment_setup is not None and result.environment_setup.finished_at is not None:
        # The health check runs between the two and has no timing of its own.
        phase = TrialPhase.AGENT_SETUP if result.agent_setup is not None else _started(result, when)
    for candidate, timing in begun:
        if timing is not None and timing.started_at is not None and timing.started_at <= when:
            phase = candidate
    verifier = result.verifier
    if phase is TrialPhase.VERIFIER and result.verifier_result is not None and verifier is not None:
        return TrialPhase.TEARDOWN
    return phase


def _started(result: TrialResult, when: datetime) -> TrialPhase:
    setup = result.environment_setup
    failed_to_start = (
        result.exception_info is not None
        and result.exception_info.exception_type != "HealthcheckError"
        and setup is not None
        and setup.finished_at is not None
        and setup.finished_at <= when
    )
    return TrialPhase.ENVIRONMENT if failed_to_start else TrialPhase.AGENT_SETUP


def _exit_code(folder: Path) -> int | None:
    files = (folder / "agent" / "exit-code.txt", *sorted(folder.glob("steps/*/agent/exit-code.txt")))
    for file in files:
        data = read_head(file, 16)
        if data is not None:
            try:
                return int(data)
            except ValueError:
                return -1
    return None


def _seconds(result: TrialResult) -> dict[str, float]:
    timings = {
        TrialPhase.ENVIRONMENT.value: result.environment_setup,
        TrialPhase.AGENT_SETUP.value: result.agent_setup,
        TrialPhase.AGENT.value: result.agent_execution,
        TrialPhase.VERIFIER.value: result.verifier,
        "total": TimingInfo(started_at=result.started_at, finished_at=result.finished_at),
    }
    return {
        name: round((timing.finished_at - timing.started_at).total_seconds(), 3)
        for name, timing in timings.items()
        if timing is not None and timing.started_at is not None and timing.finished_at is not None
    }
