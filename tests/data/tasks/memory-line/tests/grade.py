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


import subprocess


def told(kilobytes):
    place = "/tmp/graded-memory"
    os.makedirs(place, exist_ok=True)
    os.chmod(place, 0o755)
    for name, text in (("memory.sh", delivered("/srv/work/memory.sh")), ("info", f"MemTotal:  {kilobytes} kB\nMemFree: 5 kB\n")):
        with open(f"{place}/{name}", "w", encoding="utf-8") as stream:
            stream.write(text)
    command = ["/bin/bash", place + "/memory.sh", place + "/info"]
    done = subprocess.run(command, user=65534, group=65534, extra_groups=[], cwd=place, env={"PATH": "/usr/bin:/bin"},
                          stdin=subprocess.DEVNULL, capture_output=True, timeout=10, check=False)
    return done.stdout.decode(errors="replace").strip()


REAL = int(open("/proc/meminfo", encoding="utf-8").readline().split()[1])
CHECKS = {"small": lambda: told(2048001) == "2000", "large": lambda: told(REAL) == str(REAL // 1024)}


def graded(check):
    try:
        return float(bool(check()))
    except Exception:
        return 0.0


rewards = {name: graded(check) for name, check in CHECKS.items()}
with open("/logs/verifier/reward.json", "w", encoding="utf-8") as stream:
    json.dump(rewards, stream)
