/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * What the two halves of the cooperative copy share: offer.c is the sender's, get.c and what is
 * below it the receiver's. See copy.c.
 */
#ifndef HD_SHM_COPY_H
#define HD_SHM_COPY_H

#include "base/clock.h"
#include "base/iov.h"
#include "transport/shm/shm.h"

#include <errno.h>

/* that an offer carries; of a message with more the sender writes everything */
#define HD_SHM_OFFER_SEGS 5u

/* What travels in the RTS. */
struct hd_shm_blob {
	uint32_t number;
	uint32_t count; /* segments that follow; 0: too many to tell */
	struct hd_shm_seg seg[HD_SHM_OFFER_SEGS];
};
static_assert(sizeof(struct hd_shm_blob) <= HD_OFFER_MAX, "an offer fits in the RTS");
/*
 * Of one segment the length is not said, for it is the message's: so the RTS of most
 * messages fits in its slot.
 */
#define HD_SHM_BLOB_ONE (offsetof(struct hd_shm_blob, seg) + sizeof(uint64_t))
#define HD_SHM_BLOB_LEN(count) \
	((count) == 1 ? HD_SHM_BLOB_ONE \
		      : offsetof(struct hd_shm_blob, seg) + (count) * sizeof(struct hd_shm_seg))
static_assert(offsetof(struct hd_rts, offer) + HD_SHM_BLOB_ONE <= HD_SHM_INLINE, "one line for an RTS");

/* A word of struct hd_shm_copy. */
static inline uint64_t hd_shm_tagged(uint32_t gen, uint32_t value)
{
	return (uint64_t)gen << 32 | value;
}

/*
 * hd_shm_slice: the part of a message in these segments that begins at `at` and is n bytes long; it
 * is there. Returns the number of its segments.
 */
int hd_shm_slice(const struct iovec *iov, uint64_t at, uint64_t n, struct iovec *out);

/*
 * hd_shm_still_there: is the other process alive, and the program that it was? Its
 * page has a witness to that; where that is silent, for whatever reason, the kernel is
 * asked (hd_shm_look_there).
 */
bool hd_shm_look_there(const struct hd_shm_peer *peer);
static inline bool hd_shm_still_there(const struct hd_shm_peer *peer)
{
	return hd_likely(hd_witness_testifies(&peer->page->witness)) || hd_shm_look_there(peer);
}

/*
 * hd_shm_copy_call: copy from `there`, addresses in the other process, to `here`, or the other way
 * (out). Returns the bytes copied, perhaps not all, or a negative errno: -ESRCH: the process has
 * ended. Part of the way of every one-sided operation: after a system call a processor has
 * forgotten where it is to return to, so each call more than it must costs some nanoseconds.
 */
static inline ssize_t hd_shm_copy_call(const struct hd_shm_peer *peer, const struct iovec *here, int heres,
				       const struct iovec *there, int theres, bool out)
{
	ssize_t done;

	if (hd_unlikely(!hd_shm_still_there(peer)))
		return -ESRCH;
	done = out ? process_vm_writev(peer->pid, here, (unsigned long)heres, there, (unsigned long)theres, 0)
		   : process_vm_readv(peer->pid, here, (unsigned long)heres, there, (unsigned long)theres, 0);
	return hd_unlikely(done < 0) ? -errno : done;
}

/* hd_shm_copied: so many bytes have been copied over this link: its port counts them. */
static inline void hd_shm_copied(struct hd_shm_link *l, uint64_t n, bool out)
{
	(out ? hd_port_wrote : hd_port_read)(l->base.port, n);
}

/*
 * hd_shm_poke_is_open (poke.c): is the other process's memory open as a file? Tried once.
 * hd_shm_poke: write len bytes to an address in the other process (out), or read them from there.
 * hd_shm_is_brief: it is made for that. False: not this way; perhaps some of it has been copied.
 */
bool hd_shm_poke_is_open(struct hd_shm_peer *peer);
bool hd_shm_poke(struct hd_shm_peer *peer, void *here, uint64_t there, size_t len, bool out);

#define HD_SHM_WORD 8u
#define HD_SHM_PAGE 4096u /* or a part of one, where they are longer */
static inline bool hd_shm_is_brief(uint64_t there, uint64_t len, bool out)
{
	return out ? len <= HD_SHM_WORD : len <= HD_SHM_PAGE && there % HD_SHM_PAGE + len <= HD_SHM_PAGE;
}

/*
 * hd_shm_copy_part: copy n bytes of a message from byte `at` on: from `far`, which are addresses in
 * the other process, to `near`, or the other way (out). 0, or a positive errno; EFAULT where only
 * this memory is to blame. After any other we do not copy on this link again, and the other side is
 * told.
 * hd_shm_copy_chunk: the same with chunk k of a message of len bytes.
 */
int hd_shm_copy_part(struct hd_shm_link *l, const struct iovec *near, const struct iovec *far, uint64_t at,
		     uint64_t n, bool out);
int hd_shm_copy_chunk(struct hd_shm_link *l, const struct iovec *near, const struct iovec *far, uint64_t len,
		      uint32_t k, bool out);

/*
 * hd_shm_take_chunk: take one of the chunks that nobody has taken: the receiver's are the first
 * ones, the helper's the last ones, each in the order in which it takes them. false: none is left,
 * or the copy is about something else now.
 */
bool hd_shm_take_chunk(_Atomic uint64_t *claim, uint32_t gen, uint64_t chunks);

/* One portion of work of either half (offer.c, get.c), returning the number of events. */
int hd_shm_help_poll(struct hd_shm_link *l);
int hd_shm_gets_poll(struct hd_shm_link *l);

/* hd_shm_help_end: we do not help with this one any more. */
static inline void hd_shm_help_end(struct hd_shm_copying *c, struct hd_shm_help *h)
{
	TAILQ_REMOVE(&c->helps, h, entry);
	h->offer = NULL;
}

/* hd_shm_turns: the other node's count of turns of progress. */
static inline uint32_t hd_shm_turns(const struct hd_shm_peer *peer)
{
	return atomic_load_explicit(&hd_page_tables(peer->page)->turns, memory_order_relaxed);
}

/* hd_shm_gets_arm: is there a chunk to copy, or the end of a message to be seen? */
bool hd_shm_gets_arm(struct hd_shm_link *l);

#endif
