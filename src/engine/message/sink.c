/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* The sink that a packet in pieces goes through: where its next bytes go. See transport.h. */
#include "engine/message/message.h"

#include <string.h>

void hd_sink_iovs(struct hd_sink *sink, const struct iovec *iov, int count, uint64_t offset, uint64_t len)
{
	sink->count = hd_iov_slice(iov, count, offset, len, sink->iov);
	sink->cur = 0;
	sink->room = hd_iov_len(sink->iov, sink->count);
	sink->discard = len - sink->room;
}

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

		memcpy(sink->iov[i].iov_base, p, part);
		p += part;
		left -= part;
	}
	hd_sink_advance(sink, n);
}

int hd_sink_iov(const struct hd_sink *sink, struct iovec *iov, int max)
{
	const struct hd_node *node = hd_container(sink, struct hd_link, sink)->node;
	int n = 0;

	for (int i = sink->cur; i < sink->count && n < max; i++)
		iov[n++] = sink->iov[i];
	if (!sink->room && sink->discard && n < max) {
		size_t part = sink->discard < HD_WASTE ? sink->discard : HD_WASTE;

		iov[n++] = (struct iovec){ node->waste, part };
	}
	return n;
}
