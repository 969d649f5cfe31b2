#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# SPDX-FileCopyrightText: 2026 The Heddle authors
#
# bench/run refuses what it cannot measure, and makes no folder for it; and what it counts with. Nothing is measured here.
set -euo pipefail
cd "$(dirname "$0")/../.."
# shellcheck source=tests/tap.sh
. tests/tap.sh

nowhere=$tap_scratch/nowhere
check_output "a folder without a build is refused" "nowhere is no build folder of Heddle's: run 'make' first" bench/run --build "$nowhere"
check "and not made" test ! -e "$nowhere"
check_output "another build too" "nowhere is no build folder of Heddle's" bench/run --build "$HD_BUILD" --vs "$nowhere"
check_status "CPUs that there are not" 2 bench/run --build "$HD_BUILD" --cpus 0,999999
check_output "what was meant is said" 'takes two of the CPUs that this process may use' bench/run --build "$HD_BUILD" --cpus all
check_output "a part that there is not" 'no such part: nonsense' bench/run --build "$HD_BUILD" --only nonsense
check "the interval of a median is that of the sign test" python3 -B -c '
import sys; sys.path.insert(0, "bench")
from results import median_interval as of
assert of(range(1, 6)) is None and of([3, 1, 6, 2, 5, 4]) == (1, 6)
assert of(range(1, 10)) == (2, 8) and of(range(1, 13)) == (3, 10)'
finish
