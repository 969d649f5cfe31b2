/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* One process's end of a libfabric benchmark: an endpoint with one completion queue,
 * two buffers, and counters of what has completed. Nothing here knows a provider by
 * name. One thread per side. */
#ifndef HD_BENCH_FI_SIDE_H
#define HD_BENCH_FI_SIDE_H

#include <stdbool.h>
#include <stdint.h>

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_tagged.h>

#define HD_SIDE_TX 64	/* sends that may be outstanding */
#define HD_SIDE_REAP 32 /* completions read at once where many are expected */

/* Tags of messages that are not under test; the match test's own tags are numbers from 0. */
#define HD_TAG_DATA 0x1000000000000ull
#define HD_TAG_ACK 0x2000000000000ull
#define HD_TAG_HELLO 0x3000000000000ull
#define HD_TAG_MARKER 0x4000000000000ull

struct hd_side_opts {
	const char *prov; /* provider to open, as fi_info names it */
	const char *addr; /* source address for fi_getinfo, or NULL */
	bool tagged;	  /* fi_tsend and fi_trecv, else fi_send and fi_recv */
	bool inject;	  /* send by inject where the size allows */
	bool rma;	  /* one-sided operations too */
	bool atomic;	  /* atomic operations too */
	bool blocking;	  /* the CQ must be usable with fi_cq_sread */
	size_t buf_size;  /* bytes of each of the two buffers */
	size_t rx_depth;  /* receives that may be posted at once */
	size_t rx_attr;	  /* rx_attr.size to ask for; 0 leaves it to the provider */
};

struct hd_side {
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_av *av;
	struct fid_cq *cq;
	struct fid_ep *ep;
	struct fid_mr *tx_mr, *rx_mr;
	void *tx_desc, *rx_desc;
	char *tx_buf, *rx_buf;
	size_t buf_size, rx_depth;
	struct fi_context2 *tx_ctx,
		*rx_ctx; /* rx_depth of the latter; untouched where the provider needs none */
	struct fi_context2 *tx_free[HD_SIDE_TX];
	unsigned int tx_nfree;
	size_t inject_max; /* 0: never inject */
	bool tagged;
	fi_addr_t peer;
	uint64_t rx_done, rx_bytes; /* receive completions and their bytes since open */
};

/* A name as fi_getname gives it, sent over the control channel. */
struct hd_side_name {
	size_t len;
	char bytes[256];
};

/*
 * hd_side_open - open an enabled endpoint. Gives up with the provider's reason.
 * The caller closes the side.
 */
void hd_side_open(struct hd_side *s, const struct hd_side_opts *o);

/* hd_side_close - release everything that hd_side_open made. */
void hd_side_close(struct hd_side *s);

/* hd_side_name - the endpoint's own name, for the peer's address vector. */
void hd_side_name(struct hd_side *s, struct hd_side_name *name);

/* hd_side_insert - resolve a peer's name; gives up when the provider refuses it. */
fi_addr_t hd_side_insert(struct hd_side *s, const struct hd_side_name *name);

/*
 * hd_side_cq_failed - explain why fi_cq_read returned `ret` (its error entry included) and give up.
 */
_Noreturn void hd_side_cq_failed(struct hd_side *s, ssize_t ret);

/* hd_side_failed - give up because call `what` returned the negative fabric error `ret`. */
_Noreturn void hd_side_failed(const char *what, ssize_t ret);

/* hd_side_turn - make progress once and count what completed; arg is the side (fits hd_ctl_get). */
void hd_side_turn(void *arg);

/* hd_side_account - count one completion, and give a send's context back. */
static inline void hd_side_account(struct hd_side *s, const struct fi_cq_tagged_entry *e)
{
	if (e->flags & FI_RECV) {
		s->rx_done++;
		s->rx_bytes += e->len;
	} else {
		s->tx_free[s->tx_nfree++] = e->op_context;
	}
}

/* hd_side_read - read up to `max` completions without blocking; returns how many. Gives up on an
 * error completion. They are not counted yet: see hd_side_account. */
static inline size_t hd_side_read(struct hd_side *s, struct fi_cq_tagged_entry *e, size_t max)
{
	ssize_t n = fi_cq_read(s->cq, e, max);

	if (__builtin_expect(n < 0 && n != -FI_EAGAIN, 0))
		hd_side_cq_failed(s, n);
	return n < 0 ? 0 : (size_t)n;
}

/* hd_side_reap - read and count up to HD_SIDE_REAP completions. */
static inline void hd_side_reap(struct hd_side *s)
{
	struct fi_cq_tagged_entry e[HD_SIDE_REAP];
	size_t n = hd_side_read(s, e, HD_SIDE_REAP);

	for (size_t i = 0; i < n; i++)
		hd_side_account(s, &e[i]);
}

/* hd_side_reap_one - read and count one completion at most: the lean step of a ping-pong. */
static inline void hd_side_reap_one(struct hd_side *s)
{
	struct fi_cq_tagged_entry e;

	if (hd_side_read(s, &e, 1))
		hd_side_account(s, &e);
}

/* hd_side_idle - true when every send has completed. */
static inline bool hd_side_idle(const struct hd_side *s)
{
	return s->tx_nfree == HD_SIDE_TX;
}

/* hd_side_try_send - send len bytes of the send buffer to `dest`. Returns false when the provider
 * is full or HD_SIDE_TX sends are outstanding: reap, then try again. */
static inline bool hd_side_try_send(struct hd_side *s, fi_addr_t dest, size_t len, uint64_t tag)
{
	bool inject = s->inject_max && len <= s->inject_max;
	void *ctx = NULL;
	ssize_t ret;

	if (inject) {
		ret = s->tagged ? fi_tinject(s->ep, s->tx_buf, len, dest, tag)
				: fi_inject(s->ep, s->tx_buf, len, dest);
	} else {
		if (!s->tx_nfree)
			return false;
		ctx = s->tx_free[s->tx_nfree - 1];
		ret = s->tagged ? fi_tsend(s->ep, s->tx_buf, len, s->tx_desc, dest, tag, ctx)
				: fi_send(s->ep, s->tx_buf, len, s->tx_desc, dest, ctx);
	}
	if (__builtin_expect(ret == -FI_EAGAIN, 0))
		return false;
	if (__builtin_expect(ret != 0, 0))
		hd_side_failed("send", ret);
	if (!inject)
		s->tx_nfree--;
	return true;
}

/* hd_side_send - send, making progress until the provider takes it. */
static inline void hd_side_send(struct hd_side *s, fi_addr_t dest, size_t len, uint64_t tag)
{
	while (__builtin_expect(!hd_side_try_send(s, dest, len, tag), 0))
		hd_side_reap(s);
}

/* hd_side_try_recv - post a receive of len bytes at `offset` of the receive buffer under context
 * number `slot`. Returns false when the provider is full: reap, then try again. */
static inline bool hd_side_try_recv(struct hd_side *s, size_t offset, size_t len, uint64_t tag, size_t slot)
{
	void *ctx = &s->rx_ctx[slot];
	char *buf = s->rx_buf + offset;
	ssize_t ret;

	ret = s->tagged ? fi_trecv(s->ep, buf, len, s->rx_desc, FI_ADDR_UNSPEC, tag, 0, ctx)
			: fi_recv(s->ep, buf, len, s->rx_desc, FI_ADDR_UNSPEC, ctx);
	if (__builtin_expect(ret == -FI_EAGAIN, 0))
		return false;
	if (__builtin_expect(ret != 0, 0))
		hd_side_failed("receive", ret);
	return true;
}

/*
 * hd_side_recv - post a receive at the start of the buffer, making progress
 * until the provider takes it.
 */
static inline void hd_side_recv(struct hd_side *s, size_t len, uint64_t tag, size_t slot)
{
	while (__builtin_expect(!hd_side_try_recv(s, 0, len, tag, slot), 0))
		hd_side_reap(s);
}

#endif
