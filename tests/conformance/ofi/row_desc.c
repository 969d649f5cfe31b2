/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * M24: the desc of a buffer, fi_msg(3) and fi_mr(3). Where the domain does not want it, whatever it
 * is does nothing. Where it does (FI_MR_LOCAL), a wrong one may be refused, or fail, or do nothing;
 * memory that the call does not name is neither sent nor written.
 */
#include "region.h"

#include <rdma/fi_atomic.h>
#include <rdma/fi_rma.h>
#include <stdlib.h>
#include <string.h>

#define ROOM 300000
#define OWN 1	/* what is in the buffers that calls name */
#define OTHER 2 /* what is in the region that a wrong desc stands for */

/* The buffer of a call, and a region that it has nothing to do with. */
struct scene {
	struct ct_dom dom;
	struct ct_ep e;
	char *buf, *other;
	struct fid_mr *of_buf, *of_other;
	void *desc[6];
	bool wants; /* FI_MR_LOCAL */
};

static struct fid_mr *region_of(struct scene *s, char *mem, uint64_t key)
{
	const uint64_t all = FI_SEND | FI_RECV | FI_READ | FI_WRITE;
	struct fid_mr *mr;

	CT_OK(s->e.ct, fi_mr_reg(s->dom.domain, mem, ROOM, all, 0, key, 0, &mr, NULL));
	ct_region_ready(&s->e, mr, mem);
	return mr;
}

/*
 * arg: the mr_mode of the hints. The descs: none, right, another's, that of a region closed, and
 * two that were never one.
 */
static void open_scene(struct ct *ct, struct scene *s)
{
	struct ct_want want = { .caps = FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC,
				.mr_mode = ct->cs->arg ? (int)ct->cs->arg : CT_MR_NONE };
	static uint64_t nonsense[8];
	struct fid_mr *closed;

	ct_start(ct, &s->dom, &s->e, &want);
	s->wants = s->dom.info->domain_attr->mr_mode & FI_MR_LOCAL;
	s->buf = ct_alloc(ct, ROOM);
	s->other = ct_alloc(ct, ROOM);
	s->of_buf = region_of(s, s->buf, 11);
	s->of_other = region_of(s, s->other, 12);
	closed = region_of(s, s->buf, 13);
	s->desc[0] = NULL;
	s->desc[1] = fi_mr_desc(s->of_buf);
	s->desc[2] = fi_mr_desc(s->of_other);
	s->desc[3] = fi_mr_desc(closed);
	CT_OK(ct, fi_close(&closed->fid));
	s->desc[4] = nonsense;
	s->desc[5] = CTX(8);
	ct_fill(s->other, ROOM, OTHER);
}

static void close_scene(struct ct *ct, struct scene *s)
{
	CT_OK(ct, fi_close(&s->of_buf->fid));
	CT_OK(ct, fi_close(&s->of_other->fid));
	free(s->buf);
	free(s->other);
	ct_finish(&s->e);
}

/*
 * Whether desc d may be refused; the last two name nothing that a provider could have
 * looked at, where it looks.
 */
static bool is_wrong(const struct scene *s, int d)
{
	return s->wants && d != 1;
}

static int descs(const struct scene *s)
{
	return s->wants ? 3 : 6;
}

#define KINDS 8

static ssize_t send_kind(struct scene *s, int kind, size_t len, void *d)
{
	struct ct_ep *e = &s->e;
	struct iovec iov[2] = { { s->buf, len / 2 }, { s->buf + len / 2, len - len / 2 } };
	void *two[2] = { d, d };
	struct fi_msg m = {
		.msg_iov = iov, .desc = two, .iov_count = 2, .addr = e->addr[1], .context = CTX(1)
	};
	struct fi_msg_tagged t = { .msg_iov = iov,
				   .desc = two,
				   .iov_count = 2,
				   .addr = e->addr[1],
				   .tag = CT_TAG,
				   .context = CTX(1) };

	switch (kind) {
	case 0:
		return fi_send(e->ep, s->buf, len, d, e->addr[1], CTX(1));
	case 1:
		return fi_sendv(e->ep, iov, two, 2, e->addr[1], CTX(1));
	case 2:
		return fi_sendmsg(e->ep, &m, FI_COMPLETION);
	case 3:
		return fi_senddata(e->ep, s->buf, len, d, 5, e->addr[1], CTX(1));
	case 4:
		return fi_tsend(e->ep, s->buf, len, d, e->addr[1], CT_TAG, CTX(1));
	case 5:
		return fi_tsendv(e->ep, iov, two, 2, e->addr[1], CT_TAG, CTX(1));
	case 6:
		return fi_tsendmsg(e->ep, &t, FI_COMPLETION);
	default:
		return fi_tsenddata(e->ep, s->buf, len, d, 5, e->addr[1], CT_TAG, CTX(1));
	}
}

static ssize_t recv_kind(struct scene *s, int kind, size_t len, void *d)
{
	struct ct_ep *e = &s->e;
	struct iovec iov[2] = { { s->buf, len / 2 }, { s->buf + len / 2, len - len / 2 } };
	void *two[2] = { d, d };
	struct fi_msg m = {
		.msg_iov = iov, .desc = two, .iov_count = 2, .addr = FI_ADDR_UNSPEC, .context = CTX(1)
	};
	struct fi_msg_tagged t = { .msg_iov = iov,
				   .desc = two,
				   .iov_count = 2,
				   .addr = FI_ADDR_UNSPEC,
				   .tag = CT_TAG,
				   .context = CTX(1) };

	switch (kind) {
	case 1:
		return fi_recvv(e->ep, iov, two, 2, FI_ADDR_UNSPEC, CTX(1));
	case 2:
		return fi_recvmsg(e->ep, &m, FI_COMPLETION);
	case 0:
	case 3:
		return fi_recv(e->ep, s->buf, len, d, FI_ADDR_UNSPEC, CTX(1));
	case 5:
		return fi_trecvv(e->ep, iov, two, 2, FI_ADDR_UNSPEC, CT_TAG, 0, CTX(1));
	case 6:
		return fi_trecvmsg(e->ep, &t, FI_COMPLETION);
	default:
		return fi_trecv(e->ep, s->buf, len, d, FI_ADDR_UNSPEC, CT_TAG, 0, CTX(1));
	}
}

/* The call, until it is taken or refused; whether it has ended well. Only a wrong desc may not. */
static bool carried_out(struct scene *s, int kind, size_t len, int d)
{
	ssize_t (*const call)(struct scene *, int, size_t, void *) = s->e.ct->rank ? recv_kind : send_kind;
	double end = ct_deadline(s->e.ct);
	struct ct_comp c;
	ssize_t rc;

	while ((rc = call(s, kind, len, s->desc[d])) == -FI_EAGAIN) {
		ct_late(s->e.ct, end, "a call with a desc");
		ct_progress(&s->e);
	}
	if (s->e.ct->rank) /* and the other one may send */
		ct_sync(s->e.ct, &s->e);
	if (!rc) {
		ct_of(&s->e, CTX(1), &c);
		rc = -c.err;
	}
	if (rc && !is_wrong(s, d))
		ct_fail(s->e.ct, "call %d of %zu bytes with desc %d: %s", kind, len, d,
			fi_strerror((int)-rc));
	return !rc;
}

/* One message, with a wrong desc at the one end or at the other. */
static void one(struct ct *ct, struct scene *s, int kind, size_t len, int d, bool at_sender)
{
	bool mine = at_sender == !ct->rank;

	if (ct->rank) {
		memset(s->buf, 0, len);
		if (carried_out(s, kind, len, mine ? d : 1))
			ct_verify(ct, s->buf, len, OWN, "with a desc");
		else
			CT_TRUE(ct, ct_untouched(s->buf, len, 0) || ct_match(s->buf, len, OWN, 0));
	} else {
		ct_fill(s->buf, len, OWN);
		ct_sync(ct, &s->e);
		carried_out(s, kind, len, mine ? d : 1);
		ct_verify(ct, s->buf, len, OWN, "what was sent");
	}
	ct_verify(ct, s->other, ROOM, OTHER, "memory that nobody named");
}

static void messages(struct ct *ct)
{
	static const size_t lens[] = { 8, 3000, ROOM };
	struct scene s;

	open_scene(ct, &s);
	if (s.wants)
		ct_unsupported(ct, "one end would wait for what the other is refused");
	for (int kind = 0; kind < KINDS; kind++)
		for (size_t l = 0; l < CT_COUNT(lens); l++)
			for (int d = 0; d < descs(&s); d++)
				one(ct, &s, kind, lens[l], d, d % 2);
	close_scene(ct, &s);
}

static ssize_t one_sided_kind(struct scene *s, int kind, size_t len, void *d, const struct ct_place *at)
{
	struct ct_ep *e = &s->e;
	struct iovec iov[2] = { { s->buf, len / 2 }, { s->buf + len / 2, len - len / 2 } };
	void *two[2] = { d, d };
	struct fi_rma_iov there = { at->addr, len, at->key };
	struct fi_msg_rma m = { .msg_iov = iov,
				.desc = two,
				.iov_count = 2,
				.addr = e->addr[1],
				.rma_iov = &there,
				.rma_iov_count = 1,
				.context = CTX(1) };

	switch (kind) {
	case 0:
		return fi_write(e->ep, s->buf, len, d, e->addr[1], at->addr, at->key, CTX(1));
	case 1:
		return fi_writev(e->ep, iov, two, 2, e->addr[1], at->addr, at->key, CTX(1));
	case 2:
		return fi_writemsg(e->ep, &m, FI_COMPLETION);
	case 3:
		return fi_writedata(e->ep, s->buf, len, d, 5, e->addr[1], at->addr, at->key, CTX(1));
	case 4:
		return fi_read(e->ep, s->buf, len, d, e->addr[1], at->addr, at->key, CTX(1));
	case 5:
		return fi_readv(e->ep, iov, two, 2, e->addr[1], at->addr, at->key, CTX(1));
	case 6:
		return fi_readmsg(e->ep, &m, FI_COMPLETION);
	default:
		return fi_atomic(e->ep, s->buf, 1, d, e->addr[1], at->addr, at->key, FI_UINT64,
				 FI_ATOMIC_WRITE, CTX(1));
	}
}

/*
 * Rank 0 writes, reads and replaces a word; what is there is what its buffer had, or what is in
 * its buffer what was there.
 */
static void one_sided(struct ct *ct)
{
	static const size_t lens[] = { 8, 3000, ROOM };
	struct ct_region r;
	struct ct_place at;
	struct ct_comp c;
	struct scene s;

	open_scene(ct, &s);
	ct_offer(&s.e, &r, ROOM, FI_REMOTE_READ | FI_REMOTE_WRITE, &at);
	for (int n = 0; !ct->rank && n < KINDS * (int)CT_COUNT(lens) * descs(&s); n++) {
		const int kind = n % KINDS, d = n / KINDS % descs(&s);
		const size_t len = kind == KINDS - 1 ? 8 : lens[n / KINDS / descs(&s)];
		ssize_t rc;

		if (kind == 4) /* what is read is what has been written */
			CT_POST(&s.e, fi_write(s.e.ep, s.buf, len, s.desc[1], s.e.addr[1], at.addr, at.key,
					       CTX(2)));
		if (kind == 4)
			ct_done(&s.e, CTX(2));
		ct_fill(s.buf, len, kind < 4 || kind == KINDS - 1 ? OWN : OTHER + 1);
		while ((rc = one_sided_kind(&s, kind, len, s.desc[d], &at)) == -FI_EAGAIN)
			ct_progress(&s.e);
		if (!rc) {
			ct_of(&s.e, CTX(1), &c);
			rc = -c.err;
		}
		if (rc && !is_wrong(&s, d))
			ct_fail(ct, "call %d of %zu bytes with desc %d: %s", kind, len, d,
				fi_strerror((int)-rc));
		if (!rc)
			ct_verify(ct, s.buf, len, OWN, "written or read");
		ct_verify(ct, s.other, ROOM, OTHER, "memory that nobody named");
	}
	ct_sync(ct, &s.e);
	if (ct->rank) {
		ct_verify(ct, r.mem, ROOM, OWN, "written with a desc");
		ct_verify(ct, s.other, ROOM, OTHER, "memory that nobody named");
		ct_region_close(&s.e, &r);
	}
	ct_sync(ct, &s.e);
	close_scene(ct, &s);
}

/* Segments have descs of their own; and an array may be left out. */
static void segments(struct ct *ct)
{
	struct iovec iov[3];
	struct ct_comp c;
	struct scene s;
	void *mixed[3];

	open_scene(ct, &s);
	if (s.dom.info->tx_attr->iov_limit < 3 || s.dom.info->rx_attr->iov_limit < 3)
		ct_unsupported(ct, "fewer than three segments");
	for (size_t i = 0; i < 3; i++)
		iov[i] = (struct iovec){ s.buf + 1000 * i, 500 };
	for (int round = 0; round < 2; round++) {
		mixed[0] = s.desc[1];
		mixed[1] = s.wants ? s.desc[1] : s.desc[3];
		mixed[2] = s.wants ? s.desc[1] : s.desc[2];
		ct_fill(s.buf, 3000, ct->rank ? 9 : OWN);
		if (ct->rank)
			CT_POST(&s.e, fi_recvv(s.e.ep, iov, round && !s.wants ? NULL : mixed, 3,
					       FI_ADDR_UNSPEC, CTX(1)));
		ct_sync(ct, &s.e);
		if (!ct->rank)
			CT_POST(&s.e, fi_sendv(s.e.ep, iov, round && !s.wants ? NULL : mixed, 3, s.e.addr[1],
					       CTX(1)));
		ct_of(&s.e, CTX(1), &c);
		CT_EQ(ct, c.err, 0);
		for (size_t i = 0; i < 3; i++) {
			CT_TRUE(ct, ct_match(s.buf + 1000 * i, 500, OWN, 1000 * i));
			CT_TRUE(ct,
				ct_match(s.buf + 1000 * i + 500, 500, ct->rank ? 9 : OWN, 1000 * i + 500));
		}
		ct_verify(ct, s.other, ROOM, OTHER, "memory that nobody named");
	}
	close_scene(ct, &s);
}

const struct ct_case ct_desc[] = {
	{ "M24", "desc-ignored", CT_TWO(messages), .arg = 0 },
	{ "M24", "desc-local", CT_TWO(messages), .arg = FI_MR_LOCAL },
	{ "M24", "desc-one-sided", CT_TWO(one_sided), .arg = 0 },
	{ "M24", "desc-one-sided-local", CT_TWO(one_sided), .arg = FI_MR_LOCAL },
	{ "M24", "desc-segments", CT_TWO(segments), .arg = 0 },
	{ "M24", "desc-segments-local", CT_TWO(segments), .arg = FI_MR_LOCAL },
	{ 0 },
};
