"""Who plans workflows and creates tasks: the `Author` protocol, its registry and the built-in authors."""
