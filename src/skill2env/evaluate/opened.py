"""Whether an agent opened a skill that it was offered."""

from pathlib import Path

from skill2env.errors import UserError
from skill2env.harbor.skills import FOLDER
from skill2env.rollout.records import TRAJECTORY_FILE
from skill2env.rollout.trajectory import read_trajectory


def opened(rollout: Path, skill: str) -> bool | None:
    """Whether a call of the agent names the skill's folder, or uses a tool for skills by its name.

    Args:
        rollout: folder of the rollout.
        skill: name of the skill's folder in the container.

    Returns:
        None when there is no trajectory that could tell.
    """
    try:
        steps = read_trajectory(rollout / TRAJECTORY_FILE)
    except UserError:
        return None
    calls = [step for step in steps if step.source == "agent" and step.name]
    place = f"{FOLDER}/{skill}"
    return any(
        place in call.text or (call.name.casefold() == "skill" and skill in call.text) for call in calls
    )
