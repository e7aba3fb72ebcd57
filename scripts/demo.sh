#!/bin/sh
# `make demo`: compile the example skills from recorded sessions, then real third-party skills with the `code` author,
# into one dataset. Run again at any time: finished work is kept and nothing is fetched twice.
#
#   OUT    dataset folder (default out/demo)
#   SEED   run seed (default 0); another one gives other axes

set -eu

cd "$(dirname "$0")/.."
out=${OUT:-out/demo}
seed=${SEED:-0}
runs=$(dirname "$out")/runs
skills=out/third-party
skill2env=.venv/bin/skill2env

step() { printf '\n--- %s\n' "$*"; }

step "1. example skills, recorded authoring sessions"
# --workers never changes a result; on two cores four keep both busy. --allow-degraded: a machine without subordinate uids still gets its demo; its tasks then carry a note that says so.
"$skill2env" compile examples/skills --recordings examples/recordings --seed "$seed" --workers 4 --allow-degraded --out "$out" \
    --run "$runs/$(basename "$out")-examples"

step "2. third-party skills, unpacked from pinned packages (nothing of them is installed)"
.venv/bin/python scripts/fetch_skills.py "$skills"

if [ -n "$(find "$skills" -name SKILL.md 2>/dev/null | head -n 1)" ]; then
    step "3. the same pipeline on them, with the author that needs no model"
    "$skill2env" compile "$skills" --author code --workflows 2 --seed "$seed" --workers 4 --allow-degraded \
        --out "$out" --run "$runs/$(basename "$out")-third-party"
else
    step "3. left out: no third-party skill has been chosen for the demo yet (scripts/fetch_skills.py)"
fi

step "done"
cat <<END
$(find "$out" -mindepth 2 -maxdepth 2 -name task.toml | wc -l) tasks in $out

  $skill2env verify $out             all gates again, from the published files alone
  $skill2env run show $runs/$(basename "$out")-third-party
  less $out/README.md                      the dataset card
END
