# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# For scripts/compare --app and scripts/test full, which source it after setup.sh. It unpacks Debian's packages of the applications,
# of PHP and of a database below $fp_build/apps/root. They are not installed: none of their scripts runs, no
# service starts, and the machine's own Apache, PHP and databases stay as they are.

fp_app_packages=(
    wordpress wordpress-theme-twentytwentythree dokuwiki mediawiki mariadb-server-core
    php8.2-cli php8.2-fpm libapache2-mod-php8.2 php8.2-opcache php8.2-mysql php8.2-sqlite3 php8.2-xml php8.2-mbstring php8.2-intl
)

# All packages that these need and this machine lacks. Everything of PHP and JavaScript in any case: paths lead from
# one of these into the other.
fp_app_closure() {
    local names
    names=$(apt-get -s -q -o Dir::State::status=/dev/null --no-install-recommends install "${fp_app_packages[@]}" |
        sed -n 's/^Inst \([^ ]*\) .*/\1/p' | grep -vx 'php')
    grep -E '^(php|libphp|libjs|libapache2-mod-php|wordpress|dokuwiki|mediawiki|mariadb-(server|client)-core)' <<<"$names"
    # shellcheck disable=SC2046 # one name a word
    fp_missing_packages $(grep -E '^lib' <<<"$names" | grep -vE '^(libphp|libjs|libapache2)')
}

# Links between packages lead to the machine's paths. Turned, they lead to the same places below the root, or to an
# absent path.
fp_app_turn_links() {
    local root=$1 link target
    find "$root" -type l -lname '/*' | while read -r link; do
        target=$(readlink "$link")
        ln -sfnr "$root$target" "$link" || return 1
    done
    find "$root" -xtype l -delete
}

fp_app_unpack() {
    local root=$1 archive
    mkdir -p "$root.new/archives"
    mapfile -t names < <(fp_app_closure)
    [ ${#names[@]} -gt 0 ] || return 1
    (cd "$root.new/archives" && apt-get -q download "${names[@]}") || return 1
    for archive in "$root.new/archives"/*.deb; do
        dpkg-deb -x "$archive" "$root.new" || return 1
    done
    rm -rf "$root.new/archives" "$root.new"/usr/share/{doc,man,locale,lintian}
    fp_app_turn_links "$root.new" || return 1
    echo "${fp_app_packages[*]}" >"$root.new/packages"
    mv "$root.new" "$root"
}

# Once for a build directory and list of packages; as root, because the lists of Debian's packages are brought up to date.
fp_get_apps() {
    local log=$fp_build/apps/get.log root=$fp_build/apps/root
    [ "$(cat "$root/packages" 2>/dev/null)" != "${fp_app_packages[*]}" ] || return 0
    command -v apt-get >/dev/null && command -v dpkg-deb >/dev/null ||
        fp_fail "--app needs Debian's packages (apt-get, dpkg-deb): measure a site of yours by its directory instead"
    mkdir -p "$fp_build/apps"
    rm -rf "$root.new" "$root"
    : >"$log"
    fp_say "unpacking ${fp_app_packages[*]} and what they need in $root (not installed)"
    fp_quietly "$log" fp_as_root apt-get -q update || fp_fail "apt-get update failed"
    fp_quietly "$log" fp_app_unpack "$root" || fp_fail "cannot get the packages of --app"
}
