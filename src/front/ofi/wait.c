/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
#include "base/clock.h"
#include "front/ofi/ofi.h"

#include <limits.h>

bool hd_fi_wait_obj(enum fi_wait_obj wanted, enum fi_wait_obj *out)
{
	switch (wanted) {
	case FI_WAIT_NONE:
	case FI_WAIT_FD:
	case FI_WAIT_YIELD: /* sleeping is better than yielding */
		*out = wanted;
		return true;
	case FI_WAIT_UNSPEC:
		*out = FI_WAIT_FD;
		return true;
	default:
		return false;
	}
}

uint64_t hd_fi_deadline(int timeout_ms)
{
	return timeout_ms < 0 ? UINT64_MAX : hd_now_ns() + (uint64_t)timeout_ms * HD_NS_PER_MS;
}

int hd_fi_left_ms(uint64_t deadline)
{
	uint64_t now = hd_now_ns(), ms;

	if (deadline == UINT64_MAX)
		return -1;
	ms = now < deadline ? (deadline - now + HD_NS_PER_MS - 1) / HD_NS_PER_MS : 0;
	return ms > INT_MAX ? INT_MAX : (int)ms;
}
