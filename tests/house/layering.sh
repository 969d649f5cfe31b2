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
	mkdir -p "$root"/src/{base,engine/{link,node,qp},tool,transport/{shm,tcp},front/{ofi,verbs}}
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
refuses src/engine/link/peer.c '#include "engine/rq/rq.h"'
refuses src/engine/link/peer.c '#include "engine/name/key.h"'
refuses src/engine/qp/sq.c '#include "engine/rdm/rdm.h"'
check "a room may include those below it" tree_with src/engine/link/peer.c '#include "engine/name/name.h"'
check "a unit sees what all rooms show" tree_with src/engine/link/peer_test.c '#include "engine/rq/rq.h"'
check "and what is its own room's alone" tree_with src/engine/cm/call_test.c '#include "engine/cm/space.h"'
refuses src/engine/link/peer_test.c '#include "engine/rq/match.h"'
check "any unit may have a hand in what the kernel does" tree_with src/base/log_test.c '#include "forbid.h"'
refuses src/base/log.c '#include "forbid.h"'
refuses src/base/log_test.c '#include "transport/suite.h"'
check "calls of the rooms go down, and upcalls are named" ci/rooms "$HD_BUILD"

check "members have one room each that writes them, but for those that are counted" ci/writers

# Two rooms that write a member, each as told.
writers_of() {
	local root=$tap_scratch/writers
	rm -rf "$root"
	mkdir -p "$root"/src/engine/{link,qp}
	printf 'struct hd_peer {\n\tint units;\n\tstruct {\n\t\tint sum;\n\t} in;\n};\nstatic inline void hd_peer_take(struct hd_peer *peer)\n{\n\tpeer->units--;\n}\n' \
		>"$root/src/engine/link/peer.h"
	printf 'void hd_a(struct hd_peer *peer)\n{\n\t%s;\n}\n' "$1" >"$root/src/engine/link/peer.c"
	printf 'void hd_b(struct hd_peer *of)\n{\n\t%s;\n}\n' "$2" >"$root/src/engine/qp/qp.c"
	ci/writers --root "$root" --most 0
}
check "a room may write what is its own, and by a function what is another's" writers_of 'peer->in.sum = 1' 'hd_peer_take(of)'
check_output "a member that two write is named" '^writers: hd_peer.units: link qp' writers_of '' 'of->units += 2'
check_output "one of a structure inside, too" '^writers: hd_peer.in.sum: link qp' writers_of 'peer->in.sum = 1' 'of->in.sum++'
check_status "with status 1" 1 writers_of '' 'of->units += 2'

# Two rooms whose objects call each other as told: what each file defines, and what it calls.
rooms_of() {
	local root=$tap_scratch/rooms
	rm -rf "$root"
	mkdir -p "$root"/src/engine/{core,event} "$root"/build/src "$root"/docs
	printf 'void hd_low(void);\nvoid hd_high(void);\nvoid hd_low(void) { %s }\n' "$1" >"$root/src/engine/core/low.c"
	printf 'void hd_low(void);\nvoid hd_high(void);\nvoid hd_high(void) { %s }\n' "$2" >"$root/src/engine/event/high.c"
	printf 'struct hd_told {\n\tvoid (*fn)(void);\n};\n' >"$root/src/engine/core/low.h"
	printf '## Upcalls\n\140%s\140\n## Nouns\n' "$3" >"$root/docs/architecture.md"
	for file in core/low event/high; do
		cc -c -o "$root/build/src/engine_${file/\//_}.c.o" "$root/src/engine/$file.c"
	done
	ci/rooms --root "$root" "$root/build"
}

check "a call that goes down passes" rooms_of '' 'hd_low();' 'struct hd_told'
check_output "a call that goes up is refused" '^rooms: core calls hd_high of event' rooms_of 'hd_high();' '' hd_told.fn
check_status "with status 1" 1 rooms_of 'hd_high();' '' hd_told.fn
check_output "the system's time is asked for in base alone" '^rooms: engine/event/high.c names clock_gettime' \
	rooms_of '' 'extern void clock_gettime(void); clock_gettime();' hd_told.fn
check "and core may sleep" rooms_of 'extern void poll(void); poll();' '' hd_told.fn
twin=$'}\n#define TWIN(name) static __attribute__((used)) void name(void) {}\nTWIN(twin)\n'"static inline void rest(void) {"
check_output "two functions of one name are refused, also where a macro defines them" '^rooms: twin is a function of engine/core/low.c and engine/event/high.c' \
	rooms_of "$twin" "$twin" hd_told.fn
# A folder with an order, of two files: what its header lists, and what the lower one calls.
files_of() {
	local root=$tap_scratch/rooms
	rooms_of '' '' hd_told.fn >/dev/null
	mkdir -p "$root/src/transport/shm"
	{ printf '/*\n * Its files, lowest first.\n *\n'; printf ' *\t%s.c  what it is\n' $1; printf ' */\n'; } >"$root/src/transport/shm/shm.h"
	printf 'void hd_link(void);\nvoid hd_wake(void);\nvoid hd_wake(void) { %s }\n' "$2" >"$root/src/transport/shm/wake.c"
	printf 'void hd_link(void);\nvoid hd_wake(void);\nvoid hd_link(void) { hd_wake(); }\n' >"$root/src/transport/shm/link.c"
	for file in wake link; do
		cc -c -o "$root/build/src/transport_shm_$file.c.o" "$root/src/transport/shm/$file.c"
	done
	ci/rooms --root "$root" "$root/build"
}

check "a file may call those that its folder's header lists below it" files_of 'wake link' ''
check_output "a call to one above is refused" '^rooms: transport/shm: wake.c calls hd_link of link.c' files_of 'wake link' 'hd_link();'
check_status "with status 1, too" 1 files_of 'wake link' 'hd_link();'
check_output "a file that is not listed is refused" '^rooms: transport/shm/shm.h does not state the place of link.c' files_of wake ''
check_output "and one that is not there" '^rooms: transport/shm/shm.h does not state the place of gone.c' files_of 'gone wake link' ''
check_output "and one that is listed twice" '^rooms: transport/shm/shm.h does not state the place of wake.c' files_of 'wake link wake' ''
check_output "an upcall that is not named is refused" '^rooms: hd_told.fn is an upcall' rooms_of '' '' nothing
finish
