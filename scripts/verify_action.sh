#!/bin/sh
# The working step of action.yml: install skill2env into a folder of its own, verify, write every report.
# Settings come as S2E_* variables; SKILL2ENV names an installed program to use instead of installing one.
set -eu

here="$(cd "$(dirname "$0")/.." && pwd)"
program="${SKILL2ENV:-}"
if [ -z "$program" ]; then
  place="${RUNNER_TEMP:-$(mktemp -d)}/skill2env"
  python3 -m venv "$place"
  "$place/bin/python" -m pip install --quiet --require-hashes -r "$here/requirements/base.txt"
  "$place/bin/python" -m pip install --quiet --no-deps "$here"
  program="$place/bin/skill2env"
fi

# Hosted runners forbid user namespaces to everybody until told otherwise; without them an engine is used.
if [ "${S2E_SANDBOX:-auto}" != docker ] && [ "${CI:-}" = true ] && command -v sudo > /dev/null; then
  sudo -n sysctl -q -w kernel.apparmor_restrict_unprivileged_userns=0 2> /dev/null || true
fi

report="${S2E_REPORT:-skill2env-report}"
mkdir -p "$report"
set -- --level "${S2E_LEVEL:-standard}" --profile "${S2E_PROFILE:-auto}" --sandbox "${S2E_SANDBOX:-auto}" \
  --fail-on "${S2E_FAIL_ON:-reject}" --workers "${S2E_WORKERS:-2}" \
  --junit "$report/junit.xml" --sarif "$report/verify.sarif" --html "$report/html" --json
[ -z "${S2E_BASELINE:-}" ] || set -- "$@" --baseline "$S2E_BASELINE"
[ -z "${S2E_HISTORY:-}" ] || set -- "$@" --history "$S2E_HISTORY" --no-cache
# A run whose history is kept asks whether tasks rot, and the day is part of that question.
today="${S2E_TODAY:-}"
[ -n "$today" ] || [ -z "${S2E_HISTORY:-}" ] || today=now
[ "$today" != now ] || today="$(date -u +%F)"
[ -z "$today" ] || [ "$today" = never ] || set -- "$@" --today "$today"
set -- "$@" --
while IFS= read -r path; do
  [ -z "$path" ] || set -- "$@" "$path"
done << PATHS
${S2E_PATH:-.}
PATHS

code=0
"$program" verify "$@" > "$report/verify.jsonl" || code=$?
echo "exit-code=$code" >> "${GITHUB_OUTPUT:-/dev/null}"
python3 - "$report/verify.jsonl" << 'PY' | tee -a "${GITHUB_STEP_SUMMARY:-/dev/null}"
import json
import sys

print("| task | verdict | reason | what to do |\n|---|---|---|---|")
for line in open(sys.argv[1], encoding="utf-8"):
    record = json.loads(line)
    cells = (record["task"], record["verdict"], record["reason"] or record["boundary"] or "", record["mend"])
    # Names are the task's own words: nothing in them may become markup of the summary.
    safe = ("".join(c if c.isalnum() or c in " .,;:/_-'()" else "?" for c in cell) for cell in cells)
    print("| " + " | ".join(safe) + " |")
PY
