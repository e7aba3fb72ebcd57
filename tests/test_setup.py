"""scripts/setup.sh on machines that lack something: the message comes early and says what to do.

The script runs for real, in a copy of the checkout's few relevant files, with a PATH of chosen tools. Only uv is
replaced by a program that notes how it was called, because what is tested is what setup decides, not what uv does.
"""

import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
TOOLS = [
    "sh",
    "awk",
    "basename",
    "cat",
    "cksum",
    "cp",
    "df",
    "dirname",
    "find",
    "flock",
    "grep",
    "head",
    "id",
    "mkdir",
]
TOOLS += ["pwd", "rm", "sed", "tail", "uname"]
UV = f"""#!/bin/sh
case "$*" in
    "pip sync --help") echo "--require-hashes"; exit ;;
    --version) echo "uv 9.9.9"; exit ;;
esac
echo "$*" >>"$UV_CALLS"
case "$*" in
    venv*) mkdir -p .venv/bin; printf '#!/bin/sh\\nexec {sys.executable} "$@"\\n' >.venv/bin/python ;;
    *--editable*) cp .venv/bin/python .venv/bin/skill2env ;;
    "pip sync"*) [ -z "$UV_OFFLINE_TEST" ] || {{ echo "error: no route to host" >&2; exit 2; }} ;;
    "python install"*) echo "error: could not download" >&2; exit 2 ;;
esac
[ ! -d .venv/bin ] || /bin/chmod 755 .venv/bin/*
"""


@dataclass
class Machine:
    """A pretended machine: a checkout, a home and the programs on the PATH."""

    checkout: Path
    home: Path
    programs: Path

    def program(self, name: str, text: str, *, folder: Path | None = None) -> Path:
        path = (folder or self.programs) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        path.write_text(text)
        path.chmod(0o755)
        return path

    def python(self, path: Path) -> Path:
        return self.program(path.name, f'#!/bin/sh\nexec {sys.executable} "$@"\n', folder=path.parent)

    def setup(self, **variables: str) -> subprocess.CompletedProcess[str]:
        environment = {
            "PATH": str(self.programs),
            "HOME": str(self.home),
            "UV_CALLS": str(self.home / "uv-calls"),
            "UV_OFFLINE_TEST": "",
            **variables,
        }
        return subprocess.run(
            ["/bin/sh", "scripts/setup.sh"],
            cwd=self.checkout,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )

    @property
    def uv_calls(self) -> list[str]:
        log = self.home / "uv-calls"
        return log.read_text().splitlines() if log.exists() else []


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    """A complete machine: git, uv and a Python of the right age below pyenv's versions."""
    checkout, home, programs = tmp_path / "checkout", tmp_path / "home", tmp_path / "bin"
    for folder in (checkout / "scripts", checkout / "src", home, programs):
        folder.mkdir(parents=True)
    shutil.copy(ROOT / "scripts/setup.sh", checkout / "scripts")
    shutil.copytree(ROOT / "requirements", checkout / "requirements")
    shutil.copy(ROOT / "pyproject.toml", checkout)
    for tool in TOOLS:
        found = shutil.which(tool)
        if found:
            (programs / tool).symlink_to(found)
    made = Machine(checkout, home, programs)
    made.program("git", "#!/bin/sh\n")
    made.program("uv", UV)
    made.python(home / ".pyenv/versions/3.12.99/bin/python3.12")
    return made


def test_a_complete_machine_is_set_up_once(machine: Machine) -> None:
    first = machine.setup()
    assert first.returncode == 0, first.stderr
    assert ".pyenv/versions/3.12.99" in first.stdout
    (sync,) = [call for call in machine.uv_calls if call.startswith("pip sync")]
    assert "--require-hashes" in sync
    assert "requirements/dev.txt" in sync
    calls = machine.uv_calls
    second = machine.setup()
    assert (second.returncode, second.stdout) == (0, "")
    assert machine.uv_calls == calls


def test_changed_pins_are_installed_again(machine: Machine) -> None:
    machine.setup()
    with (machine.checkout / "requirements/dev.txt").open("a") as pins:
        pins.write("# changed\n")
    before = len(machine.uv_calls)
    assert machine.setup().returncode == 0
    assert len(machine.uv_calls) > before


def test_a_selected_shim_that_fails_does_not_hide_a_version_of_pyenv(machine: Machine) -> None:
    machine.program("python3.12", '#!/bin/sh\necho "pyenv: version not selected" >&2\nexit 127\n')
    outcome = machine.setup()
    assert outcome.returncode == 0, outcome.stderr
    assert ".pyenv/versions/3.12.99" in outcome.stdout


def test_a_named_python_wins(machine: Machine) -> None:
    named = machine.python(machine.home / "elsewhere/python3")
    assert str(named) in machine.setup(SKILL2ENV_PYTHON=str(named)).stdout


def without_git(machine: Machine) -> dict[str, str]:
    (machine.programs / "git").unlink()
    return {}


def without_space(machine: Machine) -> dict[str, str]:
    machine.program("df", "#!/bin/sh\necho Filesystem\necho '/dev/x 100000 90000 10240 90% /'\n")
    return {}


def closed_checkout(machine: Machine) -> dict[str, str]:
    # A file where a folder must go stops even root, whom permissions do not.
    (machine.checkout / ".tools").write_text("")
    return {}


def another_system(machine: Machine) -> dict[str, str]:
    machine.program("uname", "#!/bin/sh\necho FreeBSD\n")
    return {}


def incomplete_python(machine: Machine) -> dict[str, str]:
    return {"SKILL2ENV_PYTHON": str(machine.program("python-old", "#!/bin/sh\nexit 1\n"))}


def without_new_python(machine: Machine) -> dict[str, str]:
    if Path("/opt/pyenv").exists() or any(
        Path(folder, "python3.12").exists() for folder in ("/usr/bin", "/usr/local/bin")
    ):
        pytest.skip(
            "this machine has a new Python in a system folder, where setup looks whatever the PATH says"
        )
    shutil.rmtree(machine.home / ".pyenv")
    return {}


def without_any_python(machine: Machine) -> dict[str, str]:
    if Path("/usr/bin/python3").exists() or Path("/usr/local/bin/python3").exists():
        pytest.skip("this machine has python3 in a system folder, where setup looks whatever the PATH says")
    (machine.programs / "uv").unlink()
    return {}


def without_pip_and_venv(machine: Machine) -> dict[str, str]:
    (machine.programs / "uv").unlink()
    # Answers the question for its age, and has neither module.
    machine.program(
        "python3", '#!/bin/sh\ncase "$*" in *"import sys; sys.exit"*) exit 0 ;; *) exit 1 ;; esac\n'
    )
    return {}


def without_network(machine: Machine) -> dict[str, str]:
    return {"UV_OFFLINE_TEST": "1"}


@pytest.mark.parametrize(
    ("spoil", "message", "mend"),
    [
        (without_git, "git is missing", "apt-get install git"),
        (without_space, "only 10 MB free", "uv cache clean"),
        (closed_checkout, "cannot be written to", "chown"),
        (another_system, "FreeBSD is not supported", "WSL2"),
        (incomplete_python, "is not a complete Python", "SKILL2ENV_PYTHON"),
        (without_new_python, "no Python 3.12", "pyenv install 3.12"),
        (without_any_python, "no python3 was found", "apt-get install python3"),
        (without_pip_and_venv, "has neither pip nor venv", "apt-get install python3-venv"),
        (without_network, "could not be installed", "UV_DEFAULT_INDEX"),
    ],
    ids=lambda value: value.__name__ if callable(value) else "",
)
def test_what_is_missing_is_named_with_its_remedy(machine: Machine, spoil, message: str, mend: str) -> None:
    outcome = machine.setup(**spoil(machine))
    assert outcome.returncode == 1
    assert message in outcome.stderr
    assert mend in outcome.stderr
    assert "ready" not in outcome.stdout
    assert not (machine.checkout / ".venv/.setup-stamp").exists()


def test_a_failed_set_up_is_taken_up_again(machine: Machine) -> None:
    assert machine.setup(**without_network(machine)).returncode == 1
    assert machine.setup().returncode == 0


def test_macos_is_told_about_docker(machine: Machine) -> None:
    machine.program("uname", "#!/bin/sh\n[ $1 = -s ] && echo Darwin || echo arm64\n")
    outcome = machine.setup()
    assert outcome.returncode == 0, outcome.stderr
    assert "--sandbox docker" in outcome.stdout
