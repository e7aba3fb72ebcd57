"""What is done inside a sandbox to make a base image. Each text decides bytes, and so the digest, of every base."""

# Files of ours, written before the first package: what container images of Debian set, too.
SETTINGS = r"""
set -e
mkdir -p /etc/dpkg/dpkg.cfg.d /etc/apt/apt.conf.d /usr/sbin
cat > /etc/dpkg/dpkg.cfg.d/container <<'END'
force-unsafe-io
path-exclude=/usr/share/doc/*
path-include=/usr/share/doc/*/copyright
path-exclude=/usr/share/man/*
path-exclude=/usr/share/info/*
path-exclude=/usr/share/locale/*
path-exclude=/usr/share/lintian/*
path-exclude=/usr/share/bug/*
END
cat > /etc/apt/apt.conf.d/container <<'END'
APT::Keep-Downloaded-Packages "false";
APT::AutoRemove::SuggestsImportant "false";
Acquire::Languages "none";
Dir::Cache::pkgcache "";
Dir::Cache::srcpkgcache "";
END
printf '#!/bin/sh\nexit 101\n' > /usr/sbin/policy-rc.d
chmod 755 /usr/sbin/policy-rc.d
"""

# Dependencies are ignored while unpacking, where there is no good order yet, and honoured while configuring.
CONFIGURE = r"""
set -e
export DEBIAN_FRONTEND=noninteractive DEBCONF_NONINTERACTIVE_SEEN=true LC_ALL=C PYTHONHASHSEED=0
cp /usr/share/base-passwd/passwd.master /etc/passwd
cp /usr/share/base-passwd/group.master /etc/group
dpkg --force-depends --unpack /run/debs/*.deb
dpkg --configure --pending
test -z "$(dpkg --audit)"
"""

CLEAN = r"""
set -e
rm -rf /var/cache/apt/* /var/lib/apt/lists/* /var/log/* /var/cache/ldconfig/* /var/cache/debconf/*-old
rm -rf /var/tmp/* /tmp/* /root/.[!.]* /usr/share/man/* /usr/share/info/* /usr/share/locale/*
rm -rf /usr/share/lintian /usr/share/bug
find /usr/share/doc -mindepth 2 ! -name copyright ! -type d -delete
find /usr/share/doc -mindepth 1 -type d -empty -delete
find / -xdev -name __pycache__ -type d -prune -exec rm -rf {} +
# Byte code keyed by content instead of time: python starts three times faster and the bytes repeat.
PYTHONHASHSEED=0 python3 -I -m compileall -q -j 1 --invalidation-mode unchecked-hash /usr/lib/python3* || test $? = 1
rm -f /var/lib/dpkg/*-old /etc/*- /etc/.pwd.lock /etc/resolv.conf /etc/hostname /etc/apt/sources.list
rm -rf /etc/apt/sources.list.d/*
: > /etc/machine-id
printf '127.0.0.1 localhost\n::1 localhost\n' > /etc/hosts
mkdir -p /var/cache/apt/archives/partial /var/lib/apt/lists/partial /var/log/apt
chmod 1777 /tmp /var/tmp
"""

PACK = (
    "cd / && exec tar -cf /run/out/raw.tar --sort=name --numeric-owner --one-file-system "
    "--exclude='./dev/*' --exclude='./proc/*' --exclude='./sys/*' --exclude='./run/*' ."
)
UNPACK = "exec tar -xpf /run/out/layer.tar --numeric-owner -C /run/rootfs"
