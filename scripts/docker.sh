#!/bin/sh
# Install docker, a registry and the compose plugin from Debian, and start the engine: for tests that need one.
#
#   scripts/docker.sh          install what is missing and start dockerd (root, or a user who may sudo)
#   scripts/docker.sh --stop   stop the dockerd that this script started
#
# Nothing is started where an engine answers already. Debian 12 has no compose plugin, so that one file comes from the
# pinned suite below, through the machine's own mirror and with apt's own checks.
set -eu

COMPOSE_SUITE=trixie
COMPOSE_VERSION=2.26.1-4
PLUGINS=/usr/local/lib/docker/cli-plugins
PID_FILE=/run/skill2env-dockerd.pid
LOG=/var/log/skill2env-dockerd.log
WAIT_SEC=60

here=$(cd "$(dirname "$0")/.." && pwd)
root() { if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi; }
say() { echo "docker.sh: $*" >&2; }
answers() { docker version --format '{{.Server.Version}}' 2>/dev/null; }

install_engine() {
    packages=
    command -v dockerd >/dev/null || [ -x /usr/sbin/dockerd ] || packages="docker.io"
    command -v docker-registry >/dev/null || packages="$packages docker-registry"
    if ! command -v docker >/dev/null && apt-cache show docker-cli >/dev/null 2>&1; then packages="$packages docker-cli"; fi
    [ -z "$packages" ] && return
    say "installing$packages"
    root apt-get update -q >&2
    # shellcheck disable=SC2086
    root env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends iptables $packages >&2
}

install_compose() {
    docker compose version >/dev/null 2>&1 && return
    say "fetching the compose plugin $COMPOSE_VERSION from $COMPOSE_SUITE"
    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
    mkdir -p "$work/state/lists/partial" "$work/cache/archives/partial"
    : > "$work/status"
    "$here/scripts/setup.sh" >&2
    "$here/.venv/bin/python" - "$COMPOSE_SUITE" > "$work/sources.list" <<'END'
import sys
from skill2env.sandbox import mirrors
print(mirrors.debian_mirror().sources(sys.argv[1], signed_by=str(mirrors.KEYRING)))
END
    set -- -q -o "Dir::Etc::SourceList=$work/sources.list" -o Dir::Etc::SourceParts=/dev/null \
        -o "Dir::State=$work/state" -o "Dir::State::status=$work/status" -o "Dir::Cache=$work/cache" \
        -o APT::Sandbox::User=root
    apt-get "$@" update >&2
    (cd "$work" && apt-get "$@" download "docker-compose=$COMPOSE_VERSION" >&2)
    dpkg-deb -x "$work"/docker-compose_*.deb "$work/files"
    root install -D -m 755 "$work/files/usr/libexec/docker/cli-plugins/docker-compose" "$PLUGINS/docker-compose"
    docker compose version >&2
}

start() {
    if version=$(answers); then
        say "docker $version answers"
        return
    fi
    if [ -d /run/systemd/system ]; then
        root systemctl start docker
    else
        # shellcheck disable=SC2016
        root sh -c 'PATH=$PATH:/usr/sbin:/sbin; setsid dockerd >"$1" 2>&1 </dev/null & echo $! >"$2"' sh "$LOG" "$PID_FILE"
    fi
    left=$WAIT_SEC
    while ! version=$(answers); do
        left=$((left - 1))
        if [ "$left" -le 0 ]; then
            say "dockerd does not answer; the end of $LOG:"
            root tail -n 20 "$LOG" >&2 || true
            exit 3
        fi
        sleep 1
    done
    say "docker $version answers"
}

stop() {
    if [ ! -f "$PID_FILE" ]; then
        say "no dockerd of this script runs"
        return
    fi
    pid=$(cat "$PID_FILE")
    if [ "$(cat "/proc/$pid/comm" 2>/dev/null)" = dockerd ]; then root kill "$pid"; fi
    left=$WAIT_SEC
    while [ -d "/proc/$pid" ] && [ "$left" -gt 0 ]; do
        left=$((left - 1))
        sleep 1
    done
    root rm -f "$PID_FILE"
    say "stopped"
}

case ${1:-} in
    '') install_engine && install_compose && start ;;
    --stop) stop ;;
    *)
        sed -n '2,8p' "$0" | sed 's/^# \{0,1\}//' >&2
        exit 2
        ;;
esac
