"""Read, correct, delete, sort, convert, settle overlaps, write; then the catalogue, line by line."""

import csv
import io
import sys
from fractions import Fraction
from pathlib import Path

archive = Path(sys.argv[1])
RATES = {
    "24": (24, Fraction(24)),
    "25": (25, Fraction(25)),
    "30": (30, Fraction(30)),
    "23.976": (24, Fraction(24000, 1001)),
    "29.97NDF": (30, Fraction(30000, 1001)),
    "29.97DF": (30, Fraction(30000, 1001)),
}


def count(label, rate):
    """Frames before a label, from midnight on."""
    hours, minutes, seconds, frame = (int(part) for part in label.replace(";", ":").split(":"))
    total = (3600 * hours + 60 * minutes + seconds) * RATES[rate][0] + frame
    if rate.endswith("DF") and not rate.endswith("NDF"):
        minutes += 60 * hours
        total -= 2 * (minutes - minutes // 10)
    return total


def from_start(label, start, rate):
    frames = count(label, rate) - count(start, rate)
    if frames < 0:
        frames += count("24:00:00:00", rate)
    return frames


def read(path):
    """(header, {number: (in, out, place, text lines)}) with corrections applied."""
    data = path.read_bytes()
    if data.startswith(b"\xef\xbb\xbf"):
        text = data[3:].decode("utf-8")
    else:
        names = [line.split()[1] for line in data.splitlines() if line.startswith(b"*CHARSET")]
        text = data.decode(names[0].decode("ascii"))
    header, cues, gone, current = {}, {}, set(), None
    for line in text.replace("\r\n", "\n").split("\n"):
        if line.startswith("*"):
            key, _, value = line[1:].partition(" ")
            header[key] = value
            current = None
        elif not line:
            current = None
        elif current is None:
            number, first, last, place, *flags = line.split()
            current = []
            cues[int(number)] = (first, last, place, current)
            if flags:
                gone.add(int(number))
        else:
            current.append(line)
    return header, {number: cue for number, cue in cues.items() if number not in gone}


ESCAPES = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}


def webvtt(lines):
    """Text lines without codes, escaped, italics as tags."""
    text, out, pending, italic, tagged = "\n".join(lines), [], [], False, False
    position = 0
    while position < len(text):
        if text.startswith("{i}", position):
            italic, position = True, position + 3
        elif text.startswith("{/i}", position):
            if tagged:
                out.append("</i>")
            out += pending
            pending, italic, tagged, position = [], False, False, position + 4
        elif text.startswith("{C", position):
            position += 4
        else:
            char, width = ("\u266a", 3) if text.startswith("{n}", position) else ("{", 2) if text.startswith("{{", position) else (text[position], 1)
            position += width
            if not italic:
                out.append(ESCAPES.get(char, char))
            elif char.isspace():
                pending.append(char)
            else:
                out += pending
                pending = []
                if not tagged:
                    out.append("<i>")
                    tagged = True
                out.append(ESCAPES.get(char, char))
    if tagged:
        out.append("</i>")
    out += pending
    return [line.strip() for line in "".join(out).split("\n") if line.strip()]


def milliseconds(seconds):
    return (seconds * 2000 + 1) // 2


def convert(paths):
    """Cues of a programme as [start, end, place, lines], in milliseconds."""
    found, begin = [], Fraction(0)
    for reel, path in enumerate(paths):
        header, cues = read(path)
        rate, start = header["RATE"], header["START"]
        fps = RATES[rate][1]
        for number, (first, last, place, lines) in cues.items():
            text = webvtt(lines)
            if text:
                shown = begin + from_start(first, start, rate) / fps
                hidden = begin + (from_start(last, start, rate) + 1) / fps
                found.append(((milliseconds(shown), reel, number), [milliseconds(shown), milliseconds(hidden), place, text]))
        begin += count(header["LENGTH"], rate) / fps
    ordered = [cue for _, cue in sorted(found)]
    following = {}
    for cue in reversed(ordered):
        start, end, place, _ = cue
        cue[1] = min(end, following.get(place, end))
        following[place] = start
    return [cue for cue in ordered if cue[1] > cue[0]]


def clock(ms):
    minutes, ms = divmod(ms, 60_000)
    return f"{minutes // 60:02d}:{minutes % 60:02d}:{ms // 1000:02d}.{ms % 1000:03d}"


def row_text(row):
    out = io.StringIO()
    csv.writer(out, delimiter=";", lineterminator="").writerow(row)
    return out.getvalue()


catalogue = archive / "catalogue.csv"
lines = catalogue.read_bytes().decode("utf-8").split("\r\n")
for index, line in enumerate(lines):
    row = next(csv.reader([line], delimiter=";"), [])
    if len(row) < 7 or row[2] != "release" or row[3] != "cap":
        continue
    name = row[0]
    cues = convert([archive / path for path in row[4].split("+")])
    blocks = ["WEBVTT"]
    for start, end, place, text in cues:
        setting = " line:0" if place == "T" else ""
        blocks.append("\n".join([f"{clock(start)} --> {clock(end)}{setting}", *text]))
    (archive / "vtt" / f"{name}.vtt").write_text("\n\n".join(blocks) + "\n", encoding="utf-8")
    lines[index] = row_text([*row[:3], "vtt", f"vtt/{name}.vtt", len(cues), clock(max(cue[1] for cue in cues))])
catalogue.write_bytes("\r\n".join(lines).encode("utf-8"))
