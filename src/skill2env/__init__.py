"""skill2env: compile Agent Skills into verified, containerised RL environments in Harbor's task format."""

__version__ = "0.1.0"
