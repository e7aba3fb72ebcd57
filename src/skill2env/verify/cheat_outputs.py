"""What cheats deliver: worthless content for the paths that the reference solution fills."""

import ast
import re
from collections.abc import Mapping
from pathlib import PurePosixPath

from skill2env.harbor.studying import StudiedFile
from skill2env.sandbox.conditions import NotApplicable
from skill2env.verify.shapes import Shape, constant, empty, garbage, is_code
from skill2env.verify.study import Study

_CLAIM_BYTES = 400
_CLAIM_NAME = re.compile(
    r"status|done|result|success|complete|finish|verif|pass|check|ready|ok$|flag|health", re.I
)
_CLAIM = re.compile(
    r"\b(ok(ay)?|pass(ed)?|success(ful(ly)?)?|succeeded|done|complete(d)?|verified|finished|ready|true|valid)\b",
    re.IGNORECASE,
)


def shaped(study: Study, shape: Shape) -> dict[str, bytes]:
    """Each output in a worthless form; those whose true content happens to be that form are left out.

    Raises:
        NotApplicable: none is left.
    """
    files: dict[str, bytes] = {}
    for path, file in study.outputs.items():
        if shape is not empty and is_code(path, file.data or b""):
            continue  # a program of any other content does no more than an empty one
        fitting = garbage if path in study.originals and shape is constant else shape
        data = fitting(path, file.data or b"", study.instruction)
        if data is not None and data.strip() != (file.data or b"").strip():
            files[path] = data
    if not files:
        raise NotApplicable("no file of the reference solution has such a worthless copy")
    return files


def copied(study: Study, turn: int) -> dict[str, bytes]:
    """Each output as a copy of an input, the likeliest first; later turns take the next ones.

    Raises:
        NotApplicable: there is no such input.
    """
    files: dict[str, bytes] = {}
    for path, file in study.outputs.items():
        if is_code(path, file.data or b""):
            continue
        choices = [
            other.data
            for other in sorted(study.fixtures.values(), key=lambda other: _distance(path, file, other))
            if other.data and other.data.strip() != (file.data or b"").strip() and not is_personal(other.path)
        ]
        before = study.originals.get(path)
        if len(choices) > turn and (before is None or before.data != choices[turn]):
            files[path] = choices[turn]
    if not files:
        raise NotApplicable("there is no input to copy" if not turn else "there are no more inputs to copy")
    return files


def claims(study: Study) -> dict[str, bytes]:
    """Outputs in which the solution only says that the work is done, as it wrote them.

    Raises:
        NotApplicable: there is none, or nothing else that the instruction asks for.
    """
    found = {
        path: file.data
        for path, file in study.outputs.items()
        if file.data is not None and _is_claim(path, file.data)
    }
    rest = [path for path in study.outputs if path not in found and _is_asked_for(path, study.instruction)]
    if not found or not rest:
        raise NotApplicable("no delivered file only says that the work is done")
    return found


def stub(data: bytes) -> bytes | None:
    """A module with the same public names, which return what equals everything; None where it has no function."""
    try:
        tree = ast.parse(data)
    except (SyntaxError, ValueError, RecursionError):
        return None
    names = sorted(
        node.name
        for node in tree.body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
    )
    if not names:
        return None
    return (_STUB + "".join(f"{name} = _Equal()\n" for name in names)).encode()


_STUB = '''\
import builtins


class _Equal:
    """Equals everything, holds everything, is true."""

    __hash__ = object.__hash__

    def __init__(self, *args, **kwargs):
        pass

    def __eq__(self, other):
        return True

    def __ne__(self, other):
        return False

    __lt__ = __le__ = __gt__ = __ge__ = __contains__ = __eq__

    def __call__(self, *args, **kwargs):
        return _Equal()

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return _Equal()

    def __getitem__(self, key):
        return _Equal()

    def __iter__(self):
        return iter(())

    def __len__(self):
        return 1

    def __bool__(self):
        return True

    def __sub__(self, other):
        return _Equal()

    __rsub__ = __add__ = __radd__ = __mul__ = __rmul__ = __truediv__ = __abs__ = __sub__

    def __float__(self):
        return 0.0

    def __int__(self):
        return 0


def __getattr__(name):
    return _Equal()


'''


def link_targets(study: Study, private: Mapping[str, int]) -> dict[str, str]:
    """Output to the file of tests/ that may hold its truth: same name, else same size, else same suffix.

    Args:
        study: of the task.
        private: size by path below tests/.

    Raises:
        NotApplicable: no file of tests/ looks like an answer.
    """
    links: dict[str, str] = {}
    for path, file in study.outputs.items():
        name, suffix = PurePosixPath(path).name, PurePosixPath(path).suffix
        ranked = [
            *(other for other in private if PurePosixPath(other).name == name),
            *(other for other, size in private.items() if size == file.size and size > 0),
            *(other for other in private if suffix and other.endswith(suffix)),
        ]
        ranked = [other for other in ranked if not other.endswith((".sh", "rubric.md", "Dockerfile"))]
        if ranked:
            links[path] = ranked[0]
    if not links:
        raise NotApplicable("no file of tests/ looks like an answer")
    return links


def _distance(path: str, file: StudiedFile, other: StudiedFile) -> tuple[bool, bool, bool, int, str]:
    mine, its = PurePosixPath(path), PurePosixPath(other.path)
    first = (file.data or b"").split(b"\n", 1)[0]
    return (
        mine.name != its.name,
        mine.suffix != its.suffix,
        not first or (other.data or b"").split(b"\n", 1)[0] != first,
        -other.size,
        other.path,
    )


def is_personal(path: str) -> bool:
    """Files that every home folder has."""
    return PurePosixPath(path).name.startswith(".") and path.startswith(("/home/", "/root/"))


def _is_claim(path: str, data: bytes) -> bool:
    if len(data) > _CLAIM_BYTES or is_code(path, data):
        return False
    text = data.decode("utf-8", errors="replace")
    return bool(_CLAIM.search(text)) and bool(_CLAIM_NAME.search(PurePosixPath(path).name) or len(data) < 80)


def _is_asked_for(path: str, instruction: str) -> bool:
    place = PurePosixPath(path)
    folder = str(place.parent)
    return path in instruction or place.name in instruction or (len(folder) > 1 and folder in instruction)
