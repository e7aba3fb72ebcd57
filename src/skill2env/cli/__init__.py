"""The command line: one file a verb, each of which parses, calls the library and prints."""
