/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* See iov.h. */
#include "base/iov.h"
#include "base/copy.h"
#include "base/macros.h"

#include <stdatomic.h>
#include <string.h>

static inline int iov_copy(void *to, const void *from, size_t n)
{
	return n <= HD_COPY_SMALL ? hd_copy_small_in(to, from, n) ? 0 : -EFAULT : hd_copy(to, from, n);
}

static inline int iov_copy_out(void *to, const void *from, size_t n)
{
	return n <= HD_COPY_SMALL ? hd_copy_small_out(to, from, n) ? 0 : -EFAULT : hd_copy(to, from, n);
}

static __attribute__((noinline)) int iov_fill_all(const struct iovec *iov, int count, const void *from,
						  size_t len)
{
	size_t done = 0;
	int err = 0;

	for (int i = 0; i < count && done < len && !err; i++) {
		size_t n = iov[i].iov_len < len - done ? iov[i].iov_len : len - done;

		if (n) /* an empty segment may have no address */
			err = iov_copy(iov[i].iov_base, (const char *)from + done, n);
		done += n;
	}
	return err;
}

int hd_iov_fill(const struct iovec *iov, int count, const void *from, size_t len)
{
	if (hd_likely(count == 1 && len <= iov->iov_len))
		return len ? iov_copy(iov->iov_base, from, len) : 0;
	return iov_fill_all(iov, count, from, len);
}

int hd_iov_fill_at(const struct iovec *iov, int count, uint64_t offset, const void *from, size_t len)
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
		return iov_copy(part.iov_base, from, len);
	if (iov_copy(part.iov_base, from, part.iov_len))
		return -EFAULT;
	return hd_iov_fill(iov + 1, count - 1, (const char *)from + part.iov_len, len - part.iov_len);
}

static __attribute__((noinline)) int iov_drain_all(const struct iovec *iov, int count, void *to, size_t len)
{
	size_t done = 0;
	int err = 0;

	for (int i = 0; i < count && done < len && !err; i++) {
		size_t n = iov[i].iov_len < len - done ? iov[i].iov_len : len - done;

		if (n)
			err = iov_copy_out((char *)to + done, iov[i].iov_base, n);
		done += n;
	}
	return err;
}

int hd_iov_drain(const struct iovec *iov, int count, void *to, size_t len)
{
	if (hd_likely(count == 1 && len <= iov->iov_len))
		return len ? iov_copy_out(to, iov->iov_base, len) : 0;
	return iov_drain_all(iov, count, to, len);
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

/* One byte, or eight. */
static bool store_after(void *to, const void *from, size_t n)
{
	uint64_t word;

	if (!HD_STORES_IN_ORDER)
		atomic_thread_fence(memory_order_release);
	if (n == 1)
		return hd_guard_store8(to, *(const uint8_t *)from);
	memcpy(&word, from, sizeof(word));
	return hd_guard_store64(to, word);
}

static int copy_ascending(char *to, const char *from, size_t len)
{
	hd_guard_sees(from, to, len);
	while (len) {
		size_t n = (uintptr_t)to % sizeof(uint64_t) || len < sizeof(uint64_t) ? 1 : sizeof(uint64_t);

		if (!store_after(to, from, n))
			return -EFAULT;
		to += n;
		from += n;
		len -= n;
	}
	return 0;
}

int hd_iov_fill_ascending(const struct iovec *iov, int count, uint64_t offset, const void *from, size_t len)
{
	size_t done = 0;
	int err = 0;

	for (int i = 0; i < count && done < len && !err; i++) {
		size_t room = iov[i].iov_len, n;

		if (offset >= room) {
			offset -= room;
			continue;
		}
		n = room - offset < len - done ? room - offset : len - done;
		err = copy_ascending((char *)iov[i].iov_base + offset, (const char *)from + done, n);
		done += n;
		offset = 0;
	}
	return err;
}
