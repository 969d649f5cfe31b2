/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* See iov.h. */
#include "base/iov.h"

#include <string.h>

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

/* The compiler keeps the order of these stores, and so does the processor: x86 anyway, others by the release. */
static void copy_ascending(char *to, const char *from, size_t len)
{
	for (; len && (uintptr_t)to % sizeof(uint64_t); len--)
		__atomic_store_n(to++, *from++, __ATOMIC_RELEASE);
	for (; len >= sizeof(uint64_t); len -= sizeof(uint64_t)) {
		uint64_t word;

		memcpy(&word, from, sizeof(word));
		__atomic_store_n((uint64_t *)(void *)to, word, __ATOMIC_RELEASE);
		to += sizeof(word);
		from += sizeof(word);
	}
	for (; len; len--)
		__atomic_store_n(to++, *from++, __ATOMIC_RELEASE);
}

size_t hd_iov_fill_ascending(const struct iovec *iov, int count, uint64_t offset, const void *from,
			     size_t len)
{
	size_t done = 0;

	for (int i = 0; i < count && done < len; i++) {
		size_t room = iov[i].iov_len, n;

		if (offset >= room) {
			offset -= room;
			continue;
		}
		n = room - offset < len - done ? room - offset : len - done;
		copy_ascending((char *)iov[i].iov_base + offset, (const char *)from + done, n);
		done += n;
		offset = 0;
	}
	return done;
}
