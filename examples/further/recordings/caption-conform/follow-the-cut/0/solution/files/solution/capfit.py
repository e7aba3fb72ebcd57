"""Cut, scale, shift and tidy SubRip captions. See CAPFIT.md and EDL.md."""

import re
import sys
from fractions import Fraction

TIME = re.compile(r"(\d\d+):([0-5]\d):([0-5]\d),(\d{3})", re.ASCII)
USAGE = "usage: capfit.py IN OUT [--scale NUM/DEN] [--shift MS] [--min-gap MS] [--edl FILE]"
LABEL = re.compile(r"(\d\d):([0-5]\d):([0-5]\d)[:;](\d\d)", re.ASCII)
SLIVER = 200
RATES = {
    "24": (24, Fraction(24)),
    "25": (25, Fraction(25)),
    "30": (30, Fraction(30)),
    "23.976": (24, Fraction(24000, 1001)),
    "29.97NDF": (30, Fraction(30000, 1001)),
    "29.97DF": (30, Fraction(30000, 1001)),
}


class Refused(Exception):
    """A fault of the caller or of a file; the text says where."""


def parse_time(text, where):
    match = TIME.fullmatch(text)
    if not match:
        raise Refused(f"{where}: no time: {text}")
    hours, minutes, seconds, thousandths = map(int, match.groups())
    return ((hours * 60 + minutes) * 60 + seconds) * 1000 + thousandths


def format_time(ms):
    return f"{ms // 3600000:02d}:{ms // 60000 % 60:02d}:{ms // 1000 % 60:02d},{ms % 1000:03d}"


def half_up(value):
    return int((2 * value + 1) // 2)


def read(path):
    """(mark, line end, cues); a cue is [start, end, text lines]."""
    try:
        with open(path, "rb") as handle:
            data = handle.read()
    except OSError as error:
        raise Refused(f"{path}: {error.strerror}") from error
    mark = data.startswith(b"\xef\xbb\xbf")
    try:
        text = data[3 * mark :].decode("utf-8")
    except UnicodeDecodeError as error:
        raise Refused(f"{path}: not UTF-8") from error
    end = "\r\n" if text.partition("\n")[0].endswith("\r") else "\n"
    lines = [line.rstrip("\r") for line in text.split("\n")]
    cues, at = [], 0
    while at < len(lines):
        if not lines[at].strip():
            at += 1
            continue
        if lines[at].strip().isdigit():
            at += 1
        where = f"{path}:{at + 1}"
        parts = lines[at].split(" --> ") if at < len(lines) else []
        if len(parts) != 2:
            raise Refused(f"{where}: no timing line")
        start, stop = (parse_time(part.strip(), where) for part in parts)
        if stop < start:
            raise Refused(f"{where}: ends before it starts")
        at += 1
        body = []
        while at < len(lines) and lines[at].strip():
            body.append(lines[at])
            at += 1
        cues.append([start, stop, body])
    return mark, end, cues


def frame_number(label, rate, where):
    match = LABEL.fullmatch(label)
    nominal = RATES[rate][0]
    if not match:
        raise Refused(f"{where}: no label: {label}")
    hours, minutes, seconds, frame = map(int, match.groups())
    if frame >= nominal:
        raise Refused(f"{where}: no such frame: {label}")
    count = ((hours * 60 + minutes) * 60 + seconds) * nominal + frame
    if rate == "29.97DF":
        if seconds == 0 and frame < 2 and minutes % 10 != 0:
            raise Refused(f"{where}: a dropped label: {label}")
        total = hours * 60 + minutes
        count -= 2 * (total - total // 10)
    return count


class Event:
    """Source frames that the new cut takes, and where it puts them; moments are milliseconds."""

    def __init__(self, first, after, place, fps):
        self.first, self.after = first, after
        self.source_in, self.source_out = (half_up(number * 1000 / fps) for number in (first, after))
        self.begin, self.finish = (half_up(number * 1000 / fps) for number in (place, place + after - first))


def read_events(path):
    try:
        with open(path, "rb") as handle:
            lines = handle.read().decode("utf-8").split("\n")
    except OSError as error:
        raise Refused(f"{path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise Refused(f"{path}: not UTF-8") from error
    rate, place, events = None, 0, []
    for at, line in enumerate(lines, 1):
        where, words = f"{path}:{at}", line.split()
        if not words or words[0].startswith("#"):
            continue
        if rate is None:
            if len(words) != 2 or words[0] != "RATE" or words[1] not in RATES:
                raise Refused(f"{where}: no rate")
            rate = words[1]
            continue
        if len(words) != 3:
            raise Refused(f"{where}: no event")
        first, after = (frame_number(label, rate, where) for label in words[1:])
        if after <= first:
            raise Refused(f"{where}: ends before it starts")
        events.append(Event(first, after, place, RATES[rate][1]))
        place += after - first
    if not events:
        raise Refused(f"{path}: no event")
    return events


def cut(cues, events):
    """The pieces of cues that the events take, in the order of the events."""
    found, open_pieces = [], {}
    for number, event in enumerate(events):
        joins = number > 0 and events[number - 1].after == event.first
        before, open_pieces = open_pieces if joins else {}, {}
        for index, (start, stop, body) in enumerate(cues):
            if min(stop, event.source_out) <= max(start, event.source_in):
                continue
            piece = before.get(index)
            if piece is None:
                piece = [event.begin + max(start, event.source_in) - event.source_in, 0, body, start < event.source_in, False]
                found.append(piece)
            goes_on = stop >= event.source_out
            piece[1] = event.finish if goes_on else min(event.finish, event.begin + stop - event.source_in)
            piece[4] = stop > event.source_out
            open_pieces[index] = piece
    return [[start, stop, body] for start, stop, body, late, early in found if not (late or early) or stop - start >= SLIVER]


def scaled(cues, factor):
    return [[half_up(start * factor), half_up(stop * factor), body] for start, stop, body in cues]


def shifted(cues, ms):
    """Cues that would end at 0 or before are gone; one that would start before 0 starts at 0."""
    return [[max(0, start + ms), stop + ms, body] for start, stop, body in cues if stop + ms > 0]


def spaced(cues, gap):
    """Cut cues so that the next one in time starts at least `gap` later; what would end before it starts has no length."""
    for cue, following in zip(cues, cues[1:]):
        if following[0] - cue[1] < gap and following[0] > cue[0]:
            cue[1] = max(cue[0], following[0] - gap)
    return cues


def write(path, mark, end, cues):
    blocks = []
    for number, (start, stop, body) in enumerate(cues, 1):
        blocks.append(end.join([str(number), f"{format_time(start)} --> {format_time(stop)}", *body]) + end)
    with open(path, "wb") as handle:
        handle.write(b"\xef\xbb\xbf" * mark + end.join(blocks).encode("utf-8"))


def options(words):
    """({name: value}, paths)"""
    found, paths = {}, []
    words = list(words)
    while words:
        word = words.pop(0)
        if word in ("--scale", "--shift", "--min-gap", "--edl"):
            if not words:
                raise Refused(USAGE)
            found[word] = words.pop(0)
        elif word.startswith("--"):
            raise Refused(USAGE)
        else:
            paths.append(word)
    if len(paths) != 2:
        raise Refused(USAGE)
    return found, paths


def number(text, pattern):
    if not re.fullmatch(pattern, text, re.ASCII):
        raise Refused(f"not understood: {text}")
    return Fraction(text)


def main(words):
    found, (source, target) = options(words)
    scale = number(found.get("--scale", "1"), r"[1-9]\d*(/[1-9]\d*)?")
    shift = int(number(found.get("--shift", "0"), r"[+-]?\d+"))
    gap = int(number(found.get("--min-gap", "0"), r"\d+"))
    mark, end, cues = read(source)
    if "--edl" in found:
        cues = cut(cues, read_events(found["--edl"]))
    cues = shifted(scaled(cues, scale), shift)
    cues.sort(key=lambda cue: cue[0])
    if "--min-gap" in found:
        cues = spaced(cues, gap)
    write(target, mark, end, cues)


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except Refused as problem:
        print(f"capfit: {problem}", file=sys.stderr)
        sys.exit(2)
