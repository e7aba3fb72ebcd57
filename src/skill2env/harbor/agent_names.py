"""The agents that Harbor knows by name."""

from harbor.models.agent.name import AgentName

_NO_AUTHORS = frozenset({"oracle", "nop"})


def agent_names() -> tuple[str, ...]:
    """Names of agents that can author, sorted."""
    return tuple(sorted(AgentName.values() - _NO_AUTHORS))
