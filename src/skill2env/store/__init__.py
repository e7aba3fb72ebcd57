"""What lies on disk: the run folder, the ledger, content-keyed caches and atomic files."""
