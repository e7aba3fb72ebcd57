#!/bin/sh
# Prepare everything that the other `make` targets need, without root: a Python >= 3.12, uv, and a virtual
# environment in .venv that holds exactly the hash-checked versions of requirements/dev.txt.
#
# Needs git, make and a python3 of any supported age. Run again at any time: nothing is done twice.
#
#   SKILL2ENV_PYTHON   use this interpreter (3.12 to 3.14) and look no further
#   UV                 use this uv
#   UV_CACHE_DIR, UV_DEFAULT_INDEX, SSL_CERT_FILE and the like are uv's own and are respected

set -eu
umask 022

root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
cd "$root"

oldest=12 # accepted minor versions of Python 3: what CI runs and what the pins were resolved for
newest=14
needed_mb=2000 # .venv, .tools and byte code together, measured at about 1450 MB, with room to spare
stamp=.venv/.setup-stamp

say() { printf 'setup: %s\n' "$*"; }

stop() { # stop MESSAGE HINT...: say what is wrong and how to mend it, and end
    printf '\nsetup: %s\n' "$1" >&2
    shift
    for hint in "$@"; do printf '       %s\n' "$hint" >&2; done
    exit 1
}

# ------------------------------------------------------------------------------------------------ already done?

fingerprint() { # changes when anything that setup depends on changes, the place of the checkout included
    { printf '%s\n' "$root"; cat requirements/dev.txt requirements/uv.txt pyproject.toml scripts/setup.sh; } | cksum
}

is_done() {
    [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$(fingerprint)" ] && [ -x .venv/bin/skill2env ] &&
        .venv/bin/python -I -c 'pass' 2>/dev/null
}

# ------------------------------------------------------------------------------------------------ the machine

check_machine() {
    case $(uname -s) in
        Linux) ;;
        Darwin)
            say "macOS: the namespace sandbox needs a Linux kernel, so trials will use docker (--sandbox docker)."
            needed_mb=$((needed_mb + 500))
            ;;
        *)
            stop "$(uname -s) is not supported." \
                "Use Linux (x86_64 or arm64), or Windows with WSL2: wsl --install -d Debian"
            ;;
    esac
    if grep -qi microsoft /proc/version 2>/dev/null && ! grep -qi wsl2 /proc/version 2>/dev/null; then
        stop "WSL1 has no namespaces, so no sandbox can start." "In PowerShell: wsl --set-version <distribution> 2"
    fi
    case $(uname -m) in
        x86_64 | amd64 | aarch64 | arm64) ;;
        *) say "warning: $(uname -m) is untested; some dependencies may have to be compiled" ;;
    esac
    command -v git >/dev/null 2>&1 || stop "git is missing." "Debian and Ubuntu: sudo apt-get install git"
    check_writable
}

check_writable() {
    if ! mkdir -p .tools 2>/dev/null || ! : 2>/dev/null >.tools/.write-test; then
        stop "this checkout cannot be written to: $root" "Clone it to a folder of your own, or mend its owner:" \
            "sudo chown -R $(id -un) '$root'"
    fi
    rm -f .tools/.write-test
    free_mb=$(($(df -Pk . | awk 'NR == 2 { print $4 }') / 1024))
    if [ "$free_mb" -lt "$needed_mb" ]; then
        stop "only $free_mb MB free in $root; about $needed_mb MB are needed." \
            "Make room, or clone to another disk. uv's downloads can be dropped with: uv cache clean"
    fi
}

# ------------------------------------------------------------------------------------------------ Python

usable_python() { # runs, is new enough, and was built with the modules that we need
    # From a neutral folder, so that a .python-version file of pyenv in the checkout cannot get in the way.
    (cd / && "$1" -I -c "
import sys, ssl, sqlite3, ctypes, lzma, zlib
sys.exit(not (3, $oldest) <= sys.version_info[:2] <= (3, $newest))") >/dev/null 2>&1
}

python_candidates() { # one path a line, preferred first: 3.12, then newer ones
    minor=$oldest
    while [ "$minor" -le "$newest" ]; do
        # A pyenv shim fails unless its version is selected, so the folders are looked into directly.
        for place in "${PYENV_ROOT:-/nonexistent}/versions" "$HOME/.pyenv/versions" /opt/pyenv/versions \
            "${UV_PYTHON_INSTALL_DIR:-$HOME/.local/share/uv/python}" /opt; do
            for found in "$place"/*/bin/python3."$minor"; do [ -x "$found" ] && printf '%s\n' "$found"; done
        done
        command -v "python3.$minor" || true
        for found in /usr/bin/python3."$minor" /usr/local/bin/python3."$minor"; do
            [ -x "$found" ] && printf '%s\n' "$found"
        done
        minor=$((minor + 1))
    done
    command -v python3 || true
}

find_python() { # sets $python
    if [ -n "${SKILL2ENV_PYTHON:-}" ]; then
        usable_python "$SKILL2ENV_PYTHON" ||
            stop "SKILL2ENV_PYTHON=$SKILL2ENV_PYTHON is not a complete Python 3.$oldest to 3.$newest."
        python=$SKILL2ENV_PYTHON
        return
    fi
    python_candidates >.tools/python-candidates || true
    while IFS= read -r candidate; do
        if usable_python "$candidate"; then
            python=$candidate
            return
        fi
    done <.tools/python-candidates
    say "no Python 3.$oldest or newer here; asking uv to fetch one"
    if "$uv" python install --no-bin "3.$oldest" >.tools/python-install.log 2>&1 &&
        python=$("$uv" python find --managed-python "3.$oldest" 2>/dev/null) && usable_python "$python"; then
        return
    fi
    sed 's/^/       | /' .tools/python-install.log | tail -n 4 >&2
    stop "no Python 3.$oldest to 3.$newest was found, and uv could not fetch one (see above)." \
        "Debian 13, Ubuntu 24.04:  sudo apt-get install python3" \
        "Debian 12 and others:     pyenv install 3.$oldest   (below ~/.pyenv it is found by itself)" \
        "Anywhere else:            make setup SKILL2ENV_PYTHON=/path/to/python3.$oldest"
}

# ------------------------------------------------------------------------------------------------ uv

host_python() { # any python3 that runs; it only carries pip, so its age does not matter
    for candidate in python3 /usr/bin/python3 /usr/local/bin/python3; do
        if "$candidate" -I -c 'import sys; sys.exit(sys.version_info < (3, 8))' >/dev/null 2>&1; then
            command -v "$candidate"
            return
        fi
    done
    return 1
}

pip_install_uv() { # pip_install_uv COMMAND...: install the pinned uv with this pip into .tools/uv
    rm -rf .tools/uv
    "$@" install --quiet --disable-pip-version-check --no-input --no-deps --require-hashes --only-binary :all: \
        --target .tools/uv --requirement requirements/uv.txt >>.tools/uv-install.log 2>&1 && works_uv .tools/uv/bin/uv
}

works_uv() { "$1" pip sync --help 2>/dev/null | grep -q -e --require-hashes; }

pip_from_debian() { # fetch Debian's package of pip as an ordinary user, install nothing; sets $pip_wheel
    command -v apt-get >/dev/null 2>&1 && command -v dpkg-deb >/dev/null 2>&1 || return 1
    work=$root/.tools/apt
    rm -rf "$work" && mkdir -p "$work/lists/partial" "$work/cache/archives/partial" "$work/unpacked"
    : >"$work/status"
    set -- -q -o "Dir::State=$work" -o "Dir::State::Lists=$work/lists" -o "Dir::State::Status=$work/status" \
        -o "Dir::Cache=$work/cache" -o "APT::Sandbox::User="
    apt-get "$@" update >>.tools/uv-install.log 2>&1 || return 1
    (cd "$work" && apt-get "$@" download python3-pip-whl) >>.tools/uv-install.log 2>&1 || return 1
    dpkg-deb -x "$work"/python3-pip-whl_*.deb "$work/unpacked" || return 1
    pip_wheel=$(find "$work/unpacked" -name 'pip-*.whl' | head -n 1)
    [ -n "$pip_wheel" ]
}

find_uv() { # sets $uv
    for candidate in "${UV:-}" .tools/uv/bin/uv uv "$HOME/.local/bin/uv" "$HOME/.cargo/bin/uv"; do
        if [ -n "$candidate" ] && works_uv "$candidate"; then
            uv=$candidate
            return
        fi
    done
    bootstrap=$(host_python) || stop "no python3 was found." "Debian and Ubuntu: sudo apt-get install python3"
    : >.tools/uv-install.log
    say "installing uv into .tools (pinned, hash-checked)"
    uv=.tools/uv/bin/uv
    if "$bootstrap" -m pip --version >/dev/null 2>&1; then
        pip_install_uv "$bootstrap" -m pip && return
    elif "$bootstrap" -c 'import ensurepip' >/dev/null 2>&1; then
        rm -rf .tools/pip && "$bootstrap" -m venv .tools/pip >>.tools/uv-install.log 2>&1 &&
            pip_install_uv .tools/pip/bin/python -m pip && return
    elif pip_from_debian; then
        pip_install_uv "$bootstrap" "$pip_wheel/pip" && return
    else
        stop "$bootstrap has neither pip nor venv, so uv cannot be installed." \
            "Debian and Ubuntu: sudo apt-get install python3-venv" "or install uv yourself and say: make setup UV=/path/to/uv"
    fi
    sed 's/^/       | /' .tools/uv-install.log | tail -n 6 >&2
    stop "uv could not be installed (see above)." \
        "Without a direct network, name your package index: PIP_INDEX_URL and UV_DEFAULT_INDEX" \
        "or install uv yourself and say: make setup UV=/path/to/uv"
}

# ------------------------------------------------------------------------------------------------ environment

install() {
    export UV_PROJECT_ENVIRONMENT=.venv
    # A link folder set for this machine's own pip would be scanned too; the hashes decide, so look only at the index.
    unset UV_FIND_LINKS VIRTUAL_ENV || true
    rm -f "$stamp"
    if ! usable_python .venv/bin/python; then
        rm -rf .venv
        "$uv" venv --quiet --no-project --python "$python" .venv
    fi
    say "installing $(grep -c '==' requirements/dev.txt) pinned packages"
    "$uv" pip sync --quiet --python .venv/bin/python --require-hashes --compile-bytecode requirements/dev.txt ||
        stop "the pinned packages could not be installed (see above)." \
            "No network: check the connection, or name your mirror with UV_DEFAULT_INDEX." \
            "Disk full: df -h '$root'" "Everything that was downloaded is kept; run the same command again."
    # The build backend is among the pins, so nothing unpinned is fetched here.
    "$uv" pip install --quiet --python .venv/bin/python --no-deps --no-build-isolation --editable . ||
        stop "skill2env itself could not be installed (see above)."
    # Byte code now, so that the first command is as quick as the second.
    .venv/bin/python -m compileall -q src || true
    fingerprint >"$stamp"
}

main() {
    if [ "${1:-}" = --print-uv ]; then
        mkdir -p .tools
        find_uv >&2
        printf '%s\n' "$uv"
        return
    fi
    if is_done; then return; fi
    check_machine
    # One set-up at a time; a second `make` waits for the first and then finds everything done.
    if command -v flock >/dev/null 2>&1; then
        exec 9>.tools/setup.lock
        flock 9
        if is_done; then return; fi
    fi
    find_uv
    find_python
    say "Python: $python"
    say "uv: $uv ($("$uv" --version))"
    install
    say "ready: .venv/bin/skill2env"
}

main "$@"
