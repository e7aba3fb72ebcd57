"""Rung 3, first half: answers that are a number."""

from drills_parts import Check, Draw, Drill, Kind


def _counted(
    ask: str, alone: str, command: str, wanted: str, lines: list[str], paths: tuple[str, str]
) -> Drill:
    """A drill whose answer is a number: the right number earns one part, the bare number the other."""
    source, target = paths
    return Drill(
        sentences=(ask, alone),
        target=target,
        command=command,
        wanted=f"[str({wanted})]",
        checks=(
            Check("number_right", ask, "number(found) == int(wanted[0])"),
            Check("number_alone", alone, "found == wanted"),
        ),
        given={source: lines},
    )


def _count_lines(draw: Draw) -> Drill:
    paths = (draw.path(), draw.path())
    return _counted(
        f"Count the lines of {paths[0]}.",
        f"Write the number, and only the number, to {paths[1]}.",
        f"wc -l < {paths[0]} > {paths[1]}",
        "len(given)",
        draw.words(draw.random.randint(5, 9)),
        paths,
    )


def _count_words(draw: Draw) -> Drill:
    paths = (draw.path(), draw.path())
    lines = [" ".join(draw.words(draw.random.randint(1, 4))) for _ in range(5)]
    return _counted(
        f"How many words does {paths[0]} have altogether?",
        f"The answer stands in {paths[1]} as a bare figure.",
        f"wc -w < {paths[0]} > {paths[1]}",
        "len(words(given))",
        lines,
        paths,
    )


def _count_matching(draw: Draw) -> Drill:
    paths, (colour, *others) = (draw.path(), draw.path()), draw.colours(4)
    lines = [f"{one} {draw.word()}" for one in [colour] * draw.random.randint(3, 5) + others]
    draw.random.shuffle(lines)
    return _counted(
        f"In {paths[0]}, some lines mention {colour}.",
        f"Say how many such lines exist: {paths[1]} must be this count and no more.",
        f"grep -c {colour} {paths[0]} > {paths[1]}",
        f"sum({colour!r} in row.split() for row in given)",
        lines,
        paths,
    )


def _count_different(draw: Draw) -> Drill:
    paths = (draw.path(), draw.path())
    different = draw.words(draw.random.randint(3, 5))
    lines = [*different, *draw.random.choices(different, k=4)]
    draw.random.shuffle(lines)
    return _counted(
        f"Entries of {paths[0]} occur repeatedly; find the number of different ones.",
        f"Leave that number without any words in {paths[1]}.",
        f"sort -u {paths[0]} | wc -l > {paths[1]}",
        "len(set(given))",
        lines,
        paths,
    )


def _largest(draw: Draw) -> Drill:
    paths = (draw.path(), draw.path())
    numbers = sorted(draw.numbers(6))
    lines = [str(number) for number in draw.astray(numbers)]
    lines.sort(key=lambda line: line == str(numbers[-1]))  # never at the top
    return _counted(
        f"Which is the largest number in {paths[0]}?",
        f"It alone goes into {paths[1]}.",
        f"sort -n {paths[0]} | tail -n 1 > {paths[1]}",
        "max(map(int, given))",
        lines,
        paths,
    )


_WC = "`wc -l < FILE` prints the number alone; with the file as an argument its name is printed as well."
_COUNTS = "`wc -w` counts words, `grep -c WORD FILE` counts the lines that hold a word."

KINDS = (
    Kind(
        "r3-count-lines",
        "Count the lines of a file.",
        _WC,
        "Feeds `wc -l` with an arrow, so that no file name is printed.",
        _count_lines,
    ),
    Kind(
        "r3-count-words", "Count the words of a file.", _COUNTS, "Uses `wc -w` with an arrow.", _count_words
    ),
    Kind(
        "r3-count-matching",
        "Count the lines that hold a word.",
        _COUNTS,
        "Has `grep -c` count instead of counting by eye.",
        _count_matching,
    ),
    Kind(
        "r3-count-different",
        "Count different lines.",
        "Count different lines by sorting them first: `sort -u FILE | wc -l`.",
        "Sorts and drops repetitions before counting.",
        _count_different,
    ),
    Kind(
        "r3-largest-number",
        "Find the largest number of a file.",
        "The largest number is the last line after `sort -n`, so end with `tail -n 1`.",
        "Sorts as numbers and takes the last line.",
        _largest,
    ),
)
