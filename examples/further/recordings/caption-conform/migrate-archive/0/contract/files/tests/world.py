"""The archive, made from one seed. `files()` returns what lies in /app/archive, byte for byte."""

import random

TEXTS = {
    "ISO-8859-1": ("Où est la clé du phare ?", "Das Schiff läuft um fünf ein.", "{i}Pendant ce temps,\nà l'autre bout du port...{/i}", "Grüße aus Bergen & Umgebung", "Señor, ¡el mar!"),
    "CP850": ("Der Fährmann schläft noch.", "Préparez les filets,\n{i}vite{/i} !", "½ Meile, {C3}höchstens{C7}.", "Çela suffit.", "{n} Auf der Reeperbahn {n}"),
    "WINDOWS-1250": ("Příliš žluťoučký kůň\núpěl ďábelské ódy.", "Łódź płynie na wschód.", "{i}Szum fal{/i}", "Žádný vítr, žádné plachty.", "„Dobrou noc,” řekla."),
    "UTF-8": ("Сколько до берега?", "{n} Ναυτικό τραγούδι {n}\n{i}χορωδία", "¿Quién va?", "It's 5 < 6, & that is > nothing.", "海が静かです。"),
}
PLAIN = (
    "Wait for me at the pier.", "{i}The radio crackles.", "Look {{there}!", "R&D says no.", "{C2}- Who is it?\n{C4}- Nobody.", "{n}", "{i}{/i}", "   Two   spaces   ",
    "{i} Slowly {/i} {i}now.{/i}", "One line,\n{C1} \nand another.", "a <b> c", "{/i}Never opened.", "{i}Quiet{i} please.{/i} Go on.", "Last {i}words \nbefore\n the storm{/i} .",
)
PROGRAMMES = (
    # name, title, status, reels: (file, rate, start, hours, charset, line end, mark)
    ("harbour", "Hafen im Winter", "release", (("reels/1988/harbour.cap", "25", "10:00:00:00", 1.5, "CP850", "\r\n", False),)),
    ("lighthouse", "Le phare; une histoire", "release", (("reels/1991/phare_a.cap", "29.97DF", "01:00:00;00", 1.2, "ISO-8859-1", "\n", False),)),
    ("ferry", "Prom", "hold", (("reels/1993/prom.cap", "25", "00:00:00:00", 0.3, "WINDOWS-1250", "\n", False),)),
    ("strait", "The Strait", "release", (
        ("reels/1994/strait_1.cap", "23.976", "00:59:50:00", 0.36, "UTF-8", "\n", False),
        ("reels/1994/strait_2.cap", "29.97DF", "23:50:00;00", 0.42, "UTF-8", "\r\n", True),
        ("reels/1994/strait_3.cap", "24", "03:00:00:00", 0.2, "ISO-8859-1", "\n", False),
    )),
    ("kelp", 'Kelp, or "sea oak"', "release", (("reels/1996/kelp.cap", "29.97NDF", "01:00:00:00", 2.1, "ISO-8859-1", "\n", True),)),
    ("dunes", "Duny", "release", (("reels/1996/duny.cap", "24", "00:00:00:00", 0.9, "WINDOWS-1250", "\r\n", False),)),
    ("anchor", "Anchor", "withdrawn", (("reels/1997/anchor.cap", "29.97DF", "00:00:00;00", 0.2, "UTF-8", "\n", False),)),
    ("night-watch", "Night Watch", "release", (("reels/1998/night.cap", "25", "23:20:00:00", 1.4, "UTF-8", "\n", True),)),
    ("tide", "Ebbe und Flut", "release", (("reels/1999/tide_a.cap", "29.97DF", "00:00:00;00", 0.5, "CP850", "\n", False), ("reels/1999/tide_b.cap", "29.97DF", "00:30:00;00", 0.45, "CP850", "\n", False))),
    ("polar", "Polar", "release", (("reels/2001/polar.cap", "23.976", "01:00:00:00", 1.1, "UTF-8", "\n", False),)),
    ("skerry", "Skerry", "review", (("reels/2001/skerry.cap", "30", "00:00:00:00", 0.2, "ISO-8859-1", "\n", False),)),
    ("buoy", "Bóje 7", "release", (("reels/2003/buoy.cap", "30", "00:58:00:00", 0.7, "WINDOWS-1250", "\n", False),)),
)
NOMINAL = {"24": 24, "25": 25, "30": 30, "23.976": 24, "29.97NDF": 30, "29.97DF": 30}


class Dice:
    """Only `Random.random` is promised to stay the same in every Python."""

    def __init__(self, seed):
        self._random = random.Random(seed).random

    def below(self, limit):
        return int(self._random() * limit)

    def pick(self, items):
        return items[self.below(len(items))]

    def chance(self, share):
        return self._random() < share


def all_labels(rate):
    """Frames between midnight and midnight."""
    return 86_400 * NOMINAL[rate] - (2592 if rate == "29.97DF" else 0)


def frames(label, rate):
    hours, minutes, seconds, number = map(int, label.replace(";", ":").split(":"))
    count = ((hours * 60 + minutes) * 60 + seconds) * NOMINAL[rate] + number
    return count - (2 * (hours * 54 + minutes - minutes // 10) if rate == "29.97DF" else 0)


def label(count, rate):
    """The label of a frame, counted from midnight."""
    count %= all_labels(rate)
    if rate == "29.97DF":
        tens, rest = divmod(count, 17_982)
        count += 18 * tens + 2 * max(0, (rest - 2) // 1798)
    seconds, number = divmod(count, NOMINAL[rate])
    mark = ";" if rate == "29.97DF" else ":"
    return f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}{mark}{number:02d}"


def _text(dice, charset):
    return dice.pick(TEXTS[charset] if dice.chance(0.5) else PLAIN)


def reel(dice, rate, start, hours, charset, end, marked):
    """Bytes of one .cap file."""
    length = int(hours * 3600 * NOMINAL[rate]) + dice.below(50)
    first, at, cues = frames(start, rate), 20 + dice.below(40), []
    for number in range(1, 25):
        shown = 18 + dice.below(90)
        cues.append([number, at, at + shown, dice.pick("BBBT"), "", _text(dice, charset)])
        at += dice.pick([shown // 2, shown + 1, shown, shown + 40, 0, length // 24, length // 22])
        if at > length - 200:
            break
    if rate == "29.97DF":  # cues at the labels around a minute
        minute = frames("00:07:00;02" if start[3:5] != "00" else "00:04:00;02", rate)
        cues += [[61, minute - 1, minute - 1, "B", "", "Now!"], [62, minute, minute + 29, "T", "", "Now?"]]
    fixes = []
    for cue in list(cues):
        if dice.chance(0.12):
            fixes.append([cue[0], cue[1] + dice.below(9), cue[2] + dice.below(12), dice.pick("BT"), "", _text(dice, charset)])
        elif dice.chance(0.06):
            fixes.append([*cue[:4], "X", cue[5]])
        elif dice.chance(0.05):
            cue[4] = "X"
            fixes.append([*cue[:4], "", _text(dice, charset)])
    if dice.chance(0.7):
        fixes.append([80, length - 300, length - 250, "B", "", "{i}The end."])
        fixes.append([80, length - 280, length - 230, "B", "", "{i}The end?"])
    head = [f"*RATE {rate}", f"*START {start}", f"*LENGTH {label(length, rate)}", f"*CHARSET {'ISO-8859-1' if marked else charset}", ""]
    lines = head + _written(cues[::-1] if dice.chance(0.3) else cues, rate, first)
    if fixes:
        lines += ["*CORRECTIONS", ""] + _written(fixes, rate, first)
    text = end.join(lines)
    known = text.encode("utf-8" if marked else charset.lower(), errors="replace")
    return (b"\xef\xbb\xbf" if marked else b"") + known


def _written(cues, rate, first):
    lines = []
    for number, start, stop, place, flag, text in cues:
        lines.append(f"{number:04d} {label(first + start, rate)} {label(first + stop, rate)} {place}{' X' if flag else ''}")
        lines += [*text.split("\n"), ""]
    return lines


def files():
    """{path below archive: bytes}"""
    dice, found = Dice(1988), {}
    rows = ["programme;title;status;format;captions;cues;ends_at"]
    for name, title, status, reels in PROGRAMMES:
        quoted = '"' + title.replace('"', '""') + '"' if ";" in title or '"' in title else title
        rows.append(f"{name};{quoted};{status};cap;{'+'.join(r[0] for r in reels)};;")
        for path, *rest in reels:
            found[path] = reel(dice, *rest)
    rows.insert(5, "pilot;Pilot (film lost);hold;none;;;")
    rows.insert(9, 'gulls;"Gulls; a study";released;vtt;vtt/gulls.vtt;2;00:00:07.250')
    found["catalogue.csv"] = ("\r\n".join(rows) + "\r\n").encode()
    found["vtt/gulls.vtt"] = "WEBVTT\n\n00:01.000 --> 00:03.000\nGulls.\n\n00:05.000 --> 00:07.250\nMore gulls.\n".encode()
    found["reels/1993/prom.cap.bak"] = found["reels/1993/prom.cap"][:400]
    found["reels/1994/README.txt"] = b"Reel 2 was captioned by another house. Same text system.\n"
    found["reels/1998/night_old.cap"] = found["reels/1998/night.cap"].replace(b"23:2", b"23:1")
    return found


if __name__ == "__main__":
    import pathlib
    import sys

    for path, data in files().items():
        target = pathlib.Path(sys.argv[1], path)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)
