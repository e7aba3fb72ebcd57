"""Stage 6, accepted candidates -> Dataset: atomic moves, manifest, dataset card, take-downs."""
