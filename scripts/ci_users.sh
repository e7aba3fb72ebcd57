#!/bin/sh
# Run the tests as two ordinary users, one with subordinate uids and one without: the second and the third identity
# tier of the namespace sandbox. Only root can do this. Both users, and all that they left, are removed afterwards.
#
#   CI_USERS_SELECT   pytest's -m expression (default: everything but docker and slow)
#   CI_USERS_PATHS    test paths (default: tests)
#
# Left out is what costs most and depends on gates, ledgers and code, but not on who runs it: the labelled tasks with
# their hundreds of trials, twins, kills and resumption, recording, rebinding, the code author, and authors with a model;
# and what is arithmetic: analysis, judging and training.
# Whole gates and whole compilations run as one user each: gates as the one without subordinate uids, where probes
# differ most; compilations, the hub and authors as the other one.

set -eu

[ "$(id -u)" = 0 ] || { echo "ci-users: only root can create users" >&2; exit 2; }
root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
cd "$root"
select=${CI_USERS_SELECT:-not docker and not slow}
paths=${CI_USERS_PATHS:-tests}
# Names and ids of this run alone, so that two runs on one machine do not meet.
with=skill2env-sub-$$
without=skill2env-one-$$
first_subuid=$((10000000 + $$ % 4096 * 65536))
last_subuid=$((first_subuid + 65535))

# Below /tmp and not below /root, whose 0700 an ordinary user cannot walk through.
place=$(mktemp -d /tmp/skill2env-ci.XXXXXX)
chmod 755 "$place"

clean_up() {
    for user in "$with" "$without"; do userdel "$user" 2>/dev/null || true; done
    rm -rf "$place"
}
trap clean_up EXIT
trap 'exit 130' INT TERM

install_uidmap() { # newuidmap and newgidmap are setuid programs: the one thing that a package must bring
    command -v newuidmap >/dev/null 2>&1 && return
    export DEBIAN_FRONTEND=noninteractive
    { apt-get -q update && apt-get -q install -y --no-install-recommends uidmap; } >"$place/apt.log" 2>&1 || {
        tail -n 5 "$place/apt.log" >&2
        echo "ci-users: newuidmap is missing and could not be installed" >&2
        exit 1
    }
}

create_users() {
    for user in "$with" "$without"; do
        userdel "$user" 2>/dev/null || true
        useradd --home-dir "$place/home-$user" --create-home --shell /bin/sh "$user"
        # useradd may or may not grant ranges by itself; start from none.
        sed -i "/^$user:/d" /etc/subuid /etc/subgid 2>/dev/null || true
        install -d -o "$user" -m 755 "$place/cache-$user"
        install -d -o "$user" -m 700 "$place/tmp-$user"
    done
    usermod --add-subuids "$first_subuid-$last_subuid" --add-subgids "$first_subuid-$last_subuid" "$with"
}

shared_python() { # an interpreter that everybody can run: ours, or a copy when it lies below a closed folder
    python=$(.venv/bin/python -c 'import os, sys; print(os.path.realpath(sys.executable))')
    if runuser -u "$without" -- test -x "$python" 2>/dev/null; then return; fi
    prefix=$(.venv/bin/python -c 'import sys; print(sys.base_prefix)')
    mkdir "$place/python"
    tar -C "$prefix" --exclude=./lib/python3.\*/test --exclude=./lib/python3.\*/site-packages --exclude=./share \
        --exclude=__pycache__ -cf - . | tar -C "$place/python" -xf -
    # A Python built with a shared library finds it through the absolute folder it was built for. Make that relative
    # to the executable instead, so that no variable has to point the way (sandboxes are started with a clean one).
    .venv/bin/python - "$place/python/bin/$(basename "$python")" "$prefix/lib" <<'END'
import sys
from pathlib import Path

program, folder = Path(sys.argv[1]), sys.argv[2].encode() + b"\0"
relative = b"$ORIGIN/../lib\0"
if len(relative) <= len(folder):
    program.write_bytes(program.read_bytes().replace(folder, relative.ljust(len(folder), b"\0")))
END
    python=$place/python/bin/$(basename "$python")
}

copy_checkout() { # tracked and new files, owned by root: a test that writes into the source tree fails here
    git clone -q --no-local "$root" "$place/checkout"
    # The working tree as it is, which on a clean checkout changes nothing.
    git ls-files -z --cached --others --exclude-standard --deduplicate |
        .venv/bin/python -c 'import os, sys
for name in filter(None, sys.stdin.buffer.read().split(b"\0")):
    if os.path.lexists(name): sys.stdout.buffer.write(name + b"\0")' |
        tar --null --files-from - -cf - | tar -C "$place/checkout" -xf -
}

run_as() { # run_as USER
    user=$1
    echo "ci-users: $user ($([ "$user" = "$with" ] && echo with || echo without) subordinate uids)"
    set -- HOME="$place/home-$user" PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin LANG=C.UTF-8 USER="$user" \
        TMPDIR="$place/tmp-$user" HARBOR_TELEMETRY=0 LITELLM_LOCAL_MODEL_COST_MAP=true PYTHONDONTWRITEBYTECODE=1 CI=true \
        SKILL2ENV_CACHE="$place/cache-$user" SKILL2ENV_SHARED="${SKILL2ENV_SHARED:-$root/../shared}" \
        HYPOTHESIS_STORAGE_DIRECTORY="$place/tmp-$user/hypothesis"
    for name in http_proxy https_proxy no_proxy SSL_CERT_FILE UV_DEFAULT_INDEX PIP_INDEX_URL PIP_CERT; do
        value=$(printenv "$name" || true)
        [ -z "$value" ] || set -- "$@" "$name=$value"
    done
    if [ "$user" = "$with" ]; then
        halves="--ignore-glob=*/verify/test_verify.py --ignore-glob=*/verify/test_foreign.py --ignore-glob=*/cli/test_verify.py"
    else
        halves="--ignore-glob=*/tests/hub/* --ignore-glob=*/tests/plan/* --ignore-glob=*/tests/diversify/*"
        halves="$halves --ignore-glob=*/tests/rollout/* --ignore-glob=*/tests/evaluate/* --ignore-glob=*/tests/grounding/*"
        halves="$halves --ignore-glob=*/harbor/test_builtin.py --ignore-glob=*/sandbox/test_agents.py"
        halves="$halves --ignore-glob=*/tests/view/* --ignore-glob=*/tests/authors/* --ignore-glob=*/e2e/* --ignore-glob=*/cli/test_sandbox.py --ignore-glob=*/test_audit.py"
    fi
    # shellcheck disable=SC2086 # several paths and options
    runuser -u "$user" -- env -i -C "$place/checkout" "$@" .venv/bin/python -m pytest -q -n "${JOBS:-2}" \
        --ignore-glob='*/test_labelled_*.py' --ignore-glob='*/test_twins.py' --ignore-glob='*/test_many.py' \
        --ignore-glob='*/test_resume.py' --ignore-glob='*/test_record.py' --ignore-glob='*/test_rebind.py' \
        --ignore-glob='*/authors/code/*' --ignore-glob='*/e2e/test_agents.py' --ignore-glob='*/tests/llm/*' \
        --ignore-glob='*/tests/train/*' --ignore-glob='*/tests/judge/*' --ignore-glob='*/tests/analysis/*' \
        --ignore-glob='*/e2e/test_ladder.py' --ignore-glob='*/sandbox/differential/*' $halves \
        -p no:cacheprovider -m "$select" $paths
}

install_uidmap
create_users
shared_python
copy_checkout
(cd "$place/checkout" && SKILL2ENV_PYTHON=$python UV=${UV:-$("$root/scripts/setup.sh" --print-uv)} scripts/setup.sh)

status=0
for user in "$with" "$without"; do run_as "$user" || status=1; done
exit $status
