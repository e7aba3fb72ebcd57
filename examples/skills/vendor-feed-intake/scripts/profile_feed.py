"""Print what a CSV file really holds: encoding marks, delimiter, line ends, and per column fill and distinct counts.

Usage: python3 profile_feed.py FILE
"""

import csv
import sys

BOM, CRLF, LF = b"\xef\xbb\xbf", b"\r\n", b"\n"


def profile(path):
    """Return a list of text lines that describe the file."""
    with open(path, "rb") as handle:
        raw = handle.read()
    lines = [
        f"bytes: {len(raw)}",
        "byte order mark: " + ("yes" if raw.startswith(BOM) else "no"),
        f"line ends: {raw.count(CRLF)} CRLF, {raw.count(LF) - raw.count(CRLF)} LF",
    ]
    text = raw.decode("utf-8-sig", errors="replace")
    first = text.split("\n", 1)[0]
    delimiter = max(",;\t|", key=first.count)
    lines.append(f"delimiter: {delimiter!r}")
    rows = list(csv.reader(text.splitlines(keepends=True), delimiter=delimiter))
    header, body = rows[0], rows[1:]
    lines.append(f"records: {len(body)}")
    for index, name in enumerate(header):
        values = [row[index] if index < len(row) else "" for row in body]
        filled = [value for value in values if value.strip()]
        longest = max((len(value) for value in values), default=0)
        lines.append(f"  {name.strip()}: filled {len(filled)}, distinct {len(set(filled))}, longest {longest}")
    odd = [number for number, row in enumerate(body, 2) if len(row) != len(header)]
    if odd:
        lines.append(f"records with another field count: {odd[:10]}")
    return lines


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    print("\n".join(profile(sys.argv[1])))
