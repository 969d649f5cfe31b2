/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Filling the sink that a packet in pieces goes through; see transport.h.
 * dispatch.c says where it leads.
 */
#include "base/copy.h"
#include "engine/engine.h"
#include "engine/transport.h"

#include <string.h>

void hd_sink_advance(struct hd_sink *sink, size_t n)
{
	while (n && sink->room) {
		struct iovec *v = &sink->iov[sink->cur];
		size_t part = v->iov_len < n ? v->iov_len : n;

		v->iov_base = (char *)v->iov_base + part;
		v->iov_len -= part;
		sink->room -= part;
		n -= part;
		if (!v->iov_len)
			sink->cur++;
	}
	sink->discard -= n;
}

/* No byte of it is put anywhere any more. */
static void sink_fail(struct hd_sink *sink, enum hd_status status)
{
	sink->discard += sink->room;
	sink->room = 0;
	sink->count = sink->cur = 0;
	if (!sink->status)
		sink->status = status;
}

void hd_sink_gone(struct hd_sink *sink)
{
	sink_fail(sink, HD_S_PROTECTION);
}

void hd_sink_void(struct hd_sink *sink)
{
	sink_fail(sink, HD_S_CANCELLED);
}

void hd_sink_copy(struct hd_sink *sink, const void *from, size_t n)
{
	const char *p = from;
	size_t left = n < sink->room ? n : sink->room;
	bool gone = false;

	for (int i = sink->cur; left && !gone; i++) {
		size_t part = sink->iov[i].iov_len < left ? sink->iov[i].iov_len : left;

		gone = hd_copy(sink->iov[i].iov_base, p, part) != 0;
		p += part;
		left -= part;
	}
	if (gone)
		hd_sink_gone(sink);
	hd_sink_advance(sink, n);
}
