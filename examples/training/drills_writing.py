"""Rung 1: write something that was given word for word into a file."""

from drills_parts import Check, Draw, Drill, Kind


def _aside(draw: Draw) -> dict[str, list[str]]:
    """A file that has nothing to do with the drill: the world is never empty, and there is something to leave alone."""
    return {draw.path(): draw.words(4)}


def _word(draw: Draw) -> Drill:
    word, path = draw.word(), draw.path()
    say = f"Write the word {word} into the file {path}."
    only = "Nothing else belongs in it."
    return Drill(
        sentences=(say, only),
        target=path,
        command=f"echo {word} > {path}",
        wanted=repr([word]),
        checks=(
            Check("word_written", say, f"{word!r} in said"),
            Check("nothing_else", only, "found == wanted"),
        ),
        given=_aside(draw),
    )


def _two_lines(draw: Draw) -> Drill:
    (one, two), path = draw.words(2), draw.path()
    make = f"Create {path} with two lines."
    first, second = f"Its first line is {one}.", f"Its second line is {two}."
    return Drill(
        sentences=(make, first, second),
        target=path,
        command=f"printf '%s\\n' {one} {two} > {path}",
        wanted=repr([one, two]),
        checks=(
            Check("first_word", first, f"{one!r} in said"),
            Check("second_word", second, f"{two!r} in said"),
            Check("two_lines", make, "found == wanted"),
        ),
        given=_aside(draw),
    )


def _number(draw: Draw) -> Drill:
    number, path = draw.random.randint(12, 98), draw.path()
    save, only = f"Save the number {number} as {path}.", "No text stands before or after the number."
    return Drill(
        sentences=(save, only),
        target=path,
        command=f"echo {number} > {path}",
        wanted=repr([str(number)]),
        checks=(
            Check("number_saved", save, f"number(found) == {number}"),
            Check("bare_number", only, "found == wanted"),
        ),
        given=_aside(draw),
    )


def _pair(draw: Draw) -> Drill:
    (one, two), path = draw.words(2), draw.path()
    ask = f"Put {one} and {two} side by side on the single line of a new file {path}, with a blank between them."
    return Drill(
        sentences=(ask,),
        target=path,
        command=f"echo {one} {two} > {path}",
        wanted=repr([f"{one} {two}"]),
        checks=(
            Check("both_words", ask, f"({one!r} in said) / 2 + ({two!r} in said) / 2"),
            Check("one_line", ask, "found == wanted"),
        ),
        given=_aside(draw),
    )


def _phrase(draw: Draw) -> Drill:
    (one, two, three), path = draw.words(3), draw.path()
    ask = f"Please let the only line of {path} read as follows: {one} {two} {three}."
    return Drill(
        sentences=(ask,),
        target=path,
        command=f'echo "{one} {two} {three}" > {path}',
        wanted=repr([f"{one} {two} {three}"]),
        checks=(
            Check("words_there", ask, f"sum(word in said for word in {[one, two, three]!r}) / 3"),
            Check("only_line", ask, "found == wanted"),
        ),
        given=_aside(draw),
    )


def _three_lines(draw: Draw) -> Drill:
    three, path = draw.words(3), draw.path()
    names = f"List {three[0]}, {three[1]} and {three[2]} in {path}."
    order = "Each of the words gets a line to itself, in this order."
    return Drill(
        sentences=(names, order),
        target=path,
        command=f"printf '%s\\n' {' '.join(three)} > {path}",
        wanted=repr(three),
        checks=(
            Check("words_listed", names, "sum(word in said for word in wanted) / 3"),
            Check("lines_in_order", order, "placed(found, wanted)"),
        ),
        given=_aside(draw),
    )


def _in_folder(draw: Draw) -> Drill:
    word, folder, name = draw.word(), draw.name(), draw.name()
    path = f"/app/{folder}/{name}.txt"
    ask, says = (
        f"The folder /app/{folder} needs one more file, {path}.",
        f"All that this file says is {word}.",
    )
    return Drill(
        sentences=(ask, says),
        target=path,
        command=f"echo {word} > {path}",
        wanted=repr([word]),
        checks=(
            Check("says_the_word", ask, f"{word!r} in said"),
            Check("says_only_that", says, "found == wanted"),
        ),
        given={f"/app/{folder}/{draw.name()}.txt": draw.words(4)},
    )


def _overwrite(draw: Draw) -> Drill:
    word, path = draw.word(), draw.path()
    gone, says = f"Throw away what {path} holds now.", f"Afterwards its content is the word {word}."
    return Drill(
        sentences=(gone, says),
        target=path,
        command=f"echo {word} > {path}",
        wanted=repr([word]),
        checks=(
            Check("new_word", says, f"{word!r} in said"),
            Check("old_text_gone", gone, "found == wanted"),
        ),
        given={path: draw.words(5)},
        must=f"Leaves {path} with the word {word} and none of its old lines.",
    )


def _setting(draw: Draw) -> Drill:
    (name, value), path = draw.words(2), draw.path(".conf")
    ask, form = f"Make a settings file {path} in which {name} is {value}.", "It has one line, name=value."
    return Drill(
        sentences=(ask, form),
        target=path,
        command=f"echo {name}={value} > {path}",
        wanted=repr([f"{name}={value}"]),
        checks=(
            Check("name_and_value", ask, f"{name!r} in said and {value!r} in said"),
            Check("one_setting", form, "[row.replace(' ', '') for row in found] == wanted"),
        ),
        given=_aside(draw),
    )


def _capitals(draw: Draw) -> Drill:
    word, path = draw.word(), draw.path()
    ask = f"A sign is to be printed from {path}: it reads {word}, in capital letters, on one line."
    return Drill(
        sentences=(ask,),
        target=path,
        command=f"echo {word.upper()} > {path}",
        wanted=repr([word.upper()]),
        checks=(
            Check("word_there", ask, f"{word!r} in [one.lower() for one in said]"),
            Check("in_capitals", ask, "found == wanted"),
        ),
        given=_aside(draw),
    )


def _thrice(draw: Draw) -> Drill:
    word, path = draw.word(), draw.path()
    ask = f"Repeat {word} three times in {path}, line by line, so that three equal lines come out."
    return Drill(
        sentences=(ask,),
        target=path,
        command=f"printf '%s\\n' {word} {word} {word} > {path}",
        wanted=repr([word] * 3),
        checks=(
            Check("repeated", ask, f"min(3, said.count({word!r})) / 3"),
            Check("three_lines", ask, "found == wanted"),
        ),
        given=_aside(draw),
    )


_ECHO = "`echo WORD > FILE` writes one line and ends it with a newline."
_PRINTF = "`printf '%s\\n' ONE TWO THREE > FILE` writes each argument on a line of its own."
_ARROWS = "One arrow replaces everything that was in the file; two arrows add to its end."

KINDS = (
    Kind(
        "r1-write-word",
        "Write one word into a new file.",
        _ECHO,
        "Uses one `echo` with one arrow and the full path.",
        _word,
    ),
    Kind(
        "r1-write-number",
        "Save a number in a file of its own.",
        _ECHO,
        "Writes the digits with `echo`, without words around them.",
        _number,
    ),
    Kind(
        "r1-write-pair",
        "Write two words on one line.",
        _ECHO,
        "Gives both words to a single `echo`.",
        _pair,
    ),
    Kind(
        "r1-write-phrase",
        "Write a line of three words.",
        "Quote text that holds blanks or signs, so that the shell passes it on as it stands.",
        "Quotes the phrase and redirects it once.",
        _phrase,
    ),
    Kind(
        "r1-write-in-folder",
        "Add a file to a folder by its full path.",
        "A file in another folder needs no change of folder: write its full path behind the arrow.",
        "Names the full path behind the arrow instead of changing the folder.",
        _in_folder,
    ),
    Kind(
        "r1-overwrite",
        "Replace the whole content of a file by a word.",
        _ARROWS,
        "Overwrites with one arrow; deletes nothing before.",
        _overwrite,
    ),
    Kind(
        "r1-write-setting",
        "Write a settings file of one line.",
        _ECHO,
        "Writes name, sign and value together, without blanks around the sign.",
        _setting,
    ),
    Kind(
        "r1-write-capitals",
        "Write a word in capital letters.",
        "`tr a-z A-Z < FILE` turns small letters into capitals; it reads from the arrow and takes no file name.",
        "Types the word in capitals, since it is known.",
        _capitals,
    ),
    Kind(
        "r1-write-two-lines",
        "Write two words on two lines.",
        _PRINTF,
        "Uses `printf` with a newline for each word, not `echo` with a line break in it.",
        _two_lines,
    ),
    Kind(
        "r1-write-three-lines",
        "Write a list of three lines.",
        _PRINTF,
        "Lets `printf` repeat its format for the three words.",
        _three_lines,
    ),
    Kind(
        "r1-repeat-line",
        "Write the same line three times.",
        "Never write a line break as `\\n` inside plain `echo`: in bash it stays two characters.",
        "Has `printf` end each of the three lines.",
        _thrice,
    ),
)
