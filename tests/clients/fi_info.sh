#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# SPDX-FileCopyrightText: 2026 The Heddle authors
#
# Debian's fi_info lists the provider, with fields that programs rely on.
# shellcheck source=tests/clients/lib.sh
. "$(dirname "$0")/lib.sh" "$@"
need fi_info fi_strerror

info() {
	over "${transports[0]}" 60 fi_info -p "$PROVIDER" "$@" >"$scratch/log" 2>&1
}

# refused args…: with the answer that the manual page gives, not by any accident
refused() {
	info "$@"
	grep -q 'fi_getinfo: -61' "$scratch/log"
}

# field NAME PATTERN: some line of the last output reads "NAME: PATTERN"
field() {
	grep -qE "^ *$1: *$2" "$scratch/log"
	judge "fi_info $1 ${2//[^A-Z_]/}" "no line '$1: $2'"
}

if [ "$PROVIDER" = heddle ]; then
	info -l && grep -q '^heddle:' "$scratch/log"
	judge "fi_info -l" "the provider is not listed"
fi
info -t FI_EP_RDM -v
judge "fi_info -t FI_EP_RDM" "fi_info failed"
field prov_name "$PROVIDER"
field type FI_EP_RDM
for cap in FI_MSG FI_TAGGED FI_SEND FI_RECV FI_MULTI_RECV; do field caps ".*${cap}[], ]"; done
if [ "$PROVIDER" = heddle ]; then
	for cap in FI_SOURCE FI_DIRECTED_RECV FI_LOCAL_COMM FI_REMOTE_COMM; do field caps ".*${cap}[], ]"; done
	# it answers with the interface that it was asked for
	field api_version "$(fi_info --version | sed -n 's/^libfabric api: //p' | sed 's/\./\\./')$"
fi
field addr_format 'FI_SOCKADDR_IN6?$'
field msg_order '.*FI_ORDER_SAS'
field max_msg_size '[1-9][0-9]{6,}'
field inject_size '[1-9][0-9]*'
field iov_limit '[1-9][0-9]*'
field cq_data_size 8
field resource_mgmt FI_RM_ENABLED

info -t FI_EP_RDM -c 'FI_TAGGED|FI_DIRECTED_RECV|FI_SOURCE'
judge "fi_info -c" "capabilities that Open MPI asks for are refused"
refused -t FI_EP_RDM -c FI_HMEM
judge "fi_info -c FI_HMEM" "device memory is not refused"
info -t FI_EP_RDM -n 127.0.0.1
judge "fi_info -n 127.0.0.1" "a loopback node is refused"
refused -t FI_EP_RDM -d no-such-domain
judge "fi_info -d" "a domain that does not exist is not refused"
fi_strerror 125 >"$scratch/log" 2>&1 && grep -qx 'Operation canceled' "$scratch/log"
judge "fi_strerror" "another text"
# layered providers must not stack themselves upon it
if [ "$PROVIDER" = heddle ]; then
	timeout -k 5 60 fi_info >"$scratch/log" 2>&1
	grep -q '^provider: heddle$' "$scratch/log" && ! grep -q 'heddle;' "$scratch/log"
	judge "no layers upon it" "a layered provider stacks itself upon heddle"
fi
finish
