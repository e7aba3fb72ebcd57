"""Stage 3, Workflow + seed -> TaskSpec: the balanced, seeded sampler of the six axes (catalogs: `skill2env.axes`)."""

from skill2env.diversify.balance import AxisCounts, balance, evenness
from skill2env.diversify.sampler import SpecRequest, derive_seed, diversify, sample_batch, task_name

__all__ = [
    "AxisCounts",
    "SpecRequest",
    "balance",
    "derive_seed",
    "diversify",
    "evenness",
    "sample_batch",
    "task_name",
]
