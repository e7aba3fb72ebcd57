"""Run a delivered program as the unprivileged user, with a time limit, and leave nothing of it behind."""

import contextlib
import os
import pwd
import shutil
import signal
import subprocess
import tempfile

USER = "agent"


def _several_users():
    """False where the container has one user id only, so that nobody can become another user."""
    with open("/proc/self/uid_map", encoding="ascii") as file:
        return sum(int(line.split()[2]) for line in file) > 1


def _become_agent():
    if not _several_users():
        return
    entry = pwd.getpwnam(USER)
    os.setgroups([])
    os.setgid(entry.pw_gid)
    os.setuid(entry.pw_uid)


def _kill_leftovers():
    """Kill every process of the user; the grader itself runs as root."""
    if not _several_users():
        return  # the user is the grader
    pid = os.fork()
    if pid == 0:
        try:
            _become_agent()
            os.kill(-1, signal.SIGKILL)
        finally:
            os._exit(0)
    os.waitpid(pid, 0)


class Workplace:
    """A folder that the unprivileged user owns, outside of every delivered path."""

    def __init__(self):
        # What runs here must not read the truth. A read-only mount has the mode that whoever mounted it chose.
        with contextlib.suppress(OSError):
            os.chmod(os.path.dirname(os.path.abspath(__file__)), 0o700)
        self.path = tempfile.mkdtemp(prefix="grade-")
        entry = pwd.getpwnam(USER)
        os.chmod(self.path, 0o755)
        self.work = os.path.join(self.path, "work")
        os.mkdir(self.work)
        if _several_users():
            os.chown(self.work, entry.pw_uid, entry.pw_gid)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        _kill_leftovers()
        shutil.rmtree(self.path, ignore_errors=True)

    def python(self, program, *arguments, seconds=10):
        """Exit code of ``python3 -I -S program arguments``; None when it ran out of time or could not start."""
        process = subprocess.Popen(
            ["/usr/bin/python3", "-I", "-S", "-B", program, *arguments],
            cwd=self.work,
            env={"PATH": "/usr/bin:/bin", "HOME": self.work, "LC_ALL": "C.UTF-8", "TZ": "UTC"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            preexec_fn=_become_agent,
            start_new_session=True,
        )
        try:
            return process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            _kill_leftovers()
            process.wait()
