"""Stage 3, Workflow + seed -> TaskSpec: catalogs of the six axes and the balanced, seeded sampler."""
