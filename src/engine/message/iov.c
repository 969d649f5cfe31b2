/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* Segments, and the sink that a packet in pieces goes through: where its next bytes go. */
#include "engine/message/message.h"

#include <string.h>

/* ---- segments ------------------------------------------------------------------------------------------------------------------ */

/* hd_iov_fill: scatter len bytes into segments; returns the bytes that found room. */
size_t hd_iov_fill(const struct iovec *iov, int count, const void *from, size_t len)
{
	size_t done = 0;

	for (int i = 0; i < count && done < len; i++) {
		size_t n = iov[i].iov_len < len - done ? iov[i].iov_len : len - done;

		if (n) /* an empty segment may have no address */
			memcpy(iov[i].iov_base, (const char *)from + done, n);
		done += n;
	}
	return done;
}

/* hd_iov_fill_at: the same from an offset within the segments on. */
size_t hd_iov_fill_at(const struct iovec *iov, int count, uint64_t offset, const void *from, size_t len)
{
	struct iovec part;

	while (count && offset >= iov->iov_len) {
		offset -= iov->iov_len;
		iov++;
		count--;
	}
	if (!count || !len)
		return 0;
	part = (struct iovec){ (char *)iov->iov_base + offset, iov->iov_len - offset };
	if (part.iov_len >= len)
		return hd_iov_fill(&part, 1, from, len);
	hd_iov_fill(&part, 1, from, part.iov_len);
	return part.iov_len +
	       hd_iov_fill(iov + 1, count - 1, (const char *)from + part.iov_len, len - part.iov_len);
}

/* hd_iov_drain: gather at most len bytes from segments; returns their number. */
size_t hd_iov_drain(const struct iovec *iov, int count, void *to, size_t len)
{
	size_t done = 0;

	for (int i = 0; i < count && done < len; i++) {
		size_t n = iov[i].iov_len < len - done ? iov[i].iov_len : len - done;

		if (n)
			memcpy((char *)to + done, iov[i].iov_base, n);
		done += n;
	}
	return done;
}

/* hd_iov_slice: the segments of [offset, offset + len), the first HD_IOV_MAX of them; returns how many there are. */
int hd_iov_slice(const struct iovec *iov, int count, uint64_t offset, uint64_t len, struct iovec *out)
{
	int n = 0;

	for (int i = 0; i < count && len && n < HD_IOV_MAX; i++) {
		uint64_t part;

		if (offset >= iov[i].iov_len) {
			offset -= iov[i].iov_len;
			continue;
		}
		part = iov[i].iov_len - offset < len ? iov[i].iov_len - offset : len;
		out[n++] = (struct iovec){ (char *)iov[i].iov_base + offset, part };
		len -= part;
		offset = 0;
	}
	return n;
}

/* ---- the sink ------------------------------------------------------------------------------------------------------------------- */

/* hd_sink_iovs: let the next `len` bytes go to the segments from offset on, and what they have no room for be thrown away. */
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
