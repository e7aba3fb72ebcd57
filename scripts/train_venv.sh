#!/bin/sh
# Make .venv-train: what .venv holds, and the extra `train` (torch and Transformers, about 5 GB on disk). Apart, because
# nothing else needs them. Downloads are kept by uv, so that only the first time takes long.
set -eu

cd "$(dirname "$0")/.."
scripts/setup.sh
uv=${UV:-$(scripts/setup.sh --print-uv)}
venv=.venv-train
stamp=$venv/.installed
unset UV_FIND_LINKS PIP_FIND_LINKS VIRTUAL_ENV || true

sum=$(cat requirements/dev.txt requirements/train.txt pyproject.toml scripts/train_venv.sh | cksum)
[ "$(cat "$stamp" 2>/dev/null || true)" = "$sum" ] && exit 0

echo "setup: installing the extra 'train' into $venv"
[ -x "$venv/bin/python" ] || "$uv" venv --quiet --no-project --python .venv/bin/python "$venv"
rm -f "$stamp"
"$uv" pip sync --quiet --python "$venv/bin/python" --require-hashes requirements/dev.txt requirements/train.txt || {
    echo "setup: the extra 'train' could not be installed (see above)." >&2
    echo "setup: it takes about 5 GB; free here: $(df -Pk . | awk 'NR == 2 { printf "%.0f GB", $4 / 1e6 }')" >&2
    exit 1
}
"$uv" pip install --quiet --python "$venv/bin/python" --no-deps --no-build-isolation --editable .
printf '%s\n' "$sum" >"$stamp"
