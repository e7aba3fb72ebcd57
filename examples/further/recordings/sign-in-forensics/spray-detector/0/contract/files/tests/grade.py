"""Run the delivered detector on attacks and their look-alikes, family by family."""

import json
import os
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))  # python runs isolated, so the helpers beside us must be named

from cases import expected, families  # noqa: E402
from reward import delivered_text, run  # noqa: E402
from untrusted import Workplace  # noqa: E402

METRICS = ("limits", "identities", "excuses", "damaged_logs", "alerts")
KEYS = ("network", "start", "end", "users", "entered")


def answer(source, policy, logs):
    """What the program wrote about one set of logs, or None."""
    with Workplace() as place:
        program, written = Path(place.path, "detect.py"), Path(place.work, "answer.json")
        program.write_text(source, encoding="utf-8")
        Path(place.path, "policy.json").write_text(json.dumps(policy), encoding="utf-8")
        names = []
        for name, data in logs:
            Path(place.path, name).write_bytes(data)
            names.append(os.path.join(place.path, name))
        code = place.python(str(program), os.path.join(place.path, "policy.json"), str(written), *names)
        text = delivered_text(str(written))
        if code != 0 or text is None or os.listdir(place.work) != ["answer.json"]:
            return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def right(found, truth, whole):
    """Whether an answer says what the standard asks for; networks alone, or every field of every alert."""
    if not isinstance(found, dict) or [found.get("skipped"), found.get("duplicates")] != [truth["skipped"], truth["duplicates"]]:
        return False
    alerts = found.get("alerts")
    if not isinstance(alerts, list) or any(not isinstance(alert, dict) for alert in alerts):
        return False
    if not whole:
        return {str(alert.get("network")) for alert in alerts} == {alert["network"] for alert in truth["alerts"]}
    rows = [[alert.get(key) for key in KEYS] for alert in alerts]
    return sorted(map(json.dumps, rows)) == sorted(json.dumps([alert[key] for key in KEYS]) for alert in truth["alerts"])


def grade():
    source = delivered_text("/app/detect.py")
    if source is None:
        return dict.fromkeys(METRICS, 0)
    scores = {}
    for metric, cases in families().items():
        scores[metric] = int(all(right(answer(source, policy, logs), expected(policy, logs), whole) for policy, logs, whole in cases))
    return scores


run(METRICS, grade)
