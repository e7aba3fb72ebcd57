"""Restores the files of all orders, runs the tool, and writes the outbox.

python3 operate.py PROJECT
"""

import base64
import hashlib
import importlib
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path


def decoded(text, encoding):
    """Content of a part."""
    if encoding == "base64":
        return base64.b64decode(text).decode()
    if encoding == "reversed-lines":
        return "".join(reversed(text.splitlines(keepends=True)))
    if encoding == "escaped":
        return text.replace("\n", "").encode("ascii").decode("unicode_escape")
    return text


def restored(inbox):
    """Order -> file -> text."""
    lines = {}
    for part in json.loads((inbox / "parts.json").read_text(encoding="utf-8")):
        with open(inbox / "parts" / part["part"], encoding="utf-8", newline="") as handle:
            sent = handle.read()
        try:
            content = decoded(sent, part["encoding"])
        except ValueError:
            continue
        if hashlib.sha256(content.encode()).hexdigest() != part["sha256"]:
            continue
        numbered = enumerate(content.splitlines(keepends=True), part["first_line"])
        lines.setdefault((part["order"], part["file"]), {}).update(numbered)
    return {key: "".join(text for _, text in sorted(found.items())) for key, found in lines.items()}


def written(folder):
    """Text of every file of a folder."""
    found = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes().decode("utf-8", "replace") for path in found}


def result_of(project, order, folder):
    """What the tool gives for an order whose files lie in a folder."""
    if "script" in order:
        before = written(folder)
        command = [sys.executable, "-s", "-B", str(project / order["script"]), *order["arguments"]]
        done = subprocess.run(command, cwd=folder, capture_output=True, stdin=subprocess.DEVNULL)
        files = {name: text for name, text in written(folder).items() if before.get(name) != text}
        return {"exit": done.returncode, "stdout": done.stdout.decode("utf-8", "replace"), "files": files}
    source = project / order["file"]
    sys.path[:0] = [str(source.parent), str(project)]
    names, parent = [source.stem], source.parent
    while (parent / "__init__.py").is_file() and parent != project:
        names.insert(0, parent.name)
        parent = parent.parent
    sys.path.insert(0, str(parent))
    function = getattr(importlib.import_module(".".join(names)), order["function"])
    os.chdir(folder)
    arguments = {}
    for name, value in order["arguments"].items():
        is_file = isinstance(value, str) and value in order["files"]
        kind = Path if order["paths_as"] == "pathlib.Path" else str
        arguments[name] = kind(folder / value) if is_file else value
    try:
        return {"value": json.loads(json.dumps(function(**arguments)))}
    except Exception as error:
        return {"raised": type(error).__name__}


def main():
    """Everything from the inbox to the outbox."""
    project = Path(sys.argv[1])
    orders = json.loads((project / "inbox" / "orders.json").read_text(encoding="utf-8"))
    texts, results, counts = restored(project / "inbox"), {}, {}
    for order in orders:
        with tempfile.TemporaryDirectory() as scratch:
            for name in order["files"]:
                text = texts[order["id"], name]
                for folder in (Path(scratch), project / "outbox" / order["id"]):
                    folder.mkdir(parents=True, exist_ok=True)
                    (folder / name).write_bytes(text.encode())
                counts[order["id"]] = counts.get(order["id"], 0) + len(text.splitlines())
            results[order["id"]] = result_of(project, order, Path(scratch))
            os.chdir("/")
    groups = {}
    for name, result in results.items():
        groups.setdefault(json.dumps(result, sort_keys=True), []).append(name)
    same = sorted(sorted(names) for names in groups.values() if len(names) > 1)
    summary = {"orders": len(orders), "lines": counts, "same": same}
    for name, value in (("results", results), ("summary", summary)):
        (project / "outbox" / f"{name}.json").write_text(json.dumps(value, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
