"""Verdicts for people and programs: JSON lines, JUnit XML, SARIF, static pages, and what is new since a baseline."""
