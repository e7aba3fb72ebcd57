"""Turn timecode labels into frames and milliseconds.

Usage: python3 timecode.py RATE START LABEL...
RATE is 24, 25, 30, 23.976, 29.97NDF or 29.97DF; START is the label of the programme's first frame.
"""

import re
import sys
from fractions import Fraction

RATES = {
    "24": (24, Fraction(24), False), "25": (25, Fraction(25), False), "30": (30, Fraction(30), False),
    "23.976": (24, Fraction(24000, 1001), False), "29.97NDF": (30, Fraction(30000, 1001), False),
    "29.97DF": (30, Fraction(30000, 1001), True),
}


def frames(label, rate):
    """Frame number of a label since 00:00:00:00."""
    nominal, _, drop = RATES[rate]
    hours, minutes, seconds, number = map(int, re.split("[:;]", label))
    if minutes > 59 or seconds > 59 or number >= nominal:
        raise ValueError(f"{label} is no label at {rate}")
    count = ((hours * 60 + minutes) * 60 + seconds) * nominal + number
    if drop:
        whole = hours * 60 + minutes
        if number < 2 and seconds == 0 and minutes % 10:
            raise ValueError(f"{label} does not exist in drop frame")
        count -= 2 * (whole - whole // 10)
    return count


def day(rate):
    """Frames that have a label between midnight and midnight."""
    return frames("23:59:59:" + str(RATES[rate][0] - 1), rate) + 1


def since(label, start, rate):
    """Frames from the first frame of the programme to a label, over midnight if need be."""
    return (frames(label, rate) - frames(start, rate)) % day(rate)


def milliseconds(count, rate):
    """Time of a frame number, rounded half up."""
    return int(Fraction(count * 1000) / RATES[rate][1] + Fraction(1, 2))


if __name__ == "__main__":
    if len(sys.argv) < 4 or sys.argv[1] not in RATES:
        sys.exit(__doc__)
    for label in sys.argv[3:]:
        count = since(label, sys.argv[2], sys.argv[1])
        print(label, count, milliseconds(count, sys.argv[1]))
