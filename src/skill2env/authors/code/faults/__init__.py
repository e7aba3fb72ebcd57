"""Faults: where they can be put (`sites`), what they are (`operators`), and the edits that make them (`source`)."""
