"""Stage 5, Candidate -> Verdict: one small function a gate, cheapest first, none of them with a model."""
