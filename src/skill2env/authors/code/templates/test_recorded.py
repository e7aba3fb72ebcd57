"""Checks against recorded behaviour: every recorded input must give its recorded outcome."""

import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
from tagged_values import same  # noqa: E402

RECORDED = json.loads((HERE / "recorded.json").read_text(encoding="utf-8"))


def outcomes(cases):
    """What the project does now, by id of the case."""
    reader, writer = os.pipe()
    with tempfile.TemporaryDirectory() as scratch:
        command = [
            sys.executable,
            "-s",
            "-B",
            str(HERE / "child.py"),
            str(HERE.parent),
            scratch + "/w",
            str(writer),
        ]
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=(writer,),
        )
        os.close(writer)
        process.stdin.write(json.dumps(cases).encode())
        process.stdin.close()
        with os.fdopen(reader, "rb") as answers:
            lines = [json.loads(line) for line in answers]
        process.wait()
    return {line["id"]: line["outcome"] for line in lines}


class Recorded(unittest.TestCase):
    """Each case is a subtest of its own."""

    def test_everything_is_as_it_was(self):
        """No outcome may differ from the recorded one."""
        found = outcomes(RECORDED["cases"])
        for name, right in RECORDED["expected"].items():
            with self.subTest(case=name):
                self.assertIn(name, found)
                self.assertTrue(same(found[name], right), found[name])


if __name__ == "__main__":
    unittest.main()
