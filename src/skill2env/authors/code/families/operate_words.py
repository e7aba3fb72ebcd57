"""The words of family `operate`."""

from skill2env.authors.code.instruction import Words
from skill2env.authors.code.rubric import Craft
from skill2env.axes import Expertise

PROCEDURE = """# How the data was sent

`orders.json` lists the orders, each with the files that it needs. `parts.json` lists what was sent: for each part its file in
`parts/`, the order and the file that it belongs to, its first and last line in that file (counted from 1), its encoding,
and the SHA-256 of its content after decoding (UTF-8).

1. Decode each part by its encoding:
   - `plain`: as it stands.
   - `base64`: the usual alphabet, with line breaks.
   - `reversed-lines`: the last line came first; turn the order of the lines round.
   - `escaped`: Python's `unicode_escape`, with a line break after every `\\n`. Remove the line breaks, then decode.
2. A part may have been sent twice, and one of the two may be damaged. Take the one whose content has the SHA-256 that is listed, and leave
   the other out.
3. Put the parts of a file together by their line numbers. Neighbouring parts may overlap; a line that two parts hold stands in the
   file once.
"""

WORDS = Words(
    problems={
        Expertise.OUTSIDER: (
            "{orders} came in for it, but the data arrived in {parts} pieces, and I need the results.",
            "I have {orders} waiting, the data lies around in {parts} pieces, and somebody is waiting for the outcome.",
        ),
        Expertise.PRACTITIONER: (
            "There are {orders} for {target}, and their input was sent in {parts} parts that have to be put together first.",
            "{orders} for {target} are to be run; the input files came as {parts} parts.",
        ),
        Expertise.SPECIALIST: (
            "{orders} for {target} have to be processed from {parts} transmitted parts, with checksums to be honoured and overlaps removed.",
            "The input of {orders} for {target} was transmitted in {parts} parts, some of them redundant, some of them corrupt.",
        ),
        Expertise.ADJACENT: (
            "The post brought {parts} parcels for {orders}; they have to be unpacked, put in order and fed to {target}.",
            "{orders} are on the belt for {target}, but the material came in {parts} crates.",
        ),
    },
    evidence=(
        "`{dir}/inbox` holds orders.json, parts.json and the parts; PROCEDURE.md there says how they go together. The orders are for {target}.",
        "Orders, parts and the list of parts lie in `{dir}/inbox`, and PROCEDURE.md in that folder tells how to restore the files. All orders are for {target}.",
    ),
    musts={
        "restored_files": {
            "": (
                "Every file of every order must be restored exactly, line by line.",
                "Each order's files have to be restored to the letter.",
            ),
        },
        "results": {
            "": (
                "The result of every order must be what the tool gives for the restored files.",
                "For each order, results.json must hold exactly what the tool gives on its restored files.",
            ),
        },
        "summary": {
            "": (
                "The summary must agree with the restored files and the results.",
                "Counts and groups in summary.json have to be right for all orders.",
            ),
        },
    },
    rules=(
        "Use the tool as it is; Python here has {libraries}, and there is no network.",
        "Do not change the tool; there is no network, and Python has {libraries}.",
    ),
    story=("The sender apologised for the state of it.",),
)

CRAFT = Craft(
    must=(
        "Checks every part against its SHA-256 before using it, and every restored file for missing or doubled lines.",
        "Runs the tool itself on the restored files and takes results from that run, not from reading the code.",
    ),
    avoid=(
        "Edits results by hand, or changes the tool to make an order pass.",
        "Leaves out an order without saying so.",
    ),
    best=("Writes a small script that can be run again from the untouched inbox.",),
)
