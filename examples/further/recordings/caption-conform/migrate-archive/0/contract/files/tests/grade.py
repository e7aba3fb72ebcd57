"""Convert the private archive again and compare programme by programme; then look at what must not have changed."""

import csv
import io
import os
import re
import sys
from fractions import Fraction
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))  # python runs isolated, so the helpers beside us must be named

from reward import delivered_text, run  # noqa: E402
from world import NOMINAL, all_labels, files, frames  # noqa: E402

METRICS = ("whole_rates", "broken_rates", "text", "catalogue")
ARCHIVE = "/app/archive"
CODES = re.compile(r"\{i\}|\{/i\}|\{n\}|\{C[1-9]\}|\{\{|\n|.", re.S)
TIMING = re.compile(r"(?:(\d{2,}):)?([0-5]\d):([0-5]\d)\.(\d{3})[ \t]+-->[ \t]+(?:(\d{2,}):)?([0-5]\d):([0-5]\d)\.(\d{3})(?:[ \t]+(.*))?", re.ASCII)


def real(rate):
    return Fraction(NOMINAL[rate] * 1000, 1001) if rate[:2] in ("23", "29") else Fraction(NOMINAL[rate])


def parsed(data):
    """(header, cues) of a .cap file; a cue is (number, in, out, place, deleted, text)."""
    marked = data.startswith(b"\xef\xbb\xbf")
    charset = re.search(rb"^\*CHARSET (\S+)", data[3 * marked :], re.M)[1].decode()
    lines = data[3 * marked :].decode("utf-8" if marked else charset).replace("\r\n", "\n").split("\n")
    header = dict(line[1:].split(" ", 1) for line in lines if line.startswith("*") and " " in line)
    cues = []
    for block in "\n".join(line for line in lines if not line.startswith("*")).split("\n\n"):
        head, *text = block.strip("\n").split("\n")
        if head:
            number, start, stop, place, *flag = head.split()
            cues.append((int(number), start, stop, place, bool(flag), "\n".join(text)))
    return header, cues


def styled(text):
    """Lines of WebVTT text."""
    chars, italic = [], False
    for code in CODES.findall(text):
        if code in ("{i}", "{/i}"):
            italic = code == "{i}"
        elif not re.fullmatch(r"\{C\d\}", code):
            chars.append([{"{n}": "\u266a", "{{": "{"}.get(code, code), italic])
    out, at = "", 0
    while at < len(chars):
        end = at
        while end < len(chars) and chars[end][1] == chars[at][1]:
            end += 1
        run_ = "".join({"&": "&amp;", "<": "&lt;", ">": "&gt;"}.get(char, char) for char, _ in chars[at:end])
        if chars[at][1] and run_.strip():
            left, right = run_[: len(run_) - len(run_.lstrip())], run_[len(run_.rstrip()) :]
            run_ = f"{left}<i>{run_.strip()}</i>{right}"
        out, at = out + run_, end
    return tuple(line.strip() for line in out.split("\n") if line.strip())


def converted(reels):
    """[(start, end, place, lines)] of a programme, times in milliseconds."""
    cues, begin = [], Fraction(0)
    for order, data in enumerate(reels):
        header, lines = parsed(data)
        rate = header["RATE"]
        deleted = {cue[0] for cue in lines if cue[4]}
        for number, start, stop, place, _, text in {cue[0]: cue for cue in lines}.values():
            shown = styled(text)
            if number in deleted or not shown:
                continue
            first, last = ((frames(label, rate) - frames(header["START"], rate)) % all_labels(rate) for label in (start, stop))
            times = [int((begin + frame / real(rate)) * 1000 + Fraction(1, 2)) for frame in (first, last + 1)]
            cues.append((times[0], order, number, times[1], place, shown))
        begin += frames(header["LENGTH"], rate) / real(rate)
    cues.sort()
    found = []
    for index, (start, _, _, end, place, shown) in enumerate(cues):
        end = min([end, *(cue[0] for cue in cues[index + 1 :] if cue[4] == place)])
        if end > start:
            found.append((start, end, place, shown))
    return found


def delivered(name):
    """[(start, end, place, lines)] of a delivered WebVTT file, or None."""
    text = delivered_text(f"{ARCHIVE}/vtt/{name}.vtt")
    if text is None or not re.match(r"WEBVTT(?:[ \t].*)?(?:\n|$)", text):
        return None
    found = []
    for block in re.split(r"\n(?:[ \t]*\n)+", text.split("\n", 1)[-1].strip("\n")):
        lines = [line.strip() for line in block.split("\n")]
        if block.startswith("NOTE") or not block.strip():
            continue
        match = next((m for line in lines[:2] if (m := TIMING.fullmatch(line))), None)
        if match is None:
            return None
        numbers = [int(value or 0) for value in match.groups()[:8]]
        start, end = (((h * 60 + m) * 60 + s) * 1000 + ms for h, m, s, ms in (numbers[:4], numbers[4:]))
        place = {"": "B", "line:0": "T"}.get((match[9] or "").strip(), "?")
        found.append((start, end, place, tuple(lines[lines.index(match[0].strip()) + 1 :])))
    return sorted(found)


def tree():
    """Paths of everything below the archive but folders."""
    found = set()
    for folder, folders, names in os.walk(ARCHIVE):
        links = [name for name in folders if os.path.islink(os.path.join(folder, name))]
        found |= {os.path.relpath(os.path.join(folder, name), ARCHIVE) for name in [*names, *links]}
    return found


def clock(ms):
    return f"{ms // 3_600_000:02d}:{ms // 60_000 % 60:02d}:{ms // 1000 % 60:02d}.{ms % 1000:03d}"


def untouched(given, due):
    """Whether nothing but the catalogue changed, and nothing but the programmes that are due came."""
    if tree() != set(given) | {f"vtt/{name}.vtt" for name in due}:
        return False
    for path, data in given.items():
        if path != "catalogue.csv":
            full = os.path.join(ARCHIVE, path)
            status = os.lstat(full)
            if os.path.realpath(full) != full or status.st_size != len(data) or Path(full).read_bytes() != data:
                return False
    return True


def right_catalogue(given, truth):
    """Whether the catalogue says what was made, line by line, and leaves the other lines alone."""
    mine = (delivered_text(f"{ARCHIVE}/catalogue.csv") or "").rstrip("\n").split("\n")
    old = given["catalogue.csv"].decode().replace("\r\n", "\n").rstrip("\n").split("\n")
    if len(mine) != len(old):
        return False
    for before, after in zip(old, mine):
        row = next(csv.reader(io.StringIO(before), delimiter=";"))
        if row[0] in truth:
            cues = truth[row[0]]
            wanted = [*row[:3], "vtt", f"vtt/{row[0]}.vtt", str(len(cues)), clock(max(cue[1] for cue in cues))]
            if next(csv.reader(io.StringIO(after), delimiter=";"), None) != wanted:
                return False
        elif before != after:
            return False
    return True


def grade():
    given = files()
    rows = list(csv.DictReader(io.StringIO(given["catalogue.csv"].decode()), delimiter=";"))
    due = {row["programme"]: [given[path] for path in row["captions"].split("+")] for row in rows if row["status"] == "release"}
    truth = {name: sorted(converted(reels)) for name, reels in due.items()}
    found = {name: delivered(name) for name in due}
    timed, said = {}, {}
    for name, cues in truth.items():
        mine = found[name] or []
        timed[name] = [cue[:2] for cue in mine] == [cue[:2] for cue in cues]
        said[name] = [cue[2:] for cue in mine] == [cue[2:] for cue in cues]
    broken = {name for name, reels in due.items() if any(parsed(data)[0]["RATE"][:2] in ("23", "29") for data in reels)}
    return {
        "whole_rates": int(all(timed[name] for name in due if name not in broken)),
        "broken_rates": int(all(timed[name] for name in broken)),
        "text": int(all(said.values())),
        "catalogue": int(right_catalogue(given, truth) and untouched(given, due)),
    }


if __name__ == "__main__":
    run(METRICS, grade)
