"""Trials whose outcome is trained on or judged: run, classified, kept, counted and exported."""
