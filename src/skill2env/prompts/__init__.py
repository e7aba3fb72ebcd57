"""Prompt templates, rendered strictly; schemas and reason tables in them come from `records`."""

from skill2env.prompts.templates import TEMPLATES, prompt_digest, render

__all__ = ["TEMPLATES", "prompt_digest", "render"]
