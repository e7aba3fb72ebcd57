"""Stage 2, Skill -> Workflows: what the skill teaches, grounded in its own sentences."""
