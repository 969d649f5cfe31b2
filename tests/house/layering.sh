#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# SPDX-FileCopyrightText: 2026 The Heddle authors
#
# The tree keeps the law, and ci/layering notices each way of breaking it.
set -euo pipefail
cd "$(dirname "$0")/../.."
. tests/tap.sh

layering=$PWD/ci/layering

# A small tree that keeps the law, with one file replaced by one of the given content.
tree_with() {
	local root=$tap_scratch/tree file=$1
	rm -rf "$root"
	mkdir -p "$root"/src/{base,engine/link,engine/node,tool,transport/{shm,tcp},front/{ofi,verbs}}
	echo '#include <stdio.h>' >"$root/src/base/log.c"
	echo '#include "engine/transport.h"' >"$root/src/engine/link/peer.c"
	echo 'extern const struct hd_transport hd_transport_shm;' >"$root/src/engine/node/transports.c"
	echo '#include "engine/transport.h"' >"$root/src/transport/shm/ring.c"
	echo '#include <rdma/fabric.h>' >"$root/src/front/ofi/info.c"
	[ $# -eq 1 ] || printf '%s\n' "$2" >"$root/$file"
	"$layering" "$root"
}

# Both the exit status and the place in the message count.
complains_of_line_one() {
	local output
	! output=$(tree_with "$1" "$2" 2>&1) && grep -q "^layering: $1:1: " <<<"$output"
}

refuses() {
	check "refuses in $1: $2" complains_of_line_one "$1" "$2"
}

check "the project's own tree keeps the law" "$layering"
check "a lawful tree passes" tree_with none
check "a transport's test may use the common suite" tree_with src/transport/shm/shm_test.c '#include "transport/suite.h"'
refuses src/base/log.c '#include "engine/engine.h"'
refuses src/base/log.c '#include "log.h"'
refuses src/engine/link/peer.c '#include "transport/shm/ring.h"'
refuses src/engine/link/peer.c '#include "front/ofi/ofi.h"'
refuses src/engine/link/peer.c '#include <rdma/fabric.h>'
refuses src/engine/link/peer.c 'extern const struct hd_transport hd_transport_tcp;'
refuses src/engine/link/peer.c '	return hd_shm_ring_push(ring);'
refuses src/transport/shm/ring.c '#include "engine/engine.h"'
refuses src/transport/shm/ring.c '#include "transport/tcp/tcp.h"'
refuses src/transport/shm/ring.c '#  include "../../engine/link.h"'
refuses src/front/ofi/info.c '#include "engine/transport.h"'
refuses src/front/ofi/info.c '#include "transport/shm/shm.h"'
refuses src/front/ofi/info.c '#include "front/verbs/verbs.h"'
refuses src/front/ofi/info.c '#include <infiniband/verbs.h>'
refuses src/tool/main.c '#include "engine/internal.h"'
refuses src/front/ofi/info.c '#include HEADER'
check_status "a tree without sources is refused" 1 "$layering" "$tap_scratch"
check "rooms are no further from the law than they were" ci/rooms "$HD_BUILD"
printf 'upward calls -1\nupward includes 0\nknots 0\nshared names 0\n' >"$tap_scratch/none"
check_status "more calls up than there were are refused" 1 ci/rooms --most "$tap_scratch/none" "$HD_BUILD"
printf 'upward calls 999\nupward includes 999\nknots 999\nshared names 9999\n' >"$tap_scratch/many"
check_status "and fewer are to be written down" 1 ci/rooms --most "$tap_scratch/many" "$HD_BUILD"
finish
