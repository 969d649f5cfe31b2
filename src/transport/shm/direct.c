/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * One-sided operations by the initiator itself: it copies from or to a region of the other process,
 * whose program need not do anything. What must never happen is that it copies after the region was
 * closed. Both sides store one word and then look at the other's, as a sender and a sleeper do
 * (wake.c), and again the one who has time runs the barrier for both:
 *
 *	initiator                               owner of the region
 *	---------                               -------------------
 *	direct_word = region: store                hide the region's row: store
 *	(nothing, or a fence)                   membarrier
 *	row still valid? load                   anybody reaching for it? load, acquire; wait until
 *	                                        nobody is
 *	  process_vm_readv or _writev
 *	direct_word = 0: store, release            the memory is the program's alone
 *
 * An announcement stands for one system call and never over a return from here, so whoever waits
 * for it waits for a running process, or for one that is stopped or dead.
 */
#include "transport/shm/copy.h"

#include "base/clock.h"
#include "base/log.h"

#include <stdlib.h>
#include <unistd.h>

#define TAIL 8 /* bytes of a write that are written last */
/* pages of either side that are looked at, the first ones: those were not copied */
#define BLAME_PAGES 64
#define LIVELY_US 30		     /* who has made progress so recently is taken for polling */
#define HELD_NS (500 * HD_NS_PER_MS) /* after which the log says who keeps a region */
/* two looks at a count of turns that tell anything are so close */
#define LOOK_US 60

/* ---- copying ---- */

/* Can one byte of each page of [at, at + len) of that process be read? Changes nothing there. */
static bool direct_readable(pid_t pid, uint64_t at, uint64_t len)
{
	static uint8_t bytes[BLAME_PAGES]; /* written by anybody, read by nobody */
	struct iovec page[BLAME_PAGES], here = { bytes, 0 };
	uint64_t size = (uint64_t)sysconf(_SC_PAGESIZE), end = at + len;

	while (at < end && here.iov_len < BLAME_PAGES) {
		page[here.iov_len++] = (struct iovec){ (void *)(uintptr_t)at, 1 };
		at = (at | (size - 1)) + 1;
	}
	return process_vm_readv(pid, &here, 1, page, here.iov_len, 0) == (ssize_t)here.iov_len;
}

/*
 * EFAULT: whose memory is not there? The side that is only read can be read once more without harm.
 */
static int blame(pid_t pid, const struct hd_direct *r)
{
	if (!r->out)
		return direct_readable(pid, r->far, r->len) ? -EFAULT : -EREMOTEIO;
	for (int i = 0; i < r->count; i++)
		if (!direct_readable(getpid(), (uintptr_t)r->near[i].iov_base, r->near[i].iov_len))
			return -EFAULT;
	return -EREMOTEIO;
}

static ssize_t copy_plain(const struct hd_shm_peer *peer, const struct hd_direct *r, uint64_t at,
			  uint64_t len)
{
	struct iovec near[HD_IOV_MAX], far = { (void *)(uintptr_t)(r->far + at), len };
	int count = hd_shm_slice(r->near, at, len, near);

	return hd_shm_copy_call(peer, near, count, &far, 1, r->out);
}

/*
 * The last bytes last. The kernel copies our segments one after the other, so one call does where
 * stores are seen in order. (It would keep the order of their segments too, but pins memory for
 * each of them, which costs a third of a short write.)
 */
static __attribute__((noinline)) ssize_t copy_tail_last(const struct hd_shm_peer *peer,
							const struct hd_direct *r)
{
	uint64_t head = r->len - TAIL;
	ssize_t first;

	if (HD_STORES_IN_ORDER) {
		struct iovec near[HD_IOV_MAX + 1], far = { (void *)(uintptr_t)r->far, r->len };
		int count = hd_shm_slice(r->near, 0, head, near);

		count += hd_shm_slice(r->near, head, TAIL, near + count);
		return hd_shm_copy_call(peer, near, count, &far, 1, true);
	}
	first = copy_plain(peer, r, 0, head);
	if (first < (ssize_t)head)
		return first;
	atomic_thread_fence(memory_order_release);
	return copy_plain(peer, r, head, TAIL) == TAIL ? (ssize_t)r->len : first;
}

static inline ssize_t direct_copy_out(const struct hd_shm_peer *peer, const struct hd_direct *r)
{
	const struct iovec far = { (void *)(uintptr_t)r->far, r->len };
	uint64_t head = r->len - TAIL;
	struct iovec near[2];

	if (!r->last || r->len <= TAIL)
		return hd_shm_copy_call(peer, r->near, r->count, &far, 1, true);
	if (!HD_STORES_IN_ORDER || hd_unlikely(r->count != 1))
		return copy_tail_last(peer, r);
	near[0] = (struct iovec){ r->near->iov_base, head };
	near[1] = (struct iovec){ (uint8_t *)r->near->iov_base + head, TAIL };
	return hd_shm_copy_call(peer, near, 2, &far, 1, true);
}

static inline ssize_t copy_in(const struct hd_shm_peer *peer, const struct hd_direct *r)
{
	const struct iovec far = { (void *)(uintptr_t)r->far, r->len };

	return hd_shm_copy_call(peer, r->near, r->count, &far, 1, false);
}

/* Nothing has been copied: what hd_link_ops.direct says of that. */
static __attribute__((noinline)) int64_t why_not(struct hd_shm_link *l, const struct hd_direct *r, int err)
{
	switch (err) {
	case 0:
	case EFAULT:
		return blame(l->peer.pid, r);
	case ENOMEM:
		return -EAGAIN;
	case ESRCH:
		hd_shm_link_end(l, -ECONNRESET, "the process has ended");
		return -ENOTCONN;
	default:
		hd_shm_refused(l, err);
		return -EOPNOTSUPP;
	}
}

/* A brief one by the file of its memory, where that is open to us. */
static inline bool direct_poke(struct hd_shm_peer *peer, const struct hd_direct *r, bool out)
{
	return hd_shm_is_brief(r->far, r->len, out) && r->count == 1 && !(out && peer->poke_forces) &&
	       hd_shm_poke(peer, r->near->iov_base, r->far, r->len, out);
}

static inline int64_t direct_copy(struct hd_shm_link *l, const struct hd_direct *r)
{
	ssize_t n;

	if (r->out) {
		n = direct_poke(&l->peer, r, true) ? (ssize_t)r->len : direct_copy_out(&l->peer, r);
		if (hd_unlikely(n <= 0))
			return why_not(l, r, (int)-n);
		hd_port_wrote(l->base.port, (size_t)n);
	} else {
		n = direct_poke(&l->peer, r, false) ? (ssize_t)r->len : copy_in(&l->peer, r);
		if (hd_unlikely(n <= 0))
			return why_not(l, r, (int)-n);
		hd_port_read(l->base.port, (size_t)n);
	}
	return n;
}

static void direct_announce(struct hd_shm_side *own, uint64_t what, bool fenced)
{
	atomic_store_explicit(&own->direct_word, what, memory_order_relaxed);
	if (fenced)
		atomic_thread_fence(memory_order_seq_cst);
	else
		atomic_signal_fence(memory_order_seq_cst);
}

int64_t hd_shm_direct(struct hd_link *link, const struct hd_direct *r)
{
	struct hd_shm_link *l = hd_shm_link_of(link);
	int64_t n = -ESTALE;

	if (hd_unlikely(link->down || !l->reaches))
		return link->down || l->state != HD_SHM_LIVE ? -ENOTCONN : -EOPNOTSUPP;
	direct_announce(l->own, hd_shm_direct_word(r->mr, r->mr_state), l->fenced);
	if (hd_unlikely(atomic_load_explicit(&l->other->shut, memory_order_acquire)))
		n = -ENOTCONN;
	else if (hd_likely(hd_direct_stands(l->peer.page, r)))
		n = direct_copy(l, r);
	/* release: what was copied is there, and nothing more comes */
	atomic_store_explicit(&l->own->direct_word, 0, memory_order_release);
	return n;
}

/* ---- waiting for those who copy ---- */

static uint64_t reached_by(const struct hd_shm_side *other)
{
	return atomic_load_explicit(&other->direct_word, memory_order_acquire);
}

/*
 * Whatever announcement was begun before the last store of ours is visible, and whoever
 * begins one sees the store.
 */
static bool barrier(const struct hd_shm_port *port)
{
	atomic_thread_fence(memory_order_seq_cst); /* for those who fence too */
	return !port->barrier || hd_shm_barrier();
}

static void late_drop(struct hd_shm_late *late)
{
	LIST_REMOVE(late, entry);
	hd_shm_mem_unmap(late->mem);
	if (late->who.pidfd >= 0)
		close(late->who.pidfd);
	free(late);
}

void hd_shm_late_free(struct hd_shm_port *port)
{
	struct hd_shm_late *late;

	while ((late = LIST_FIRST(&port->late)))
		late_drop(late);
}

/*
 * Who keeps a region for long is named: its memory is the program's again when he
 * has gone on, or is dead.
 */
static void settle_complain(struct hd_shm_port *port, uint32_t row, pid_t pid)
{
	uint64_t now = hd_now_ns();

	if (port->held_row != row + 1) {
		port->held_row = row + 1;
		port->held_since = now;
	} else if (now - port->held_since > HELD_NS) {
		HD_LOG_EVERY_MS(
			1000, HD_LOG_WARN,
			"process %d has been stopped in the middle of a copy from or to a region that is to be closed: it stays until that goes on or is dead: kill -CONT it, or end it",
			(int)pid);
	}
}

static bool late_reaches(struct hd_shm_port *port, uint32_t row)
{
	struct hd_shm_late *late, *next;
	bool any = false;

	for (late = LIST_FIRST(&port->late); late; late = next) {
		uint64_t what = reached_by(late->other);

		next = LIST_NEXT(late, entry);
		if (!what || hd_shm_process_is_gone(&late->who)) {
			late_drop(late);
		} else if (hd_shm_direct_is_of(what, row)) {
			settle_complain(port, row, late->who.pid);
			any = true;
		}
	}
	return any;
}

int hd_shm_settle(struct hd_port *base, uint32_t row)
{
	struct hd_shm_port *port = (struct hd_shm_port *)base;
	struct hd_shm_link *l;
	bool any;

	if (LIST_EMPTY(&port->all) && LIST_EMPTY(&port->late))
		return 0;
	if (!barrier(port))
		return -EAGAIN;
	any = late_reaches(port, row);
	LIST_FOREACH(l, &port->all, entry)
		if (l->other && hd_shm_direct_is_of(reached_by(l->other), row) && !hd_shm_is_gone(&l->peer)) {
			settle_complain(port, row, l->peer.pid);
			any = true;
		}
	if (!any)
		port->held_row = 0;
	return any ? -EAGAIN : 0;
}

void hd_shm_direct_shut(struct hd_shm_link *l)
{
	struct hd_shm_port *port = hd_shm_port_of(l);
	struct hd_shm_late *late;

	if (!l->mem || !hd_page_tables(hd_node_page(port->base.node))->mr_count)
		return;
	atomic_store_explicit(&l->own->shut, 1, memory_order_relaxed);
	if (barrier(port) && !reached_by(l->other))
		return;
	if (hd_shm_is_gone(&l->peer))
		return;
	late = malloc(sizeof(*late));
	if (!late) {
		hd_warn("no memory to remember that process %d still copies: give this process more (ulimit -v, the limit of its container)",
			(int)l->peer.pid);
		return;
	}
	*late = (struct hd_shm_late){ .mem = l->mem, .other = l->other };
	hd_shm_process_of(&l->peer, &late->who);
	LIST_INSERT_HEAD(&port->late, late, entry);
	l->mem = NULL;
	l->peer.pidfd.fd = -1;
}

/* ---- order ---- */

/* A FENCE behind everything that was sent. One that nothing has been sent after serves again. */
int hd_shm_fence(struct hd_link *link, uint32_t *token)
{
	struct hd_shm_link *l = hd_shm_link_of(link);
	struct hd_pkt pkt = { .kind = HD_SHM_PKT_FENCE, .op = l->fence.token + 1 };

	if (l->tx.head != l->fence.marked) {
		if (hd_shm_link_send(l, &pkt, NULL, 0))
			return -EAGAIN;
		l->fence.token++;
		l->fence.marked = l->tx.head;
	}
	*token = l->fence.token;
	return 0;
}

void hd_shm_fence_met(struct hd_shm_link *l, const struct hd_pkt *pkt)
{
	/* release: what came before is in its place, for whoever copies beside it now */
	atomic_store_explicit(&l->own->passed, pkt->op, memory_order_release);
	hd_shm_wake_check(l, l->fenced);
}

static bool direct_answered(const struct hd_shm_side *other, uint32_t token)
{
	return (int32_t)(atomic_load_explicit(&other->passed, memory_order_acquire) - token) >= 0;
}

bool hd_shm_passed(struct hd_link *link, uint32_t token)
{
	struct hd_shm_link *l = hd_shm_link_of(link);

	l->fence.awaits = !direct_answered(l->other, token);
	l->fence.awaited = token;
	return !l->fence.awaits;
}

bool hd_shm_direct_arm(struct hd_shm_link *l)
{
	if (!l->fence.awaits || !direct_answered(l->other, l->fence.awaited))
		return false;
	l->fence.awaits = false;
	return true;
}

/* ---- does it poll? ---- */

static bool is_recent(uint64_t then, uint64_t now, uint64_t us)
{
	return now - then < us * hd_ticks_per_us();
}

/* It has sent something, the last time a moment ago. */
static inline bool lively_by_word(struct hd_shm_liveness *v, uint32_t heard, uint64_t now)
{
	if (heard != v->heard && is_recent(v->heard_at, now, LOOK_US))
		v->lively_at = now;
	v->heard = heard;
	v->heard_at = now;
	v->lively = is_recent(v->lively_at, now, LIVELY_US);
	return v->lively;
}

/* Its count of turns has moved. */
static inline bool lively_by_turns(struct hd_shm_liveness *v, uint32_t turns, uint64_t now)
{
	v->lively = turns != v->turns_seen && is_recent(v->turns_at, now, LOOK_US);
	if (v->lively)
		v->lively_at = now;
	v->turns_seen = turns;
	v->turns_at = now;
	return v->lively;
}

/*
 * Whatever comes from the other side proves that it makes progress; where nothing comes, its count
 * of turns does. Either must have moved since a moment ago: what moved since yesterday tells
 * nothing about now. Where nothing has moved since it was last found not to poll, that is told
 * without a look at the clock.
 */
bool hd_shm_polls(struct hd_link *link)
{
	struct hd_shm_link *l = hd_shm_link_of(link);
	struct hd_shm_liveness *v = &l->liveness;
	uint64_t now;

	if (atomic_load_explicit(l->peer_sleep, memory_order_relaxed) & 1)
		return false;
	if (!v->lively && l->rx.tail == v->heard && hd_shm_turns(&l->peer) == v->turns_seen)
		return false;
	now = hd_ticks();
	return lively_by_word(v, l->rx.tail, now) || lively_by_turns(v, hd_shm_turns(&l->peer), now);
}
