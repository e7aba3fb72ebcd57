#!/usr/bin/env bash
# Kill `make demo` with SIGKILL at random moments, let it finish once, and compare the dataset with one that was made in
# peace. The strongest claim about resuming, too slow for the test suite: about a quarter of an hour.
#
#   KILLS   how often (default 12)
#   SEED    of the moments (default 0)
#   CLEAN   a finished demo's dataset to compare with (default: made first, in out/kill/clean)

set -euo pipefail

cd "$(dirname "$0")/.."
kills=${KILLS:-12}
place=out/kill
clean=${CLEAN:-$place/clean}
rm -rf "$place/killed" "$place/runs/killed-examples" "$place/runs/killed-third-party"
mkdir -p "$place"

[ -f "$clean/dataset.toml" ] || OUT="$clean" make demo >"$place/clean.log" 2>&1
# Whole seconds between 2 and 30, the same for the same seed.
moments=$(awk -v n="$kills" -v seed="${SEED:-0}" 'BEGIN { srand(seed); for (i = 0; i < n; i++) print 2 + int(rand() * 29) }')
for moment in $moments; do
    OUT="$place/killed" setsid make demo >"$place/killed.log" 2>&1 &
    group=$!
    sleep "$moment"
    if kill -9 -- "-$group" 2>/dev/null; then
        echo "killed after $moment s, $(find "$place/killed" -name task.toml 2>/dev/null | wc -l) tasks published by then"
    else
        echo "had ended before $moment s"
    fi
    wait "$group" 2>/dev/null || true
done
OUT="$place/killed" make demo >"$place/killed.log" 2>&1
diff -r "$clean" "$place/killed"
for part in examples third-party; do
    .venv/bin/skill2env run audit "$place/runs/killed-$part" --dataset "$place/killed"
done
echo "identical after $kills kills"
