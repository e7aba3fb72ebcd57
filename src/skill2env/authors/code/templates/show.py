"""Shows what a reported case gives today: helper of the case-NN/run.py files beside it."""

import os
import pprint
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PROGRAM = (
    "import sys; sys.dont_write_bytecode = True; import runpy; sys.argv = sys.argv[1:]; "
    'sys.path.insert(0, __import__("os").path.dirname(sys.argv[0])); runpy.run_path(sys.argv[0], run_name="__main__")'
)
sys.dont_write_bytecode = True


def workspace(case):
    """A fresh folder with the case's input files; the current directory from now on."""
    work = Path(tempfile.mkdtemp(prefix="case-"))
    given = Path(case).resolve().parent / "input"
    if given.is_dir():
        shutil.copytree(given, work, dirs_exist_ok=True)
    os.chdir(work)
    return work


def call(function, *args, files=(), arguments=False, **kwargs):
    """Call `function`; print its result, then the named files that it wrote."""
    work = Path.cwd()
    try:
        result = function(*args, **kwargs)
    except SystemExit as error:
        print("exit code", error.code)
    except Exception as error:
        print("raises", type(error).__name__)
    else:
        if result is not None or not files:
            print(_clean(pprint.pformat(result, width=100, sort_dicts=False), work))
        if arguments:
            print(_clean(pprint.pformat(args, width=100, sort_dicts=False), work))
    _files(work, files)


def script(name, *args, files=(), output=True):
    """Run a script of the project; print its exit code, what it printed and the named files that it wrote."""
    work = Path.cwd()
    command = [sys.executable, "-c", PROGRAM, str(ROOT / name), *map(str, args)]
    done = subprocess.run(command, capture_output=True, text=True, errors="replace")
    print("exit code", done.returncode)
    if output and done.stdout:
        print(_clean(done.stdout.rstrip("\n"), work))
    _files(work, files)


def _files(work, names):
    for name in names:
        path = work / name
        print(f"--- {name}")
        print(
            _clean(path.read_text(errors="replace").rstrip("\n"), work) if path.is_file() else "(not written)"
        )
    os.chdir("/")
    shutil.rmtree(work, ignore_errors=True)


def _clean(text, work):
    """Folders have other names in every run."""
    return text.replace(str(work), "WORK").replace(str(ROOT), "PROJECT")
