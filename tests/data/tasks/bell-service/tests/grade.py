import json
import os


def delivered(path, limit=100_000):
    """Text of a regular file that was delivered; empty when there is none."""
    if os.path.islink(path) or not os.path.isfile(path) or os.path.getsize(path) > limit:
        return ""
    with open(path, encoding="utf-8", errors="replace") as stream:
        return stream.read()


def document(path):
    try:
        return json.loads(delivered(path))
    except ValueError:
        return None


import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.request


def fetch(port, path):
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=2) as answer:
            return answer.status, answer.read(100).decode().strip()
    except urllib.error.HTTPError as error:
        return error.code, ""


def asked():
    """Answers of the service, which runs as nobody on a copy of the program."""
    place = "/tmp/graded-bell"
    shutil.rmtree(place, ignore_errors=True)
    os.mkdir(place)
    os.chmod(place, 0o755)
    with open(place + "/bell.py", "w", encoding="utf-8") as stream:
        stream.write(delivered("/srv/work/bell.py"))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = ["/usr/bin/python3", "-I", place + "/bell.py", str(port)]
    service = subprocess.Popen(command, user=65534, group=65534, extra_groups=[], cwd=place, env={"PATH": "/usr/bin:/bin"},
                               stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        for _ in range(60):
            time.sleep(0.1)
            try:
                return [fetch(port, f"/strikes/{hour}") for hour in range(24)], fetch(port, "/strikes/24"), fetch(port, "/")
            except OSError:
                if service.poll() is not None:
                    break
        return [], (0, ""), (0, "")
    finally:
        service.kill()


HOURS, LATE, ROOT = asked()
CHECKS = {
    "strikes": lambda: HOURS == [(200, str(hour % 12 or 12)) for hour in range(24)],
    "unknown": lambda: bool(HOURS) and HOURS[5] == (200, "5") and LATE[0] == 404 and ROOT[0] == 404,
}


def graded(check):
    try:
        return float(bool(check()))
    except Exception:
        return 0.0


rewards = {name: graded(check) for name, check in CHECKS.items()}
with open("/logs/verifier/reward.json", "w", encoding="utf-8") as stream:
    json.dump(rewards, stream)
