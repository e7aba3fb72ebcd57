"""Captions, lists of cuts and options, family by family, with what has to come of them."""

import random
from fractions import Fraction

import reference

RATES = tuple(reference.RATES)
BODIES = (["Wait."], ["Two lines", "of text"], ["<i>Música</i> ♪"], ["- Who?", "- Nobody  "], [], ["12"], ["a --> b"])


class Dice:
    def __init__(self, seed):
        self._random = random.Random(seed).random

    def below(self, limit):
        return int(self._random() * limit)

    def pick(self, items):
        return items[self.below(len(items))]

    def chance(self, share):
        return self._random() < share


def label(number, rate, dice):
    """The label of a frame."""
    nominal = reference.RATES[rate][0]
    if rate == "29.97DF":
        tens, rest = divmod(number, 17_982)
        number += 18 * tens + 2 * max(0, (rest - 2) // 1798)
    seconds, frame = divmod(number, nominal)
    return f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}{dice.pick(':;')}{frame:02d}"


def cut_list(dice, rate, count, joined):
    """A list of cuts over the first minutes, as frames and as bytes."""
    lines, at = [dice.pick(["# cut of Tuesday", "", "  # none"]), f"  RATE {rate} "], dice.below(900)
    for number in range(count):
        length = dice.pick([30, 47, 101, 250, 333, 700]) + dice.below(30)
        lines.append(f"{dice.pick(['A', 'b-', 'RATE', '7'])}{number} {label(at, rate, dice)}  {label(at + length, rate, dice)}")
        if not dice.chance(joined):
            at = max(0, at + dice.pick([-800, -300, 1, 40, 400]) + dice.below(90))
            at += 1 if dice.chance(joined) else 0
        at += length if dice.chance(0.9) else 0
        lines += [""] * dice.below(2)
    return (dice.pick(["\n", "\r\n"]).join(lines) + "\n").encode()


def captions(dice, cues):
    """Bytes of a SubRip file."""
    end, blocks = dice.pick(["\n", "\n", "\r\n"]), []
    for number, (start, stop, body) in enumerate(cues, 1):
        blocks.append(end.join([str(number + dice.below(3)), f"{reference.clock(start)} --> {reference.clock(stop)}", *body]) + end)
    return b"\xef\xbb\xbf" * dice.chance(0.3) + end.join(blocks).encode()


def random_cues(dice, edges, count):
    """Cues all over the source, many of them exactly at an edge or next to it."""
    found = []
    for _ in range(count):
        start = max(0, dice.pick(edges) + dice.pick([0, 0, -1, 1, -199, -200, -201, 7])) if dice.chance(0.6) else dice.below(max(edges) + 4000)
        stop = start + dice.pick([0, 1, 150, 199, 200, 900, 1400, 3100, 9000]) + dice.below(40)
        if dice.chance(0.3):
            stop = max(start, dice.pick(edges) + dice.pick([0, -1, 1, 199, 200, 201]))
        found.append((start, stop, dice.pick(BODIES)))
    return found if dice.chance(0.5) else sorted(found, key=lambda cue: cue[0])


def cut_call(seed, rate, joined, plain):
    """(captions, list); `plain` leaves out cues that make slivers or joined pieces."""
    dice = Dice(seed)
    edl = cut_list(dice, rate, 7 + dice.below(6), joined)
    cuts = reference.events(edl)
    cues = random_cues(dice, sorted({edge for cut in cuts for edge in cut[2:4]}), 90)
    if plain:
        cues = [cue for cue in cues if not any(piece[3] or piece[4] for piece in reference.pieces([cue], cuts))]
    return captions(dice, cues), edl


BAD_LISTS = (
    b"", b"# nothing\n", b"RATE 25\n", b"RATE 29.97\nA 00:00:00:00 00:00:01:00\n", b"A 00:00:00:00 00:00:01:00\n",
    b"RATE 25\nA 00:00:00:00 00:00:01:25\n", b"RATE 24\nA 00:00:00:00 00:00:60:00\n", b"RATE 29.97DF\nA 00:00:00:00 00:01:00;01\n",
    b"RATE 25\nA 00:00:01:00 00:00:01:00\n", b"RATE 25\nA 00:00:00:00\n", b"RATE 25\nA 00:00:00:00 00:00:01:00 cut\n",
    b"RATE 25\nA 00:00:00:00 00:00:01:00\nRATE 30\n", b"RATE 25\nA 0:00:00:00 00:00:01:00\n", b"RATE 25\nA 00:00:00:00 00:00:01.10\n", b"RATE 25\nA\xff 00:00:00:00 00:00:01:00\n",
)
ODD_LISTS = (
    b"#\r\n\r\n  RATE 29.97DF  \r\n#A 9\r\n RATE 00:00:00;00 00:10:00:00 \r\n", b"RATE 30\nA 00:00:00:29 99:59:59:29", b"RATE 29.97NDF\nA 00:00:00:00 00:01:00:00\nA 00:00:00:00 00:01:00:01\n",
)


def call(data, edl=None, **options):
    """(words, captions, list, bytes of OUT or None); words hold IN, OUT and EDL for the files."""
    words = ["IN", "OUT"]
    for name, value in options.items():
        words += [f"--{name.replace('_', '-')}", value]
    if edl is not None:
        words = ["--edl", "EDL", *words] if len(data) % 2 else [*words, "--edl", "EDL"]
    try:
        numbers = {"scale": Fraction(options.get("scale", "1")), "shift": int(options.get("shift", "0")), "gap": int(options["min_gap"]) if "min_gap" in options else None}
        return words, data, edl, reference.output(data, edl, **numbers)
    except ValueError:
        return words, data, edl, None


OLD_WAYS = (
    (b"\n  \n 7 \n00:00:09,000 -->  00:00:11,500 \nSecond\n \t\n00:00:01,000 --> 00:00:01,000\nNo number\n   \n\n8\n100:00:00,999 --> 100:00:02,000\n\n", {}),
    (b"1\r\n00:00:01,000 --> 00:00:03,000\r\nA\r\n\r\n2\n00:00:03,000 --> 00:00:04,000\nB\n3\n\n\n00:00:03,000 --> 00:00:09,000\nC", {"min_gap": "1", "scale": "1/2"}),
    (b"\xef\xbb\xbf1\n00:00:01,001 --> 00:00:03,001\nA\n\n2\n00:00:03,001 --> 00:00:05,001\nB\n\n3\n00:00:00,000 --> 00:00:01,003\nZ\n", {"shift": "-1001", "scale": "3/2", "min_gap": "2"}),
    (b"", {"shift": "5"}), (b"1\n00:00:03,000 --> 00:00:02,999\nA\n", {}), (b"1\n00:00:03.000 --> 00:00:04.000\nA\n", {}), (b"1\n", {}), (b"1\n00:60:03,000 --> 01:00:04,000\nA\n", {}),
)


def families():
    """{metric: calls}"""
    plain = [cut_call(100 + n, rate, 0, True) for n, rate in enumerate(RATES)]
    seams = [cut_call(200 + n, rate, 0.6, False) for n, rate in enumerate(("29.97DF", "25", "30", "23.976"))]
    mixed = [cut_call(300 + n, rate, 0.3, False) for n, rate in enumerate(("29.97DF", "25", "23.976", "24"))]
    choices = ({"scale": "25/24", "shift": "-4200"}, {"min_gap": "80"}, {"shift": "+1500", "min_gap": "120", "scale": "1000/1001"}, {"scale": "2", "shift": "-90000", "min_gap": "0"})
    together = [call(data, edl, **options) for (data, edl), options in zip(mixed, choices)]
    together += [call(data, **options) for (data, _), options in zip(mixed, ({}, choices[0], choices[1], choices[2]))]
    together += [call(data, **options) for data, options in OLD_WAYS]
    data = mixed[0][0]
    refusals = [call(data, edl) for edl in (*BAD_LISTS, *ODD_LISTS)]
    refusals += [call(data.replace(b" --> ", b" -> ", 1), mixed[0][1]), call(b"", mixed[0][1])]
    refusals += [(["IN", "OUT", "--edl"], data, None, None), (["IN", "OUT", "--edl", "NONE"], data, None, None), (["IN", "--edl", "EDL"], data, ODD_LISTS[0], None)]
    refusals.append((["--edl", "NONE", "IN", "OUT", "--edl", "EDL"], data, ODD_LISTS[2], reference.output(data, ODD_LISTS[2])))
    return {"cutting": [call(*pair) for pair in plain], "joining": [call(*pair) for pair in seams], "together": together, "refusals": refusals}
