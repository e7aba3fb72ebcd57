"""Rung 2: add to a file, change it in place, or take a part of it to another one."""

from drills_parts import Check, Draw, Drill, Kind


def _append(draw: Draw) -> Drill:
    word, path, lines = draw.word(), draw.path(), draw.words(4)
    add, keep = f"Add the line {word} at the end of {path}.", "The lines that are there already stay."
    return Drill(
        sentences=(add, keep),
        target=path,
        command=f"echo {word} >> {path}",
        wanted=f"[*given, {word!r}]",
        checks=(
            Check("line_added", add, f"{word!r} in found"),
            Check("at_the_end", add, f"found[-1:] == [{word!r}] and found[:1] == given[:1]"),
            Check(
                "rest_kept", keep, f"{word!r} in found and [row for row in found if row != {word!r}] == given"
            ),
        ),
        given={path: lines},
        must=f"Leaves {path} with its old lines in their order and {word} as the last one.",
    )


def _first_line(draw: Draw) -> Drill:
    source, target = draw.path(), draw.path()
    ask, only = f"Copy the first line of {source} to a new file {target}.", "Take no other line along."
    return Drill(
        sentences=(ask, only),
        target=target,
        command=f"head -n 1 {source} > {target}",
        wanted="given[:1]",
        checks=(
            Check("begins_right", ask, "found[:1] == wanted and len(found) < len(given)"),
            Check("only_that_line", only, "found == wanted"),
        ),
        given={source: draw.words(5)},
    )


def _last_line(draw: Draw) -> Drill:
    source, target = draw.path(), draw.path()
    ask, only = (
        f"I only need to know how {source} ends.",
        f"Store its last line, and none of the others, in {target}.",
    )
    return Drill(
        sentences=(ask, only),
        target=target,
        command=f"tail -n 1 {source} > {target}",
        wanted="given[-1:]",
        checks=(
            Check("ends_right", ask, "found[-1:] == wanted and len(found) < len(given)"),
            Check("none_of_the_others", only, "found == wanted"),
        ),
        given={source: draw.words(6)},
    )


def _two_at_the_top(draw: Draw) -> Drill:
    source, target = draw.path(), draw.path()
    ask = f"From {source}, take both lines at the very top and make them the file {target}."
    return Drill(
        sentences=(ask,),
        target=target,
        command=f"head -n 2 {source} > {target}",
        wanted="given[:2]",
        checks=(
            Check("lines_taken", ask, "share(found, wanted)"),
            Check("just_those", ask, "found == wanted"),
        ),
        given={source: draw.words(6)},
    )


def _third_line(draw: Draw) -> Drill:
    source, target = draw.path(), draw.path()
    which, save = f"Count down to line 3 of {source}.", f"That line, by itself, becomes {target}."
    return Drill(
        sentences=(which, save),
        target=target,
        command=f"sed -n 3p {source} > {target}",
        wanted="given[2:3]",
        checks=(
            Check("line_there", which, "wanted[0] in found and len(found) < len(given)"),
            Check("by_itself", save, "found == wanted"),
        ),
        given={source: draw.words(6)},
    )


def _skip_heading(draw: Draw) -> Drill:
    source, target, heading = draw.path(), draw.path(), " ".join(draw.words(2))
    drop = f"The top line of {source} is a heading that nobody wants."
    rest = f"Write everything below the heading to {target}."
    return Drill(
        sentences=(drop, rest),
        target=target,
        command=f"tail -n +2 {source} > {target}",
        wanted="given[1:]",
        checks=(
            Check("heading_left_out", drop, "share(found, wanted) if given[0] not in found else 0"),
            Check("all_below", rest, "found == wanted"),
        ),
        given={source: [heading, *draw.words(4)]},
    )


def _change_word(draw: Draw) -> Drill:
    old, new, path = draw.word(), draw.word(), draw.path()
    lines = [f"{colour} {word}" for colour, word in zip(draw.colours(4), [*draw.words(3), old], strict=True)]
    draw.random.shuffle(lines)
    change, keep = (
        f"In {path}, {old} is a mistake and should be {new}.",
        "Correct that word and leave the rest alone.",
    )
    return Drill(
        sentences=(change, keep),
        target=path,
        command=f"sed -i 's/{old}/{new}/' {path}",
        wanted=f"[row.replace({old!r}, {new!r}) for row in given]",
        checks=(
            Check("new_word_in", change, f"{new!r} in said"),
            Check(
                "line_corrected", change, f"set(wanted) - set(given) <= set(found) and {old!r} not in said"
            ),
            Check("rest_alone", keep, "found == wanted"),
        ),
        given={path: lines},
        must=f"Replaces {old} by {new} in {path} and changes no other word.",
    )


def _delete_line(draw: Draw) -> Drill:
    path, lines = draw.path(), draw.words(5)
    word = lines[draw.random.randrange(1, 4)]
    gone, keep = (
        f"The entry {word} does not belong in {path}.",
        "Remove it, and keep all other lines in their order.",
    )
    return Drill(
        sentences=(gone, keep),
        target=path,
        command=f"sed -i /{word}/d {path}",
        wanted=f"[row for row in given if row != {word!r}]",
        checks=(
            Check("entry_gone", gone, f"{word!r} not in said and any(row in wanted for row in found)"),
            Check("others_kept", keep, "found == wanted"),
        ),
        given={path: lines},
        must=f"Removes the line {word} from {path} and no other line.",
    )


def _copy_file(draw: Draw) -> Drill:
    source, target = draw.path(), draw.path()
    ask = f"Keep a second copy of {source}, with the name {target}."
    return Drill(
        sentences=(ask,),
        target=target,
        command=f"cp {source} {target}",
        wanted="given",
        checks=(
            Check("lines_copied", ask, "share(found, wanted)"),
            Check("whole_copy", ask, "found == wanted"),
        ),
        given={source: draw.words(5)},
    )


def _join(draw: Draw) -> Drill:
    one, two, target = draw.path(), draw.path(), draw.path()
    both, order = (
        f"Join {one} and {two} into one file {target}.",
        "The lines of the first come before those of the second.",
    )
    return Drill(
        sentences=(both, order),
        target=target,
        command=f"cat {one} {two} > {target}",
        wanted="texts[0] + texts[1]",
        checks=(
            Check("lines_of_both", both, "sorted(found) == sorted(wanted)"),
            Check("first_before_second", order, "found == wanted"),
        ),
        given={one: draw.words(3), two: draw.words(4)},
    )


def _to_capitals(draw: Draw) -> Drill:
    source, target = draw.path(), draw.path()
    ask = f"Produce {target}: the same lines as in {source}, except that every letter is a capital."
    return Drill(
        sentences=(ask,),
        target=target,
        command=f"tr a-z A-Z < {source} > {target}",
        wanted="[row.upper() for row in given]",
        checks=(
            Check("lines_in_capitals", ask, "share(found, wanted)"),
            Check("whole_text", ask, "found == wanted"),
        ),
        given={source: draw.words(4)},
    )


_ARROWS = "One arrow replaces everything that was in the file; two arrows add to its end."
_PARTS = (
    "`head -n N` takes lines from the start, `tail -n N` from the end, "
    "and `tail -n +2` everything but the first line."
)

KINDS = (
    Kind(
        "r2-append-line",
        "Add a line to the end of a file.",
        _ARROWS,
        "Adds with two arrows and does not write the old lines again.",
        _append,
    ),
    Kind(
        "r2-copy-file",
        "Copy a file to another name.",
        "`cp FROM TO` copies a file as it is.",
        "Copies with `cp` instead of writing the lines anew.",
        _copy_file,
    ),
    Kind(
        "r2-first-line",
        "Write the first line of a file into another.",
        _PARTS,
        "Asks `head` for one line and redirects it.",
        _first_line,
    ),
    Kind(
        "r2-last-line",
        "Write the last line of a file into another.",
        _PARTS,
        "Asks `tail` for one line and redirects it.",
        _last_line,
    ),
    Kind(
        "r2-top-two",
        "Write the first two lines of a file into another.",
        _PARTS,
        "Gives the number of lines to `head`.",
        _two_at_the_top,
    ),
    Kind(
        "r2-third-line",
        "Write one line of a file, by its number, into another.",
        "`sed -n 'Np' FILE` prints line N alone.",
        "Has `sed -n` print the one line by its number.",
        _third_line,
    ),
    Kind(
        "r2-skip-heading",
        "Write a file without its first line into another.",
        _PARTS,
        "Starts `tail` at line 2, whatever the number of lines.",
        _skip_heading,
    ),
    Kind(
        "r2-change-word",
        "Change a word in place.",
        "`sed -i 's/OLD/NEW/' FILE` changes a word in place, once a line; add `g` when it may stand twice in one line.",
        "Substitutes in place with `sed -i`.",
        _change_word,
    ),
    Kind(
        "r2-delete-line",
        "Remove a line in place.",
        "`sed -i '/WORD/d' FILE` removes the lines that hold a word.",
        "Deletes by the word with `sed -i`, and never reads and writes one file with arrows.",
        _delete_line,
    ),
    Kind(
        "r2-join-files",
        "Join two files into a third.",
        "`cat ONE TWO > BOTH` joins files in the order in which they are named.",
        "Names both files to one `cat`, in the order that was asked for.",
        _join,
    ),
    Kind(
        "r2-to-capitals",
        "Turn the letters of a file into capitals.",
        "`tr a-z A-Z < FILE` turns small letters into capitals; it reads from the arrow and takes no file name.",
        "Feeds the file to `tr` with an arrow.",
        _to_capitals,
    ),
)
