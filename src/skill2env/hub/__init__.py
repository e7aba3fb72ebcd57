"""A corpus of skills one can trust: whose terms are known, that can become offline tasks, each kept once."""
