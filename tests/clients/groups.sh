#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# SPDX-FileCopyrightText: 2026 The Heddle authors
#
# Groups (row M15 of ofi-conformance) where loopback does not do: between network namespaces, over IPv4 and IPv6, with endpoints
# that are bound to one address and with such as have all, and where one of them has two interfaces. With SEALED set all of them have a key.
# shellcheck source=tests/clients/lib.sh
. "$(dirname "$0")/lib.sh" "$@"
# shellcheck source=tests/clients/netns.sh
. "$(dirname "$0")/netns.sh"
need ip
if [ -n "${SEALED:-}" ]; then
	"$BUILD/heddle" key "$scratch/key" || exit 1
	export HEDDLE_KEY_FILE=$scratch/key
fi

# A third namespace, at another interface of the first.
names+=("hd-c-$$")
make_third() {
	local n=${names[2]}
	ip netns add "$n" && ip -n "$n" link set lo up &&
		ip -n "${names[0]}" link add v1 type veth peer name v1 netns "$n" &&
		ip -n "${names[0]}" addr add 10.213.8.1/24 dev v1 && ip -n "$n" addr add 10.213.8.2/24 dev v1 &&
		ip -n "${names[0]}" addr add fd00:ddef::1/64 dev v1 nodad && ip -n "$n" addr add fd00:ddef::2/64 dev v1 nodad &&
		ip -n "${names[0]}" link set v1 up && ip -n "$n" link set v1 up
}

# Groups of IPv6 need the interfaces' own addresses, which are tentative at first.
settle() {
	local n i
	for n in "${names[@]}"; do
		for ((i = 0; i < 200; i++)); do
			ip -n "$n" -6 addr show scope link | grep -q inet6 && ! ip -n "$n" -6 addr show tentative | grep -q inet6 && break
			sleep 0.05
		done
	done
}

# row NAME ARGUMENTS…: the cases, with these arguments of ofi-conformance
row() {
	local name=$1 line case verdict why any=no
	shift
	over tcp 600 "$BUILD/tests/conformance/ofi-conformance" -p "$PROVIDER" "$@" >"$scratch/out" 2>"$scratch/errors"
	while read -r line; do
		[[ $line =~ ^M15\ ([a-z0-9-]+)\ (pass|fail|unsupported)\ *(.*)$ ]] || continue
		any=yes case=${BASH_REMATCH[1]} verdict=${BASH_REMATCH[2]} why=${BASH_REMATCH[3]}
		case $verdict in
		pass) pass "M15 $case, $name" ;;
		fail) cp "$scratch/errors" "$scratch/log" && fail "M15 $case, $name" "$why" ;;
		*) skip "M15 $case, $name" "$why" ;;
		esac
	done <"$scratch/out"
	[ $any = yes ]
	judge "M15 runs, $name" "no case has run: $(tail -n 1 "$scratch/errors")"
}

if ! { make && make_third; } 2>"$scratch/log"; then
	skip "groups across namespaces" "$(needs_namespaces)"
	finish
fi
settle
two=(-N "${names[0]}" -N "${names[1]}")
three=("${two[@]}" -N "${names[2]}")
row "IPv4, two namespaces" "${two[@]}" -n "${address[0]}" -n "${address[1]}" -t M15 -x link-scope-named
row "IPv6, two namespaces" "${two[@]}" -n "${address6[0]}" -n "${address6[1]}" -t M15
[ "$fast" = no ] || finish
some=(-t all-hear -t all-talk -t link-scope -t link-scope-named -t link-scope-talk)
row "IPv6, one namespace" -N "${names[0]}" -n "${address6[0]}" "${some[@]}"
row "IPv6, all addresses" "${two[@]}" -n :: "${some[@]}"
row "IPv4, two interfaces" "${three[@]}" -n 0.0.0.0 -t one-hears -t link-scope-one-hears
row "IPv6, two interfaces" "${three[@]}" -n :: -t one-hears -t link-scope-one-hears
finish
