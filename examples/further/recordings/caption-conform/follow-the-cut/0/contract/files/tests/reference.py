"""What capfit has to write: the old steps and the new one. Works on bytes, raises ValueError where it has to refuse."""

import re
from fractions import Fraction

RATES = {"24": (24, 1000), "25": (25, 1000), "30": (30, 1000), "23.976": (24, 1001), "29.97NDF": (30, 1001), "29.97DF": (30, 1001)}
SLIVER_MS = 200


def half_up(value):
    return int(value + Fraction(1, 2))  # no time is negative here


# ---- lists of cuts


def frame(label, rate):
    """Number of the frame that a label names."""
    match = re.fullmatch(r"(\d\d):(\d\d):(\d\d)[:;](\d\d)", label, re.ASCII)
    hours, minutes, seconds, number = map(int, match.groups()) if match else (0, 60, 0, 0)
    nominal, drop = RATES[rate][0], rate == "29.97DF"
    if minutes > 59 or seconds > 59 or number >= nominal or (drop and number < 2 and seconds == 0 and minutes % 10):
        raise ValueError(f"no label: {label}")
    count = (hours * 3600 + minutes * 60 + seconds) * nominal + number
    return count - 2 * (hours * 54 + minutes - minutes // 10) * drop


def moment(number, rate):
    nominal, per = RATES[rate]
    return half_up(Fraction(number * per, nominal))


def events(data):
    """[(first frame, frame after the last, in, out, start in the new cut, end there)], moments in milliseconds."""
    lines = [line.strip() for line in data.decode("utf-8").split("\n")]
    lines = [line for line in lines if line and not line.startswith("#")]
    if not lines or lines[0].split()[:1] != ["RATE"] or len(lines[0].split()) != 2 or lines[0].split()[1] not in RATES or len(lines) < 2:
        raise ValueError("no rate or no event")
    rate, place, found = lines[0].split()[1], 0, []
    for line in lines[1:]:
        words = line.split()
        if len(words) != 3:
            raise ValueError(f"no event: {line}")
        first, after = frame(words[1], rate), frame(words[2], rate)
        if after <= first:
            raise ValueError("no frames")
        found.append((first, after, moment(first, rate), moment(after, rate), moment(place, rate), moment(place + after - first, rate)))
        place += after - first
    return found


def pieces(cues, cuts):
    """[(start, end, body, joined, sliver)] in their order; slivers are still there."""
    found = []
    for number, (_, _, first, after, begin, finish) in enumerate(cuts):
        for start, stop, body in cues:
            if min(stop, after) <= max(start, first) or (number and _continues(cuts, number - 1, start, stop)):
                continue
            last = number
            while _continues(cuts, last, start, stop):
                last += 1
            _, _, last_in, last_out, last_begin, last_finish = cuts[last]
            piece_start = begin + max(start, first) - first
            piece_end = last_finish if stop >= last_out else min(last_finish, last_begin + stop - last_in)
            cut = start < first or stop > last_out
            found.append([piece_start, piece_end, body, last > number, cut and piece_end - piece_start < SLIVER_MS])
    return found


def _continues(cuts, number, start, stop):
    """Whether a cue lies on both sides of the seam behind an event, and the seam is none in the source."""
    if number + 1 == len(cuts) or cuts[number][1] != cuts[number + 1][0]:
        return False
    seam = cuts[number][3]
    return start < seam < stop and max(start, cuts[number][2]) < seam


# ---- captions


def read(data):
    mark = data.startswith(b"\xef\xbb\xbf")
    text = data[3:].decode() if mark else data.decode()
    end = "\r\n" if re.match(r"[^\n]*\r\n", text) else "\n"
    cues, block = [], []
    for line in [*(line.rstrip("\r") for line in text.split("\n")), ""]:
        if line.strip():
            block.append(line)
        elif block:
            cues.append(_cue(block))
            block = []
    return mark, end, cues


def _cue(block):
    block = block[1:] if block[0].strip().isdigit() else block
    match = re.fullmatch(r"\s*(\d\d+):([0-5]\d):([0-5]\d),(\d{3})\s* --> \s*(\d\d+):([0-5]\d):([0-5]\d),(\d{3})\s*", block[0] if block else "", re.ASCII)
    if not match:
        raise ValueError("no timing line")
    n = [int(group) for group in match.groups()]
    start, stop = (((h * 60 + m) * 60 + s) * 1000 + ms for h, m, s, ms in (n[:4], n[4:]))
    if stop < start:
        raise ValueError("ends before it starts")
    return start, stop, block[1:]


def clock(ms):
    return f"{ms // 3_600_000:02d}:{ms // 60_000 % 60:02d}:{ms // 1000 % 60:02d},{ms % 1000:03d}"


def output(data, edl=None, scale=Fraction(1), shift=0, gap=None):
    """Bytes of OUT."""
    mark, end, cues = read(data)
    if edl is not None:
        cues = [(start, stop, body) for start, stop, body, _, sliver in pieces(cues, events(edl)) if not sliver]
    moved = [[half_up(start * scale) + shift, half_up(stop * scale) + shift, body] for start, stop, body in cues]
    kept = sorted(([max(0, start), stop, body] for start, stop, body in moved if stop > 0), key=lambda cue: cue[0])
    if gap is not None:
        for cue, (following, *_) in zip(kept, kept[1:]):
            if cue[0] < following < cue[1] + gap:
                cue[1] = max(cue[0], following - gap)
    blocks = [end.join([str(n), f"{clock(start)} --> {clock(stop)}", *body]) + end for n, (start, stop, body) in enumerate(kept, 1)]
    return b"\xef\xbb\xbf" * mark + end.join(blocks).encode()
