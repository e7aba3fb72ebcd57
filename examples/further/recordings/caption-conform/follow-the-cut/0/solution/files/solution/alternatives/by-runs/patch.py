"""Put a new step into the tool: its functions before `main`, its call behind the reading of the captions."""

import sys

addition, tool = sys.argv[1:]
with open(tool, encoding="utf-8") as handle:
    text = handle.read()
with open(addition, encoding="utf-8") as handle:
    new = handle.read()
if "conformed" not in text:
    for old, replacement in (
        ('"--min-gap"):\n', '"--min-gap", "--edl"):\n'),
        ("[--min-gap MS]", "[--min-gap MS] [--edl FILE]"),
        ("def main(words):\n", new + "\n\ndef main(words):\n"),
        ("read(source)\n", 'read(source)\n    cues = conformed(cues, found["--edl"]) if "--edl" in found else cues\n'),
    ):
        if text.count(old) != 1:
            sys.exit(f"the tool is not the one that was expected: {old!r}")
        text = text.replace(old, replacement)
with open(tool, "w", encoding="utf-8") as handle:
    handle.write(text)
