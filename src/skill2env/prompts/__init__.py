"""Prompt templates, rendered strictly; schemas and reason tables in them come from `records`."""
