"""Scores of rollouts by a model that reads what was done: rubric, constitution, evidence, and how far to trust it."""
