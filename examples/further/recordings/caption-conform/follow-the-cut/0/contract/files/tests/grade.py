"""Run the delivered tool and compare its output with the reference's, byte by byte."""

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))  # python runs isolated, so the helpers beside us must be named

from calls import families  # noqa: E402
from reward import delivered_text, run  # noqa: E402
from untrusted import Workplace  # noqa: E402

METRICS = ("cutting", "joining", "together", "refusals")
BEFORE = b"what was there before\n"


def carried_out(source, words, data, edl, truth):
    """Whether one call ends as it has to."""
    with Workplace() as place:
        program = Path(place.path, "capfit.py")
        program.write_text(source, encoding="utf-8")
        files = {"IN": Path(place.path, "in.srt"), "EDL": Path(place.path, "cut.edl"), "OUT": Path(place.work, "out.srt"), "NONE": Path(place.path, "none.edl")}
        files["IN"].write_bytes(data)
        files["EDL"].write_bytes(edl or b"")
        if truth is None:
            files["OUT"].write_bytes(BEFORE)
            files["OUT"].chmod(0o666)
        code = place.python(str(program), *(str(files.get(word, word)) for word in words))
        if code != (2 if truth is None else 0) or files["OUT"].is_symlink():
            return False
        wanted = BEFORE if truth is None else truth
        return files["OUT"].is_file() and files["OUT"].stat().st_size == len(wanted) and files["OUT"].read_bytes() == wanted


def grade():
    source = delivered_text("/app/capfit.py")
    if source is None:
        return dict.fromkeys(METRICS, 0)
    return {metric: int(all(carried_out(source, *call) for call in calls)) for metric, calls in families().items()}


if __name__ == "__main__":
    run(METRICS, grade)
