"""Train a small model on this machine: serve the policy, roll out in real sandboxes, update, and again."""

import os

# Threads that spin while they wait take a busy machine's cores from each other. OpenMP reads this when torch is
# imported, which nothing here does before this package.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
os.environ.setdefault("GOMP_SPINCOUNT", "0")
