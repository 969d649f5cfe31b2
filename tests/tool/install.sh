#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# SPDX-FileCopyrightText: 2026 The Heddle authors
#
# What make install puts where, and that it works from there, wherever that is. Reads HD_BUILD.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
# shellcheck source=tests/tap.sh
. "$root/tests/tap.sh"
unset FI_PROVIDER FI_PROVIDER_PATH

stage=$(realpath "$tap_scratch")/stage
check "installs" meson install -C "$HD_BUILD" --no-rebuild --quiet --destdir "$stage"
prefix=$(find "$stage" -path '*/bin/heddle' -printf '%h\n')
prefix=${prefix%/bin}

exported() {
	nm -D --defined-only "$1" | awk '{ print $3 }'
}

# A thread's variables lie where a thread begins: HD_THREAD_LOCAL. There is little to spare for libraries that are loaded late, and they take little.
in_the_first_block() {
	local size
	size=$(readelf -lW "$1" | awk '$1 == "TLS" { print $6 }')
	! nm -D --undefined-only "$1" | grep -w __tls_get_addr && [ $((${size:-0})) -le 64 ]
}

check "bin/heddle" test -x "$prefix/bin/heddle"
check "lib/heddle/libheddle-fi.so" test -f "$prefix/lib/heddle/libheddle-fi.so"
# uDAPL's and what needs OpenSSL are there where they were built
expected='libheddle-fi.so '
[ ! -e "$HD_BUILD/dat.conf" ] || expected="dat.conf libdaplheddle.so.2 $expected"
[ ! -e "$HD_BUILD/libheddle-tls.so" ] || expected+='libheddle-tls.so '
check "nothing else is in the providers' folder" test "$(find "$prefix/lib/heddle" -maxdepth 1 -type f -printf '%f\n' | sort | tr '\n' ' ')" = "$expected"
check "heddle(1)" test -f "$prefix/share/man/man1/heddle.1"
check "heddle(7)" test -f "$prefix/share/man/man7/heddle.7"
for page in fi_heddle dat_heddle heddle_rdmacm heddle_verbs; do
	check "$page(7)" test -f "$prefix/share/man/man7/$page.7"
done
check "the README" test -f "$prefix/share/doc/heddle/README.md"
check_output "the provider exports fi_prov_ini alone" '^fi_prov_ini$' exported "$prefix/lib/heddle/libheddle-fi.so"
check_output "and nothing besides" '^1$' bash -c "nm -D --defined-only '$prefix/lib/heddle/libheddle-fi.so' | wc -l"
while read -r library; do
	check "${library##*/} asks nobody for a thread's variables" in_the_first_block "$library"
done < <(find "$prefix/lib/heddle" -name '*.so*' -type f)
check_output "the installed heddle finds its provider" ":$prefix/lib/heddle\$" \
	"$prefix/bin/heddle" run printenv FI_PROVIDER_PATH
check_output "and libfabric loads it from there" '^provider: heddle$' "$prefix/bin/heddle" run fi_info -p heddle


# verbs, where it was built: the functions and versions of the real libraries, in one file under all names
if [ -d "$prefix/lib/heddle/preload" ]; then
	drop_in=$prefix/lib/heddle/compat
	versions() {
		nm -D --defined-only --with-symbol-versions "$@" | grep -oE '[^ ]+@@[A-Z_]+[0-9.]+$' | grep -v '@@HEDDLE' | sort -u
	}
	check "lib/heddle/preload/libheddle-verbs.so" test -f "$prefix/lib/heddle/preload/libheddle-verbs.so"
	for name in librdmacm.so.1 librdmacm.so libibverbs.so; do
		check "$name is libibverbs.so.1" test "$drop_in/$name" -ef "$drop_in/libibverbs.so.1"
	done
	real=$(ldconfig -p | awk '/lib(ibverbs|rdmacm)\.so\.1 / { print $NF }')
	# shellcheck disable=SC2086 # two names
	missing=$(comm -13 <(versions "$drop_in/libibverbs.so.1") <(versions $real))
	check "the drop-in has all functions of both, in their versions" test -n "$real" -a -z "$missing"
	# shellcheck disable=SC2086
	missing=$(comm -13 <(exported "$prefix/lib/heddle/preload/libheddle-verbs.so" | sort -u) \
		<(versions $real | grep -v PRIVATE | sed 's/@.*//' | sort -u))
	check "the preload has all that are public" test -z "$missing"
fi

mv "$stage" "$stage.moved"
prefix=${prefix/#$stage/$stage.moved}
check_output "also after the tree has moved" '^provider: heddle$' "$prefix/bin/heddle" run fi_info -p heddle
check_output "heddle info shows where it is" "^ +libfabric +$prefix/lib/heddle/libheddle-fi.so" "$prefix/bin/heddle" info
finish
