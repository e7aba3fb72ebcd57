"""Talking to model endpoints: one dialogue in three wire formats, failures by kind, retries, prices, budgets.

Knows nothing of skills, tasks or Harbor. Keys stay in this process; nothing here writes one anywhere.
"""
