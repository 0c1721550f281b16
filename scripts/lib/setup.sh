# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# For the scripts that source it: installing what the build needs, building, and finding Apache
# httpd. The caller sets fp_repo (the source tree) and runs with set -eu.
#
#   FLASHPACHE_BUILD  where to build (default: build/ in the source tree)

# configure and make take no path with a space or the like. A source tree that has one is built in the
# user's cache directory, from a symbolic link there.
fp_is_plain() {
    case $1 in
    *[![:alnum:]_./+@,-]*) return 1 ;;
    esac
}

fp_source=$fp_repo
fp_build=${FLASHPACHE_BUILD:-$fp_repo/build}
if ! fp_is_plain "$fp_repo"; then
    fp_build=${FLASHPACHE_BUILD:-${XDG_CACHE_HOME:-$HOME/.cache}/flashpache/$(printf %s "$fp_repo" | cksum | cut -d' ' -f1)}
    fp_source=$fp_build/source
fi

# apache2-bin is the server without its service: nothing of it is started, now or at boot.
fp_packages=(
    apache2-bin apache2-dev libapr1-dev libaprutil1-dev check libev-dev libsodium-dev
    uthash-dev libhiredis-dev libseccomp-dev autoconf automake libtool pkg-config make gcc libc6-dev
    fuse3 libfuse3-dev libcurl4-openssl-dev libssl-dev strace python3 python3-pytest curl openssl
)

# Further packages for the tests of packages and service, spelling, manual pages, shells that complete, fleets and HTTP/2.
# Others are a whole system to install in, a virtual machine, other servers, and the report of the lab.
fp_test_packages=(
    acl codespell python3-pytest-xdist build-essential debhelper dpkg-dev procps libsystemd-dev lintian mmdebstrap systemd man-db fish zsh
    qemu-system-x86 cpio iproute2 nftables sudo redis-server nghttp2-client nginx lighttpd vmtouch python3-matplotlib python3-prometheus-client
)

# Further packages for scripts/test full: a browser, and letters for it; promtool; RPMs; a policy's compiler; a role's
# runner; network file systems with their servers, which the tests start by themselves, on loopback;
# drawings of pages; proxies.
fp_full_packages=(
    chromium fonts-dejavu-core prometheus rpm selinux-policy-dev ansible-core python3-yaml
    rclone sshfs openssh-server davfs2 glusterfs-server glusterfs-client mupdf-tools haproxy varnish
)

fp_begin=$SECONDS

# A line of progress with the seconds since the start.
fp_say() {
    printf '[%3d s] %s\n' $((SECONDS - fp_begin)) "$*"
}

fp_fail() {
    printf '%s: %s\n' "${0##*/}" "$*" >&2
    exit 1
}

fp_as_root() {
    if [ "$(id -u)" -eq 0 ]; then
        "$@"
    else
        sudo "$@"
    fi
}

# Runs a command with its output in a log; shows the log's end if the command fails.
fp_quietly() {
    local log=$1
    shift
    if ! "$@" >>"$log" 2>&1 </dev/null; then
        printf '%s: failed: %s\nThe end of %s:\n' "${0##*/}" "$*" "$log" >&2
        tail -n 30 "$log" >&2
        return 1
    fi
}

# The packages among the arguments that are not installed.
fp_missing_packages() {
    local package
    for package in "$@"; do
        # pkg-config may be provided by pkgconf, as newer releases do.
        [ "$package" = pkg-config ] && command -v pkg-config >/dev/null && continue
        dpkg-query -W -f='${db:Status-Status}\n' "$package" 2>/dev/null | grep -qx installed ||
            printf '%s\n' "$package"
    done
}

# apt-get install without starting services. A policy of the system's own stays. In a subshell, so that ours goes
# away however this ends.
fp_apt_install() (
    policy=/usr/sbin/policy-rc.d
    if [ ! -e "$policy" ]; then
        trap 'fp_as_root rm -f "$policy"' EXIT
        trap 'exit 130' INT TERM HUP
        printf '#!/bin/sh\nexit 101\n' | fp_as_root tee "$policy" >/dev/null
        fp_as_root chmod 755 "$policy"
    fi
    fp_as_root env DEBIAN_FRONTEND=noninteractive apt-get -y -q --no-install-recommends \
        -o DPkg::Lock::Timeout=300 install "$@"
)

# Servers among packages that were just installed are for the tests alone: they do not start at boot either.
fp_keep_down() {
    local package
    for package in "$@"; do
        case $package in
        nginx|lighttpd|redis-server|prometheus|prometheus-node-exporter) fp_as_root systemctl disable "$package" || return 1 ;;
        openssh-server) fp_as_root systemctl disable ssh.service ssh.socket || return 1 ;;
        glusterfs-server) fp_as_root systemctl disable glusterd.service || return 1 ;;
        esac
    done
}

# Installs those of the given packages that are missing (default: fp_packages). One run at a time on a
# machine: the lock is on dpkg's own directory, which every user can open.
fp_install_packages() {
    local missing log lock
    [ $# -gt 0 ] || set -- "${fp_packages[@]}"
    if ! command -v apt-get >/dev/null || ! command -v dpkg-query >/dev/null; then
        fp_say "not Debian or Ubuntu: the packages of these names are assumed to be there: $*"
        return 0
    fi
    mapfile -t missing < <(fp_missing_packages "$@")
    [ ${#missing[@]} -gt 0 ] || return 0
    if [ "$(id -u)" -ne 0 ] && ! command -v sudo >/dev/null; then
        fp_fail "needs packages; as root run: apt-get install ${missing[*]}"
    fi
    fp_say "installing ${missing[*]}"
    log=$(mktemp "${TMPDIR:-/tmp}/flashpache-install.XXXXXX")
    # Ask for the password here: below, the output goes to the log.
    [ "$(id -u)" -eq 0 ] || sudo -v
    exec {lock}</var/lib/dpkg
    flock "$lock"
    # Another run may have installed them meanwhile; installed ones stay as they are.
    mapfile -t missing < <(fp_missing_packages "$@")
    if [ ${#missing[@]} -eq 0 ]; then
        exec {lock}<&-
        rm -f "$log"
        return 0
    fi
    fp_quietly "$log" fp_as_root apt-get -q update || fp_fail "apt-get update failed"
    fp_quietly "$log" fp_apt_install "${missing[@]}" || fp_fail "apt-get install failed"
    fp_quietly "$log" fp_keep_down "${missing[@]}" || fp_fail "cannot keep a server from starting at boot"
    exec {lock}<&-
    rm -f "$log"
}

# libtool runs in the shell that configure finds: Debian's sh is faster than its bash.
fp_configure() {
    [ "$fp_source" -ef "$fp_repo" ] || ln -sfn "$fp_repo" "$fp_source" || return 1
    [ -x "$fp_source/configure" ] || (cd "$fp_source" && autoreconf -i) || return 1
    [ -f "$fp_build/Makefile" ] || (cd "$fp_build" && CONFIG_SHELL=/bin/sh "$fp_source/configure" "$@")
}

# Builds everything out of tree; arguments go to configure, the first time. make itself
# brings configure and Makefile up to date afterwards.
fp_build_tree() {
    local log=$fp_build/build.log
    fp_is_plain "$fp_build" ||
        fp_fail "cannot build in $fp_build: set FLASHPACHE_BUILD to a path without spaces and other marks"
    mkdir -p "$fp_build"
    : >"$log"
    fp_say "building in $fp_build"
    fp_quietly "$log" fp_configure "$@" || fp_fail "cannot configure"
    fp_quietly "$log" make -C "$fp_build" -j"$(nproc)" || fp_fail "cannot build"
}

# Apache httpd by its apxs, which knows where a distribution has its parts: fp_httpd and fp_modules.
fp_find_httpd() {
    local apxs sbin name
    apxs=$(command -v apxs || command -v apxs2 || echo /usr/sbin/apxs)
    [ -x "$apxs" ] || fp_fail "apxs is missing: install apache2-dev or httpd-devel"
    sbin=$("$apxs" -q SBINDIR)
    name=$("$apxs" -q PROGNAME 2>/dev/null || echo httpd)
    fp_httpd=$sbin/$name
    fp_modules=$("$apxs" -q LIBEXECDIR)
    [ -x "$fp_httpd" ] || fp_fail "$fp_httpd is missing: install Apache httpd"
}

# Apache's children run as fp_user; empty when we are not root and they run as ourselves.
fp_find_user() {
    fp_user=
    [ "$(id -u)" -eq 0 ] || return 0
    for fp_user in www-data apache nobody; do
        ! id -u "$fp_user" >/dev/null 2>&1 || return 0
    done
    fp_fail "none of the users www-data, apache and nobody exists"
}
