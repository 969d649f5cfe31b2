/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Long messages: cooperative copy. The sender offers its memory by address; the receiver fetches
 * it, and where the message has several chunks asks the sender for help. From then on both take
 * chunks from one counter in shared memory and copy them, the receiver with process_vm_readv(2),
 * the sender with process_vm_writev(2), a chunk in each turn of progress. Nobody waits for the
 * other, except for a chunk that it has taken already.
 *
 *	sender                              receiver
 *	------                              --------
 *	offer(): number, segments  ------>  get(): open the claim of a copy
 *	                           <------  HELP: number, copy, generation
 *	take chunk, write it                take chunk, read it
 *	…                                   …
 *	helped = n: store, release ------>  own + helped == all: done
 *
 * Each side may find at any time that the kernel does not let it copy (another user name space, a
 * seccomp filter, memory of a device). The helper then gives its chunk back in `returned`, and the
 * receiver copies that too. The receiver begins anew with a new generation, in which the helper
 * does everything. When neither can, the engine sends the message in frames.
 *
 * Nobody reads or writes its own memory at an address that came from the other side: an offer is
 * looked up by number in a private table, a buffer is the one that was given to get().
 */
#include "transport/shm/copy.h"

int hd_shm_slice(const struct iovec *iov, uint64_t at, uint64_t n, struct iovec *out)
{
	int count = 0;

	for (; n; iov++) {
		uint64_t here;

		if (at >= iov->iov_len) {
			at -= iov->iov_len;
			continue;
		}
		here = iov->iov_len - at < n ? iov->iov_len - at : n;
		out[count++] = (struct iovec){ (uint8_t *)iov->iov_base + at, here };
		n -= here;
		at = 0;
	}
	return count;
}

static int copy_bytes(struct hd_shm_link *l, const struct iovec *near, const struct iovec *far, uint64_t at,
		      uint64_t n, bool out)
{
	struct iovec here[HD_IOV_MAX], there[HD_SHM_SEGS];
	int heres = hd_shm_slice(near, at, n, here), theres = hd_shm_slice(far, at, n, there);
	ssize_t done = hd_shm_copy_call(&l->peer, here, heres, there, theres, out);

	if (done < 0)
		return (int)-done;
	hd_shm_copied(l, (uint64_t)done, out);
	return (uint64_t)done == n ? 0 : EFAULT;
}

int hd_shm_copy_part(struct hd_shm_link *l, const struct iovec *near, const struct iovec *far, uint64_t at,
		     uint64_t n, bool out)
{
	int error = copy_bytes(l, near, far, at, n, out);

	if (error == ESRCH)
		hd_shm_link_end(l, -ECONNRESET, "the process has ended");
	else if (error && error != EFAULT && hd_shm_we_can(l))
		hd_shm_refused(l, error);
	return error;
}

int hd_shm_copy_chunk(struct hd_shm_link *l, const struct iovec *near, const struct iovec *far, uint64_t len,
		      uint32_t k, bool out)
{
	uint64_t chunk = hd_shm_chunk(len), at = k * chunk;

	return hd_shm_copy_part(l, near, far, at, len - at < chunk ? len - at : chunk, out);
}

bool hd_shm_take_chunk(_Atomic uint64_t *claim, uint32_t gen, uint64_t chunks)
{
	uint64_t now = atomic_load_explicit(claim, memory_order_relaxed);

	do
		if (now >> 32 != gen || (uint32_t)now >= chunks)
			return false;
	while (!atomic_compare_exchange_weak_explicit(claim, &now, now + 1, memory_order_relaxed,
						      memory_order_relaxed));
	return true;
}
