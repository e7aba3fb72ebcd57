"""Task families: what kind of work the recorded behaviour of a skill's code is turned into."""
