"""What the files of a task give away without running anything: one module a topic, each a gate.

`bash` and `python` read programs, `programs` finds which ones run, `world` knows what the agent is shown.
"""
