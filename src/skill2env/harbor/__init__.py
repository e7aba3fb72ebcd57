"""Everything that touches Harbor's task format: task.toml, trials, lint, digests, dataset manifests."""
