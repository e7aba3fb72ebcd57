"""Rung 3, second half: filter, pick and sort lines."""

from drills_parts import Check, Draw, Drill, Kind


def _keep_matching(draw: Draw) -> Drill:
    source, target, (colour, *others) = draw.path(), draw.path(), draw.colours(6)
    lines = [f"{one} {draw.word()}" for one in [colour] * 3 + others]
    draw.random.shuffle(lines)
    ask = (
        f"Collect in {target} whatever lines of {source} contain {colour}, in the order in which they stand."
    )
    return Drill(
        sentences=(ask,),
        target=target,
        command=f"grep {colour} {source} > {target}",
        wanted=f"[row for row in given if {colour!r} in row.split()]",
        checks=(
            Check("lines_collected", ask, "share(found, wanted)"),
            Check("those_and_no_more", ask, "found == wanted"),
        ),
        given={source: lines},
    )


def _drop_matching(draw: Draw) -> Drill:
    source, target, (colour, *others) = draw.path(), draw.path(), draw.colours(4)
    lines = [f"{one} {draw.word()}" for one in [colour] * 5 + others]
    draw.random.shuffle(lines)
    ask, keep = (
        f"Nobody wants the {colour} things of {source} any more.",
        f"The remaining lines go to {target}.",
    )
    return Drill(
        sentences=(ask, keep),
        target=target,
        command=f"grep -v {colour} {source} > {target}",
        wanted=f"[row for row in given if {colour!r} not in row.split()]",
        checks=(
            Check("others_only", ask, f"0 if {colour!r} in said else share(found, wanted)"),
            Check("all_the_rest", keep, "found == wanted"),
        ),
        given={source: lines},
    )


def _sort_lines(draw: Draw) -> Drill:
    source, target = draw.path(), draw.path()
    ask, goes = f"Sort {source} from A to Z.", f"The sorted lines go to {target}, the old file stays."
    return Drill(
        sentences=(ask, goes),
        target=target,
        command=f"sort {source} > {target}",
        wanted="sorted(given)",
        checks=(
            Check("lines_in_place", ask, "placed(found, wanted)"),
            Check("all_sorted", goes, "found == wanted"),
        ),
        given={source: draw.astray(sorted(draw.words(6)))},
    )


def _sort_numbers(draw: Draw) -> Drill:
    source, target = draw.path(), draw.path()
    numbers = [str(number) for number in draw.astray(sorted(draw.numbers(6)))]
    ask = f"Arrange the numbers of {source} by size, the smallest at the top, and call the outcome {target}."
    return Drill(
        sentences=(ask,),
        target=target,
        command=f"sort -n {source} > {target}",
        wanted="sorted(given, key=int)",
        checks=(
            Check("numbers_in_place", ask, "placed(found, wanted)"),
            Check("all_by_size", ask, "found == wanted"),
        ),
        given={source: numbers},
    )


def _sort_unique(draw: Draw) -> Drill:
    source, target, different = draw.path(), draw.path(), draw.words(4)
    lines = [*draw.astray(sorted(different, reverse=True)), *draw.astray(different)]
    once = f"{source} names everything twice; {target} is to name it once."
    order = "It is an alphabetical list."
    return Drill(
        sentences=(once, order),
        target=target,
        command=f"sort -u {source} > {target}",
        wanted="sorted(set(given))",
        checks=(
            Check("each_once", once, "share(found, wanted)"),
            Check("alphabetical", order, "set(found) == set(wanted) and found == sorted(found)"),
        ),
        given={source: lines},
    )


def _reverse(draw: Draw) -> Drill:
    source, target = draw.path(), draw.path()
    ask = f"Turn {source} upside down: in {target} its last line comes first and its first line last."
    return Drill(
        sentences=(ask,),
        target=target,
        command=f"tac {source} > {target}",
        wanted="given[::-1]",
        checks=(
            Check("lines_turned", ask, "placed(found, wanted)"),
            Check("whole_file", ask, "found == wanted"),
        ),
        given={source: draw.words(6)},
    )


def _comma_column(draw: Draw) -> Drill:
    source, target = draw.path(".csv"), draw.path()
    rows = [f"{word},{colour}" for word, colour in zip(draw.words(5), draw.colours(5), strict=True)]
    where, take = (
        f"A comma divides each line of {source} into two fields.",
        f"List the second fields in {target}, one a line.",
    )
    return Drill(
        sentences=(where, take),
        target=target,
        command=f"cut -d, -f2 {source} > {target}",
        wanted="[row.split(',')[1] for row in given]",
        checks=(
            Check("fields_listed", take, "share(found, wanted)"),
            Check("in_their_order", take, "found == wanted"),
        ),
        given={source: rows},
    )


def _blank_column(draw: Draw) -> Drill:
    source, target = draw.path(), draw.path()
    rows = [f"{word} {number}" for word, number in zip(draw.words(5), draw.numbers(5), strict=True)]
    ask = f"Behind every name in {source} there is a number; write the names without the numbers to {target}."
    return Drill(
        sentences=(ask,),
        target=target,
        command=f"cut -d' ' -f1 {source} > {target}",
        wanted="[row.split()[0] for row in given]",
        checks=(
            Check("names_written", ask, "share(found, wanted)"),
            Check("names_alone", ask, "found == wanted"),
        ),
        given={source: rows},
    )


_GREP = "`grep WORD FILE` keeps the lines that hold a word, `grep -v WORD FILE` those that do not."
_CUT = "Columns: `cut -d, -f2` takes the second field between commas, `cut -d' ' -f1` the first one between blanks."
_SORT = "`sort FILE` orders lines as text, where 10 stands before 9; numbers need `sort -n`."

KINDS = (
    Kind(
        "r3-keep-matching",
        "Keep the lines that hold a word.",
        _GREP,
        "Filters with `grep` once.",
        _keep_matching,
    ),
    Kind(
        "r3-drop-matching",
        "Leave out the lines that hold a word.",
        _GREP,
        "Turns the filter round with `grep -v` instead of listing what stays.",
        _drop_matching,
    ),
    Kind(
        "r3-sort-lines",
        "Sort lines as text.",
        _SORT,
        "Uses `sort` and writes to the other file.",
        _sort_lines,
    ),
    Kind(
        "r3-sort-numbers",
        "Sort lines as numbers.",
        _SORT,
        "Gives `sort` the flag for numbers.",
        _sort_numbers,
    ),
    Kind(
        "r3-sort-unique",
        "Sort lines and keep one of each.",
        "`sort -u` orders and keeps one of each; `uniq` alone only drops repetitions that stand together.",
        "Uses `sort -u` and not `uniq` alone.",
        _sort_unique,
    ),
    Kind(
        "r3-reverse-lines",
        "Turn the order of lines round.",
        "`tac FILE` turns the order of lines round.",
        "Uses `tac`, which needs no numbers of lines.",
        _reverse,
    ),
    Kind(
        "r3-comma-column",
        "Pick a column between commas.",
        _CUT,
        "Cuts by the comma with `cut -d,`.",
        _comma_column,
    ),
    Kind(
        "r3-blank-column",
        "Pick a column between blanks.",
        _CUT,
        "Tells `cut` that a blank divides.",
        _blank_column,
    ),
)
