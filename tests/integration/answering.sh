#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# A CGI that changes a file and answers with its URL, so that httpd serves it in the same request.
# Query: ACTION&FILE&TEXT&URL. After the URL nothing follows.
IFS='&'
# shellcheck disable=SC2086     # split by IFS
set -f -- $QUERY_STRING
case $1 in
write) printf '%s\n' "$3" >"$2" ;;
replace) printf '%s\n' "$3" >"$2.new" && mv -f "$2.new" "$2" ;;
remove) rm "$2" ;;
esac
printf 'Location: %s\n\n' "$4"
