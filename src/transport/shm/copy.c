/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Long messages: cooperative copy. The sender offers its memory by address; the receiver fetches it, and where the message has
 * several chunks asks the sender for help. From then on both take chunks from one counter in shared memory and copy them,
 * the receiver with process_vm_readv(2), the sender with process_vm_writev(2), a chunk in each turn of progress. Nobody waits
 * for the other, except for a chunk that it has taken already.
 *
 *	sender                              receiver
 *	------                              --------
 *	offer(): number, segments  ------>  pull(): fill in copy, open its claim
 *	                           <------  HELP: number, copy, generation
 *	take chunk, write it                take chunk, read it
 *	…                                   …
 *	helped = n: store, release ------>  own + helped == all: done
 *
 * Each side may find at any time that the kernel does not let it copy (another user name space, a seccomp filter, memory of a
 * device). The helper then gives its chunk back in `returned`, and the receiver copies that too. The receiver begins anew
 * with a new generation, in which the helper does everything. When neither can, the engine sends the message in frames.
 *
 * Nobody reads or writes its own memory at an address that came from the other side: an offer is looked up by number in a
 * private table, a buffer is the one that was given to pull().
 */
#include "transport/shm/shm.h"

#include "base/clock.h"
#include "base/config.h"
#include "base/log.h"

#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define OFFER_SEGS 5u                   /* that an offer carries; of a message with more the sender writes everything */
#define SETTLE_NS  (100 * HD_NS_PER_MS) /* how long a chunk that the helper is writing is waited for */
#define ALIVE_US   1000                 /* how long a process is taken for the one that it was */
#define NO_COPY    UINT8_MAX

/* What travels in the RTS. */
struct blob {
	uint32_t number;
	uint32_t count; /* segments that follow; 0: too many to tell */
	struct hd_shm_seg seg[OFFER_SEGS];
};
static_assert(sizeof(struct blob) <= HD_OFFER_MAX, "an offer fits in the RTS");
#define BLOB_LEN(count) (offsetof(struct blob, seg) + (count) * sizeof(struct hd_shm_seg))

/* hd_pull.priv */
struct pull {
	uint32_t number; /* of the offer */
	uint32_t next;   /* without a copy: the next chunk */
	uint32_t ours;   /* chunks that we have taken, and copied before anybody looks */
	uint8_t copy;    /* index of the copy that the two share, or NO_COPY */
	uint8_t segs;
	uint8_t flags;   /* enum pull_flag */
	struct hd_shm_seg seg[OFFER_SEGS];
};
static_assert(sizeof(struct pull) <= sizeof(((struct hd_pull *)0)->priv), "the state of a pull fits in its private part");

enum pull_flag {
	LISTED = 1 << 0, /* in link->pulls */
	ASKED = 1 << 1,  /* HELP is sent */
	ASIDE = 1 << 2,  /* we may not: the helper does everything */
	ALONE = 1 << 3,  /* the helper may not: we do everything */
	LOST = 1 << 4,   /* the sender has given up the link; we shall hear of it */
};

static struct pull *pull_of(struct hd_pull *p)
{
	return (struct pull *)p->priv;
}

static uint64_t tagged(uint32_t gen, uint32_t value)
{
	return (uint64_t)gen << 32 | value;
}

/* ---- may we? ---------------------------------------------------------------------------------------------------------- */

static uint32_t direct_of(const struct hd_shm_side *side)
{
	return side ? atomic_load_explicit(&side->direct, memory_order_relaxed) : 0;
}

static bool we_can(const struct hd_shm_link *l)
{
	return direct_of(l->own) == HD_SHM_DIRECT_YES && direct_of(l->other) != HD_SHM_DIRECT_OFF;
}

static bool they_can(const struct hd_shm_link *l)
{
	return direct_of(l->other) == HD_SHM_DIRECT_YES && direct_of(l->own) != HD_SHM_DIRECT_OFF;
}

static void say_direct(struct hd_shm_link *l, enum hd_shm_direct what, int error)
{
	atomic_store_explicit(&l->own->direct, (uint32_t)what | (uint32_t)error << 8, memory_order_relaxed);
	hd_shm_row_fill(l);
}

/* Refused for good: the link falls back to what the other side can do, or to frames. */
static void refused(struct hd_shm_link *l, int error)
{
	hd_info("process %d: no direct copies: %s: messages go through the ring", (int)l->peer_pid, strerror(error));
	say_direct(l, HD_SHM_DIRECT_REFUSED, error);
}

/* Yama's mode 1 lets only ancestors in, unless one asks; elsewhere asking is needless. */
void hd_shm_copy_init(void)
{
	int fd = open("/proc/sys/kernel/yama/ptrace_scope", O_RDONLY | O_CLOEXEC);
	char scope = '0';

	if (fd < 0)
		return;
	if (read(fd, &scope, 1) != 1)
		scope = '0';
	close(fd);
	if (scope != '1' || !hd_config_bool(HD_SET_PTRACER) || !hd_config_bool(HD_SET_DIRECT_COPY))
		return;
	if (prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0) < 0)
		hd_debug("the kernel restricts direct copies and does not let us permit them: %m");
}

static int probe(const struct hd_shm_link *l)
{
	uint64_t want = l->page->probe_value, got = 0;
	struct iovec here = { &got, sizeof(got) };
	struct iovec there = { (void *)(uintptr_t)l->page->probe_addr, sizeof(got) };
	ssize_t n;

	if (l->peer_pid <= 0)
		return ESRCH;
	n = process_vm_readv(l->peer_pid, &here, 1, &there, 1, 0);
	if (n < 0)
		return errno;
	return n == sizeof(got) && got == want ? 0 : ESRCH; /* another process has this pid where we look */
}

void hd_shm_probe(struct hd_shm_link *l)
{
	int error;

	if (!hd_config_bool(HD_SET_DIRECT_COPY)) {
		say_direct(l, HD_SHM_DIRECT_OFF, 0);
		return;
	}
	error = probe(l);
	if (error)
		refused(l, error);
	else
		say_direct(l, HD_SHM_DIRECT_YES, 0);
}

/* ---- copying ---------------------------------------------------------------------------------------------------------- */

/* The part of a message in these segments that begins at `at` and is n bytes long; it is there. Returns the segments of it. */
static int slice(const struct iovec *iov, uint64_t at, uint64_t n, struct iovec *out)
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

/* A pid may have been given to another process since its owner died. Asked now and then, so that it costs nothing. */
static bool still_there(struct hd_shm_link *l)
{
	uint64_t now = hd_ticks();

	if (l->pidfd.fd < 0 || now - l->alive_at < ALIVE_US * hd_ticks_per_us())
		return true;
	if (syscall(SYS_pidfd_send_signal, l->pidfd.fd, 0, NULL, 0) < 0 && errno == ESRCH)
		return false;
	l->alive_at = now;
	return true;
}

/*
 * Copy n bytes of a message from byte `at` on: from `far`, which are addresses in the other process, to `near`, or the other way.
 * 0, or a positive errno, which is EFAULT where only this memory is to blame.
 */
static int copy_bytes(struct hd_shm_link *l, const struct iovec *near, const struct iovec *far, uint64_t at, uint64_t n,
		      bool out)
{
	struct iovec here[HD_IOV_MAX], there[HD_SHM_SEGS];
	unsigned long heres = (unsigned long)slice(near, at, n, here), theres = (unsigned long)slice(far, at, n, there);
	ssize_t done;

	if (!still_there(l))
		return ESRCH;
	done = out ? process_vm_writev(l->peer_pid, here, heres, there, theres, 0)
		   : process_vm_readv(l->peer_pid, here, heres, there, theres, 0);
	if (done < 0)
		return errno;
	return (uint64_t)done == n ? 0 : EFAULT;
}

static int copy_chunk(struct hd_shm_link *l, const struct iovec *near, const struct iovec *far, uint64_t len, uint32_t k,
		      bool out)
{
	uint64_t chunk = hd_shm_chunk(len), at = k * chunk;
	int error = copy_bytes(l, near, far, at, len - at < chunk ? len - at : chunk, out);

	if (error == ESRCH)
		hd_shm_link_end(l, -ECONNRESET, "the process has ended");
	else if (error && error != EFAULT && we_can(l))
		refused(l, error);
	return error;
}

/* Take the next chunk that nobody has taken. false: there is none, or the copy is about something else by now. */
static bool take_chunk(_Atomic uint64_t *claim, uint32_t gen, uint64_t chunks, uint32_t *k)
{
	uint64_t now = atomic_load_explicit(claim, memory_order_relaxed);

	do {
		if (now >> 32 != gen || (uint32_t)now >= chunks)
			return false;
		*k = (uint32_t)now;
	} while (!atomic_compare_exchange_weak_explicit(claim, &now, now + 1, memory_order_relaxed, memory_order_relaxed));
	return true;
}

/* ---- the sender: offers ----------------------------------------------------------------------------------------------- */

static struct hd_shm_copy *copies(struct hd_shm_link *l, bool ours)
{
	return l->mem->copy[ours ? l->side : !l->side];
}

static _Atomic uint32_t *offer_word(struct hd_shm_link *l, bool ours, uint32_t number)
{
	return &l->mem->offer[ours ? l->side : !l->side][hd_shm_offer_index(number)];
}

size_t hd_shm_offer(struct hd_link *link, struct hd_offer *o, void *out)
{
	struct hd_shm_link *l = hd_shm_link_of(link);
	struct blob blob = { .count = o->count <= (int)OFFER_SEGS ? (uint32_t)o->count : 0 };

	if (link->down || !(we_can(l) || (they_can(l) && blob.count)))
		return 0;
	/* the map lets that many slots rest, so an index stays below HD_SHM_OFFERS */
	if (l->offers.count >= HD_SHM_OFFERS - HD_IDMAP_REST || hd_idmap_add(&l->offers, o, &blob.number) < 0)
		return 0;
	o->priv[0] = blob.number;
	atomic_store_explicit(offer_word(l, true, blob.number), blob.number, memory_order_relaxed); /* the RTS publishes it */
	for (uint32_t i = 0; i < blob.count; i++)
		blob.seg[i] = (struct hd_shm_seg){ (uintptr_t)o->iov[i].iov_base, o->iov[i].iov_len };
	memcpy(out, &blob, BLOB_LEN(blob.count));
	return BLOB_LEN(blob.count);
}

/* ---- the sender: help ------------------------------------------------------------------------------------------------- */

static void give_up(struct hd_shm_link *l, uint32_t index, uint32_t gen, uint32_t chunk)
{
	uint32_t value = chunk == HD_SHM_NO_CHUNK ? chunk : chunk + 1;

	atomic_store_explicit(&copies(l, false)[index].returned, tagged(gen, value), memory_order_release);
	hd_shm_wake_check(l, l->fenced);
}

static void help_end(struct hd_shm_link *l, struct hd_shm_help *h)
{
	TAILQ_REMOVE(&l->helps, h, entry);
	h->offer = NULL;
}

void hd_shm_unoffer(struct hd_link *link, struct hd_offer *o)
{
	struct hd_shm_link *l = hd_shm_link_of(link);
	struct hd_shm_help *h, *next;

	if (link->down)
		atomic_store_explicit(&l->own->closed, 1, memory_order_relaxed);
	atomic_store_explicit(offer_word(l, true, (uint32_t)o->priv[0]), 0, memory_order_release);
	atomic_thread_fence(memory_order_release); /* before whatever the memory is used for now */
	hd_idmap_remove(&l->offers, (uint32_t)o->priv[0]);
	for (h = TAILQ_FIRST(&l->helps); h; h = next) {
		next = TAILQ_NEXT(h, entry);
		if (h->offer != o)
			continue;
		give_up(l, (uint32_t)(h - l->help), h->gen, HD_SHM_NO_CHUNK);
		help_end(l, h);
	}
}

/* The segments of the other side's buffer, which must hold len bytes. Their addresses are its own business. */
static int help_segments(struct hd_shm_help *h, const void *payload, size_t len)
{
	struct hd_shm_seg seg[HD_SHM_SEGS];
	uint64_t sum = 0;

	if (len > sizeof(seg) || len % sizeof(seg[0]))
		return -EPROTO;
	memcpy(seg, payload, len);
	atomic_signal_fence(memory_order_seq_cst); /* read once */
	h->count = (int)(len / sizeof(seg[0]));
	for (int i = 0; i < h->count; i++) {
		if (seg[i].len > UINT64_MAX - sum)
			return -EPROTO;
		sum += seg[i].len;
		h->iov[i] = (struct iovec){ (void *)(uintptr_t)seg[i].addr, seg[i].len };
	}
	return sum >= h->len ? 0 : -EPROTO;
}

int hd_shm_help_asked(struct hd_shm_link *l, const struct hd_pkt *pkt, const void *payload, size_t len)
{
	struct hd_offer *o = hd_idmap_get(&l->offers, pkt->op);
	struct hd_shm_help *h;

	if (pkt->dst >= HD_SHM_COPIES)
		return -EPROTO;
	if (!l->help)
		l->help = calloc(HD_SHM_COPIES, sizeof(*l->help));
	if (!o || !l->help || !we_can(l)) { /* the offer may have been withdrawn since */
		give_up(l, pkt->dst, pkt->src, HD_SHM_NO_CHUNK);
		return 0;
	}
	h = &l->help[pkt->dst];
	if (h->offer) /* the other side has taken the copy back and uses it anew */
		help_end(l, h);
	*h = (struct hd_shm_help){ .len = pkt->tag, .gen = pkt->src };
	if (!h->len || h->len > o->len || hd_shm_chunks(h->len) >= UINT32_MAX || help_segments(h, payload, len) < 0)
		return -EPROTO;
	h->offer = o;
	TAILQ_INSERT_TAIL(&l->helps, h, entry);
	l->attention = true;
	return 0;
}

/* Copy one chunk of the oldest message that has any left. */
static int help_poll(struct hd_shm_link *l)
{
	struct hd_shm_help *h;

	while ((h = TAILQ_FIRST(&l->helps))) {
		uint32_t index = (uint32_t)(h - l->help), k;
		struct hd_shm_copy *copy = &copies(l, false)[index];

		if (h->helped == hd_shm_chunks(h->len) || !take_chunk(&copy->claim, h->gen, hd_shm_chunks(h->len), &k)) {
			help_end(l, h);
			continue;
		}
		if (copy_chunk(l, h->offer->iov, h->iov, h->len, k, true)) {
			give_up(l, index, h->gen, k);
			help_end(l, h);
			return 1;
		}
		atomic_store_explicit(&copy->helped, tagged(h->gen, ++h->helped), memory_order_release);
		hd_shm_wake_check(l, l->fenced);
		return 1;
	}
	return 0;
}

/* ---- the receiver: the copy that it shares with the helper ------------------------------------------------------------ */

static struct hd_shm_copy *copy_of(struct hd_shm_link *l, const struct pull *pp)
{
	return &copies(l, true)[pp->copy];
}

/* Open a free copy, or this pull's own once more, from chunk `next` on. */
static bool copy_open(struct hd_shm_link *l, struct pull *pp, uint32_t next)
{
	if (pp->copy == NO_COPY) {
		if (l->copy_used == UINT32_MAX)
			return false;
		pp->copy = (uint8_t)__builtin_ctz(~l->copy_used);
		l->copy_used |= 1u << pp->copy;
	}
	atomic_store_explicit(&copy_of(l, pp)->claim, tagged(++l->copy_gen[pp->copy], next), memory_order_release);
	return true;
}

/* The low half of a word of the helper's, or 0 while it speaks of an earlier generation. */
static uint32_t copy_word(struct hd_shm_link *l, const struct pull *pp, const _Atomic uint64_t *word)
{
	uint64_t value = atomic_load_explicit(word, memory_order_acquire);

	return value >> 32 == l->copy_gen[pp->copy] ? (uint32_t)value : 0;
}

/*
 * Close the copy and wait for the chunk that the helper is writing at this moment, if there is one: it is in the kernel and will
 * be out of it soon, or be killed. The buffer is the user's again afterwards.
 */
static void copy_close(struct hd_shm_link *l, struct hd_pull *p)
{
	struct pull *pp = pull_of(p);
	struct hd_shm_copy *copy;
	uint64_t claim, deadline, chunks = hd_shm_chunks(p->len);
	uint32_t taken;

	if (pp->copy == NO_COPY)
		return;
	copy = copy_of(l, pp);
	claim = atomic_load_explicit(&copy->claim, memory_order_relaxed);
	while (!atomic_compare_exchange_weak_explicit(&copy->claim, &claim, claim | UINT32_MAX, memory_order_acquire,
						      memory_order_relaxed))
		;
	taken = ((uint32_t)claim < chunks ? (uint32_t)claim : (uint32_t)chunks) - pp->ours;
	deadline = hd_now_ns() + SETTLE_NS;
	while ((pp->flags & ASKED) && copy_word(l, pp, &copy->helped) < taken && !copy_word(l, pp, &copy->returned)) {
		if (hd_now_ns() > deadline || !still_there(l))
			break;
		sched_yield();
	}
	l->copy_used &= ~(1u << pp->copy);
	pp->copy = NO_COPY;
}

/* ---- the receiver: pulls ---------------------------------------------------------------------------------------------- */

static int blob_parse(const struct hd_pull *p, struct pull *pp)
{
	struct blob blob;
	uint64_t sum = 0;

	if (p->offer_len < BLOB_LEN(0) || p->offer_len > sizeof(blob))
		return -EPROTO;
	memcpy(&blob, p->offer, p->offer_len);
	if (blob.count > OFFER_SEGS || p->offer_len != BLOB_LEN(blob.count))
		return -EPROTO;
	*pp = (struct pull){ .number = blob.number, .segs = (uint8_t)blob.count, .copy = NO_COPY };
	for (uint32_t i = 0; i < blob.count; i++) {
		if (blob.seg[i].len > UINT64_MAX - sum)
			return -EPROTO;
		sum += blob.seg[i].len;
		pp->seg[i] = blob.seg[i];
	}
	return !blob.count || sum >= p->len ? 0 : -EPROTO;
}

static int pull_chunk(struct hd_shm_link *l, struct hd_pull *p, uint32_t k)
{
	const struct pull *pp = pull_of(p);
	struct iovec far[OFFER_SEGS];

	for (int i = 0; i < pp->segs; i++)
		far[i] = (struct iovec){ (void *)(uintptr_t)pp->seg[i].addr, pp->seg[i].len };
	return copy_chunk(l, p->iov, far, p->len, k, false);
}

/* Ask for help, where that is of use, and there is room for it. */
static void pull_ask(struct hd_shm_link *l, struct hd_pull *p)
{
	struct pull *pp = pull_of(p);
	struct hd_shm_seg seg[HD_SHM_SEGS];
	struct hd_pkt pkt = { .kind = HD_SHM_PKT_HELP, .op = pp->number, .tag = p->len };

	if ((pp->flags & (ASKED | ALONE | LOST)) || (pp->copy == NO_COPY && !copy_open(l, pp, pp->next)))
		return;
	for (int i = 0; i < p->count; i++)
		seg[i] = (struct hd_shm_seg){ (uintptr_t)p->iov[i].iov_base, p->iov[i].iov_len };
	pkt.dst = pp->copy;
	pkt.src = l->copy_gen[pp->copy];
	if (hd_shm_link_send(l, &pkt, seg, (size_t)p->count * sizeof(seg[0])) == 0)
		pp->flags |= ASKED;
}

/* We could not copy: let the helper do everything from the beginning. false: it cannot either. */
static bool pull_aside(struct hd_shm_link *l, struct hd_pull *p)
{
	struct pull *pp = pull_of(p);

	if ((pp->flags & (ALONE | ASIDE)) || !they_can(l))
		return false;
	copy_close(l, p);
	pp->flags = (uint8_t)((pp->flags | ASIDE) & ~ASKED);
	pp->next = pp->ours = 0;
	return true;
}

static void pull_end(struct hd_shm_link *l, struct hd_pull *p)
{
	struct pull *pp = pull_of(p);

	copy_close(l, p);
	if (pp->flags & LISTED)
		TAILQ_REMOVE(&l->pulls, p, entry);
	pp->flags = 0;
}

/* The next chunk for us, if there is one. */
static bool pull_take(struct hd_shm_link *l, struct hd_pull *p, uint32_t *k)
{
	struct pull *pp = pull_of(p);

	if (pp->flags & (ASIDE | LOST))
		return false;
	if (pp->copy != NO_COPY) {
		if (!take_chunk(&copy_of(l, pp)->claim, l->copy_gen[pp->copy], hd_shm_chunks(p->len), k))
			return false;
	} else {
		if (pp->next >= hd_shm_chunks(p->len))
			return false;
		*k = pp->next++;
	}
	pp->ours++;
	return true;
}

/* The chunk that the helper gives back, if it does. false: nobody can copy it. */
static bool pull_take_back(struct hd_shm_link *l, struct hd_pull *p)
{
	struct pull *pp = pull_of(p);
	uint32_t value;

	if (pp->copy == NO_COPY || (pp->flags & ALONE))
		return true;
	value = copy_word(l, pp, &copy_of(l, pp)->returned);
	if (!value)
		return true;
	pp->flags |= ALONE;
	if (pp->flags & ASIDE)
		return false;
	if (value == HD_SHM_NO_CHUNK)
		return true;
	if (value > hd_shm_chunks(p->len) || pull_chunk(l, p, value - 1))
		return false;
	pp->ours++;
	return true;
}

enum pull_state {
	PULL_WAITS,
	PULL_DONE,
	PULL_FAILED,
	PULL_WITHDRAWN, /* by the sender */
};

/* What the end of a pull is worth: does the offer still stand, now that everything has been copied? */
static enum pull_state pull_verdict(struct hd_shm_link *l, const struct pull *pp, enum pull_state state)
{
	atomic_thread_fence(memory_order_acquire); /* after everything that was copied */
	if (atomic_load_explicit(offer_word(l, false, pp->number), memory_order_acquire) != pp->number)
		return PULL_WITHDRAWN;
	return state;
}

static bool sender_gone(const struct hd_shm_link *l)
{
	return l->state == HD_SHM_ENDING || atomic_load_explicit(&l->other->closed, memory_order_relaxed);
}

static enum pull_state pull_look(struct hd_shm_link *l, struct hd_pull *p)
{
	struct pull *pp = pull_of(p);
	uint64_t chunks = hd_shm_chunks(p->len), helped = 0;

	if (pp->flags & LOST)
		return PULL_WAITS;
	if (!pull_take_back(l, p))
		return pull_verdict(l, pp, PULL_FAILED);
	if (pp->copy != NO_COPY)
		helped = copy_word(l, pp, &copy_of(l, pp)->helped);
	return pp->ours + helped < chunks ? PULL_WAITS : pull_verdict(l, pp, PULL_DONE);
}

/* Copy the next chunk that is left for us, if there is one; *worked says so. */
static enum pull_state pull_step(struct hd_shm_link *l, struct hd_pull *p, bool *worked)
{
	uint32_t k;

	if (!pull_take(l, p, &k))
		return PULL_WAITS;
	*worked = true;
	if (!pull_chunk(l, p, k))
		return pull_look(l, p);
	if (pull_verdict(l, pull_of(p), PULL_FAILED) == PULL_WITHDRAWN)
		return PULL_WITHDRAWN;
	return pull_aside(l, p) ? PULL_WAITS : PULL_FAILED;
}

/* The sender is gone and the engine will hear of it when the link goes down; until then this pull just waits. */
static void pull_lose(struct hd_shm_link *l, struct hd_pull *p)
{
	copy_close(l, p);
	pull_of(p)->flags |= LOST;
}

static void pull_list(struct hd_shm_link *l, struct hd_pull *p, unsigned flags)
{
	pull_of(p)->flags = (uint8_t)(LISTED | flags);
	TAILQ_INSERT_TAIL(&l->pulls, p, entry);
	l->attention = true;
	hd_shm_heat(l);
	pull_ask(l, p);
}

/* A message of one chunk: at once, and without help. */
static enum pull_state pull_single(struct hd_shm_link *l, struct hd_pull *p)
{
	bool failed = pull_chunk(l, p, 0);

	return pull_verdict(l, pull_of(p), failed ? PULL_FAILED : PULL_DONE);
}

int hd_shm_pull(struct hd_link *link, struct hd_pull *p)
{
	struct hd_shm_link *l = hd_shm_link_of(link);
	struct pull *pp = pull_of(p);
	enum pull_state state = PULL_FAILED;

	if (link->down)
		return -ENOTCONN;
	if (blob_parse(p, pp) < 0) {
		hd_shm_link_fail(l, -EPROTO, "an impossible offer of a message");
		return -EPROTO;
	}
	if (we_can(l) && pp->segs)
		state = hd_shm_chunks(p->len) == 1 ? pull_single(l, p) : PULL_WAITS;
	if (state == PULL_DONE) {
		p->done(p, 0);
		return 0;
	}
	if (sender_gone(l))
		pull_list(l, p, LOST);
	else if (state == PULL_WITHDRAWN)
		return -ECANCELED;
	else if (state == PULL_FAILED && !they_can(l))
		return -EPERM;
	else
		pull_list(l, p, (state == PULL_FAILED ? ASIDE : 0) | (they_can(l) ? 0 : ALONE));
	return 0;
}

void hd_shm_unpull(struct hd_link *link, struct hd_pull *p)
{
	if (pull_of(p)->flags & LISTED)
		pull_end(hd_shm_link_of(link), p);
}

/* ---- progress --------------------------------------------------------------------------------------------------------- */

/* The pull has come to its end. Returns whether somebody was told, who may have changed the list. */
static bool pull_finish(struct hd_shm_link *l, struct hd_pull *p, enum pull_state state)
{
	static const int errors[] = { [PULL_DONE] = 0, [PULL_FAILED] = -EPERM, [PULL_WITHDRAWN] = -ECANCELED };

	if (state == PULL_WITHDRAWN && sender_gone(l)) {
		pull_lose(l, p);
		return false;
	}
	pull_end(l, p);
	p->done(p, errors[state]);
	return true;
}

/* Every pull is looked at, but only one chunk is copied. */
static int pulls_poll(struct hd_shm_link *l)
{
	bool worked = false;
	struct hd_pull *p;

	TAILQ_FOREACH(p, &l->pulls, entry) {
		enum pull_state state;

		pull_ask(l, p);
		state = pull_look(l, p);
		if (state == PULL_WAITS && !worked)
			state = pull_step(l, p, &worked);
		if (state != PULL_WAITS && pull_finish(l, p, state))
			return 1;
		if (pull_of(p)->copy == NO_COPY && worked)
			break; /* those behind it are not begun either */
	}
	return worked;
}

int hd_shm_copy_poll(struct hd_shm_link *l)
{
	int n = help_poll(l);

	n += pulls_poll(l);
	if (l->state == HD_SHM_LIVE)
		l->attention = !TAILQ_EMPTY(&l->pulls) || !TAILQ_EMPTY(&l->helps);
	return n;
}

static bool pull_arm(struct hd_shm_link *l, struct hd_pull *p)
{
	const struct pull *pp = pull_of(p);
	uint32_t next = pp->next;

	if (pp->flags & LOST)
		return false;
	if (pull_look(l, p) != PULL_WAITS)
		return true;
	if (pp->copy != NO_COPY)
		next = (uint32_t)atomic_load_explicit(&copy_of(l, pp)->claim, memory_order_relaxed);
	else if (!(pp->flags & ALONE) && l->copy_used != UINT32_MAX)
		return true; /* help can be asked for by now */
	return !(pp->flags & ASIDE) && next < hd_shm_chunks(p->len);
}

bool hd_shm_copy_arm(struct hd_shm_link *l)
{
	struct hd_pull *p;

	if (!TAILQ_EMPTY(&l->helps))
		return true;
	TAILQ_FOREACH(p, &l->pulls, entry)
		if (pull_arm(l, p))
			return true;
	return false;
}

void hd_shm_copy_stop(struct hd_shm_link *l)
{
	struct hd_pull *p;
	struct hd_shm_help *h;

	while ((p = TAILQ_FIRST(&l->pulls)))
		pull_end(l, p);
	while ((h = TAILQ_FIRST(&l->helps)))
		help_end(l, h);
}
