/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Segments of messages: lists of pieces of memory. Any thread; an empty
 * segment may have no address.
 */
#ifndef HD_BASE_IOV_H
#define HD_BASE_IOV_H

#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#define HD_IOV_MAX 16 /* segments of one message, at most */

/* hd_iov_len: the bytes of all of them. */
static inline uint64_t hd_iov_len(const struct iovec *iov, int count)
{
	uint64_t n = 0;

	for (int i = 0; i < count; i++)
		n += iov[i].iov_len;
	return n;
}

/*
 * hd_iov_fill: scatter len bytes into segments, as far as there is room. hd_iov_fill_at: the same
 * from an offset within the segments on.
 * hd_iov_fill_ascending: the same, but every byte is in place before one at a higher place of the
 * message is. hd_iov_drain: gather at most len bytes from segments. All answer 0, or -EFAULT where
 * memory of one is gone (base/guard.h): then some may have been copied.
 */
int hd_iov_fill(const struct iovec *iov, int count, const void *from, size_t len);
int hd_iov_fill_at(const struct iovec *iov, int count, uint64_t offset, const void *from, size_t len);
int hd_iov_fill_ascending(const struct iovec *iov, int count, uint64_t offset, const void *from, size_t len);
int hd_iov_drain(const struct iovec *iov, int count, void *to, size_t len);

/*
 * hd_iov_slice: the segments of [offset, offset + len), the first HD_IOV_MAX of them, in out;
 * returns how many there are.
 */
int hd_iov_slice(const struct iovec *iov, int count, uint64_t offset, uint64_t len, struct iovec *out);

#endif
