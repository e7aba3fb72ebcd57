"""Makes the reference change: replaces byte spans of named files, after checking that they are the files meant.

python3 apply.py PROJECT        (change.json beside this file)
"""

import hashlib
import json
import os
import sys
from pathlib import Path


def main() -> None:
    """Check and change every file, or none."""
    project = Path(sys.argv[1])
    changes = json.loads(Path(__file__).with_name("change.json").read_text(encoding="utf-8"))
    mended = {}
    for file, change in changes.items():
        data = (project / file).read_bytes()
        if hashlib.sha256(data).hexdigest() != change["sha256"]:
            sys.exit(f"{file} is not the file that this change was made for")
        for start, end, text in sorted(change["spans"], reverse=True):
            data = data[:start] + text.encode() + data[end:]
        mended[file] = data
    for file, data in mended.items():
        fresh = project / f"{file}.new"
        fresh.write_bytes(data)
        os.replace(fresh, project / file)
        print(f"mended {file}")


if __name__ == "__main__":
    main()
