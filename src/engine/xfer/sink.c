/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* Filling the sink that a packet in pieces goes through; see transport.h. dispatch.c says where it leads. */
#include "base/copy.h"
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

void hd_sink_copy(struct hd_sink *sink, const void *from, size_t n)
{
	const char *p = from;
	size_t left = n < sink->room ? n : sink->room;

	for (int i = sink->cur; left; i++) {
		size_t part = sink->iov[i].iov_len < left ? sink->iov[i].iov_len : left;

		hd_copy(sink->iov[i].iov_base, p, part);
		p += part;
		left -= part;
	}
	hd_sink_advance(sink, n);
}
