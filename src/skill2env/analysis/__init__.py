"""[8] What a dataset of Harbor tasks is made of: coverage, fidelity, contamination, copies, difficulty, comparison."""
