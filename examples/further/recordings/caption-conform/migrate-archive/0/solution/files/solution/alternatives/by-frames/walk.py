"""Walk through all seconds of a day once per rate; time is counted in units that both second and frame divide."""

import csv
import os
import re
from functools import cache

HOME = "/app/archive/"
UNIT = 720_000  # of a second: 24, 25 and 30 frames divide it, and 1001 times as much serves the other rates


def nominal(rate):
    return round(float(rate.rstrip("NDF")))


def starts_with_gap(second, rate):
    """Whether the first two labels of a second are dropped."""
    return rate == "29.97DF" and second % 60 == 0 and second % 600 != 0


@cache
def day(rate):
    """Frames before each second of the day, and before the end of the day, found by walking."""
    found, frame = [], 0
    for second in range(86_400):
        found.append(frame)
        frame += nominal(rate) - 2 * starts_with_gap(second, rate)
    return [*found, frame]


def units(rate):
    """Length of a frame in thousandths of UNIT times 1001/1000 where the rate is a broken one."""
    whole = UNIT // nominal(rate)
    return whole * (1001 if "." in rate else 1000)


def frame_of(label, rate):
    h, m, s, f = map(int, re.split("[:;]", label))
    second = h * 3600 + m * 60 + s
    return day(rate)[second] + f - 2 * starts_with_gap(second, rate)


def to_ms(thousandths):
    """Milliseconds, half up, of a time in thousandths of UNIT."""
    return (thousandths + UNIT // 2) // UNIT


def tags(text):
    text = re.sub(r"\{C\d\}", "", text)
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    parts = re.split(r"(\{/?i\}|\{\{|\{n\})", text)
    flat, state = [""], False
    for part in parts:
        if part in ("{i}", "{/i}"):
            if state != (part == "{i}"):
                state = part == "{i}"
                flat.append("")
        else:
            flat[-1] += {"{{": "{", "{n}": "♪"}.get(part, part)
    done = [re.sub(r"(?s)^(\s*)(.*?)(\s*)$", r"\1<i>\2</i>\3", run) if n % 2 and run.strip() else run for n, run in enumerate(flat)]
    return [line.strip() for line in "".join(done).split("\n") if line.strip()]


def cues_of(path):
    raw = open(path, "rb").read()
    charset = re.search(rb"\*CHARSET\s+(\S+)", raw).group(1).decode()
    text = raw.decode("utf-8-sig" if raw[:3] == b"\xef\xbb\xbf" else charset).replace("\r", "")
    fields = dict(re.findall(r"^\*(\w+) (.+)$", text, re.M))
    rate, start = fields["RATE"], frame_of(fields["START"], fields["RATE"])
    latest, deleted = {}, []
    for number, a, b, place, flag, body in re.findall(r"^(\d+) ([\d:;]+) ([\d:;]+) ([BT])( X)?\n((?:.+\n?)*)", text, re.M):
        latest[int(number)] = ((frame_of(a, rate) - start) % day(rate)[-1], (frame_of(b, rate) - start) % day(rate)[-1] + 1, place, tags(body))
        if flag:
            deleted.append(int(number))
    kept = {n: cue for n, cue in latest.items() if n not in deleted and cue[3]}
    return rate, frame_of(fields["LENGTH"], rate), kept


def stamp(ms):
    return "%02d:%02d:%02d.%03d" % (ms // 3600000, ms // 60000 % 60, ms // 1000 % 60, ms % 1000)


with open(HOME + "catalogue.csv", newline="", encoding="utf-8") as handle:
    before = handle.readlines()
after = []
for line in before:
    (row,) = csv.reader([line], delimiter=";")
    if row[2] == "release":
        cues, offset = [], 0
        for reel, path in enumerate(row[4].split("+")):
            rate, length, kept = cues_of(HOME + path)
            for number, (a, b, place, text) in kept.items():
                cues.append([to_ms(offset + a * units(rate)), reel, number, to_ms(offset + b * units(rate)), place, text])
            offset += length * units(rate)
        cues.sort(key=lambda cue: cue[:3])
        for n, cue in enumerate(cues):
            later = [other[0] for other in cues[n + 1 :] if other[4] == cue[4]]
            cue[3] = min([cue[3], *later[:1]])
        cues = [cue for cue in cues if cue[0] < cue[3]]
        with open(f"{HOME}vtt/{row[0]}.vtt", "w", encoding="utf-8") as out:
            out.write("WEBVTT - " + row[0] + "\n")
            for n, (a, _, _, b, place, text) in enumerate(cues, 1):
                print("", n, f"{stamp(a)} --> {stamp(b)}" + (" line:0" if place == "T" else ""), *text, sep="\n", file=out)
        prefix = line[: line.index(";release;")]
        line = f"{prefix};release;vtt;vtt/{row[0]}.vtt;{len(cues)};{stamp(max(cue[3] for cue in cues))}\r\n"
    after.append(line)
with open(HOME + "catalogue.new", "w", newline="", encoding="utf-8") as handle:
    handle.writelines(after)
os.replace(HOME + "catalogue.new", HOME + "catalogue.csv")
