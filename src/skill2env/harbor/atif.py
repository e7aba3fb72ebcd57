"""Sessions of the built-in agent in Harbor's format for trajectories (ATIF)."""

from collections.abc import Sequence

from harbor.models.trajectories.agent import Agent
from harbor.models.trajectories.final_metrics import FinalMetrics
from harbor.models.trajectories.metrics import Metrics
from harbor.models.trajectories.observation import Observation
from harbor.models.trajectories.observation_result import ObservationResult
from harbor.models.trajectories.step import Step
from harbor.models.trajectories.tool_call import ToolCall
from harbor.models.trajectories.trajectory import Trajectory

from skill2env.llm.dialogue import Role, ToolSpec, Turn
from skill2env.llm.loop import Session, parse_arguments
from skill2env.llm.prices import Price


def to_trajectory(
    session: Session,
    *,
    agent: str,
    version: str,
    model: str,
    session_id: str,
    tools: Sequence[ToolSpec],
    price: Price | None,
) -> Trajectory:
    """The whole session, one step a turn of the model with the results of its calls. Carries no times."""
    definitions = [
        {
            "type": "function",
            "function": {"name": tool.name, "description": tool.description, "parameters": tool.parameters},
        }
        for tool in tools
    ]
    cost = None if price is None else price.total(session.requests) / 1e6
    return Trajectory(
        session_id=session_id or None,
        agent=Agent(name=agent, version=version, model_name=model, tool_definitions=definitions),
        steps=_steps(session, price),
        final_metrics=FinalMetrics(
            total_prompt_tokens=session.usage.input,
            total_completion_tokens=session.usage.output,
            total_cached_tokens=session.usage.cached,
            total_cost_usd=cost,
            total_steps=session.replies,
        ),
    )


def _steps(session: Session, price: Price | None) -> list[Step]:
    steps: list[Step] = []
    for index, turn in enumerate(session.turns):
        if turn.role is Role.TOOL:
            _observe(steps[-1], turn)
            continue
        sources = {Role.SYSTEM: "system", Role.USER: "user", Role.ASSISTANT: "agent"}
        step = Step.model_validate(
            {"step_id": len(steps) + 1, "source": sources[turn.role], "message": turn.text}
        )
        if turn.role is Role.ASSISTANT:
            _complete(step, turn, session, index, price)
        steps.append(step)
    return steps


def _complete(step: Step, turn: Turn, session: Session, index: int, price: Price | None) -> None:
    if turn.calls:
        step.tool_calls = [_call(position, turn) for position in range(len(turn.calls))]
    usage = session.usages.get(index)
    if usage is not None:
        step.metrics = Metrics(
            prompt_tokens=usage.input,
            completion_tokens=usage.output,
            cached_tokens=usage.cached,
            cost_usd=None if price is None else price.micro_dollars(usage) / 1e6,
        )
        step.llm_call_count = 1


def _call(position: int, turn: Turn) -> ToolCall:
    call = turn.calls[position]
    arguments, problem = parse_arguments(call)
    extra = {"unparsed_arguments": call.arguments} if problem else None
    return ToolCall(tool_call_id=call.id, function_name=call.name, arguments=arguments, extra=extra)


def _observe(step: Step, turn: Turn) -> None:
    result = ObservationResult(source_call_id=turn.answers, content=turn.text)
    if step.observation is None:
        step.observation = Observation(results=[result])
    else:
        step.observation.results.append(result)
