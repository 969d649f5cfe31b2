/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * One-sided operations by packets, fi_rma(3): the target's half; what travels is told in rma.c. Short ones are carried out when their
 * packet comes, so these find the memory in their order.
 */
#include "engine/link/peer.h"
#include "engine/qp/qp.h"
#include "engine/rma/rma_serve.h"

#include <errno.h>
#include <string.h>

/* ---- writes ----------------------------------------------------------------------------------------------------------------- */

/* The completion of a write with immediate data. Returns what is left of `units` of the peer's credit to be given back. */
static uint32_t tell_written(struct hd_ep *ep, struct hd_peer *peer, const struct hd_pkt *pkt, uint32_t src,
			     uint64_t len, uint32_t units)
{
	const struct hd_cqe e = { .len = len,
				  .imm = pkt->imm,
				  .src = src,
				  .ep = ep->index,
				  .flags = HD_C_RMA | HD_C_REMOTE | HD_C_WRITE | HD_C_IMM |
					   (pkt->flags & HD_PKT_F_SOLICITED ? HD_C_SOLICITED : 0) };

	if (!(pkt->flags & HD_PKT_F_IMM))
		return units;
	if (ep->policy & HD_EP_IMM_RECV) {
		hd_qp_took(ep);
		return hd_deliver_written(ep, peer, &e, units);
	}
	return hd_owed_post(ep->rx_cq, &e, peer, units) ? 0 : units;
}

static void stored(struct hd_op *op, int err)
{
	const struct hd_pkt pkt = { .flags = (uint8_t)op->cqe_flags, .imm = op->imm };
	struct hd_rma_turns *run = op->extra;

	if (err)
		return;
	hd_rma_turns_count(op);
	run->units = tell_written(op->ep, op->peer, &pkt, op->src, run->done + op->len, run->units);
	hd_rma_answer(op->peer, op->remote, 0);
}

static const struct hd_op_kind stores = { .end = stored, .free = hd_rma_turns_free, .in_turn = true };

/* Programs watch the last bytes of what is written to them, so these come last. */
static void rma_target_store(const struct hd_rma_found *f, const void *from, size_t len)
{
	size_t last = len < sizeof(uint64_t) ? len : sizeof(uint64_t);

	if (hd_likely(f->pieces == 1 && last == sizeof(uint64_t))) {
		char *to = f->iov[0].iov_base;

		if (len > last)
			memcpy(to, from, len - last);
		atomic_thread_fence(memory_order_release);
		memcpy(to + len - last, (const char *)from + len - last, sizeof(uint64_t));
		return;
	}
	hd_iov_fill(f->iov, f->pieces, from, len - last);
	atomic_thread_fence(memory_order_release);
	hd_iov_fill_at(f->iov, f->pieces, len - last, (const char *)from + len - last, last);
}

static int store_later(const struct hd_rma_request *r, const struct hd_rma_found *f)
{
	struct hd_op *op = hd_rma_turns_make(r, f, &stores);

	if (!op)
		return -ENOMEM;
	op->state = HD_OP_INTAKE;
	hd_intake_begin(op, r->rest, r->rest_len);
	return 0;
}

int hd_rma_write(struct hd_link *link, const struct hd_pkt *pkt, const void *payload, size_t len)
{
	struct hd_peer *peer = link->peer;
	struct hd_rma_request r;
	struct hd_rma_found f;
	uint32_t units;
	bool whole;
	int err;

	if (hd_rma_parse(link, pkt, payload, len, &r) < 0)
		return -EPROTO;
	whole = !r.offers && r.rest_len == r.len;
	units = whole ? hd_units(len) : HD_UNITS_RMA;
	if (!hd_peer_charge(peer, units))
		return -EPROTO;
	err = hd_rma_find(&r, HD_ACCESS_REMOTE_WRITE, HD_EP_REMOTE_WRITE, &f);
	if (!err && !whole) {
		if (!store_later(&r, &f))
			return 0;
		err = ENOMEM;
	}
	if (!err) {
		rma_target_store(&f, r.rest, r.len);
		hd_rma_touched(f.ep, f.access, f.mr, f.regions);
		units = tell_written(f.ep, peer, pkt, hd_pkt_source(peer, pkt->src), r.done + r.len, units);
	}
	if (err && err != ENOMEM && f.ep)
		hd_resp_spoil(f.ep, peer, pkt, err);
	if (err && f.ep)
		hd_qp_judge(f.ep, err);
	hd_rma_answer(peer, pkt->op, err);
	hd_peer_free_units(peer, units);
	return 0;
}

bool hd_rma_may_join(struct hd_link *link, struct hd_ep *ep, const struct hd_pkt *pkt, const void *payload,
		     size_t len)
{
	struct hd_rma_found f = { .ep = ep };
	struct hd_rma_request r;

	if (pkt->flags & HD_PKT_F_IMM || hd_rma_parse(link, pkt, payload, len, &r) < 0)
		return false;
	return !r.offers && !r.rest_len && r.len &&
	       !hd_rma_find_at(&r, HD_ACCESS_REMOTE_WRITE, HD_EP_REMOTE_WRITE, &f);
}

int hd_rma_put(struct hd_link *link, const struct hd_pkt *pkt, const void *payload, size_t len)
{
	struct hd_peer *peer = link->peer;
	uint32_t units = hd_units(len);
	struct hd_rma_request r; /* as much of it as hd_rma_find() looks at */
	struct hd_rma_found f;
	int err;

	if (!len || len > HD_PUT_MAX || !hd_peer_charge(peer, units))
		return -EPROTO;
	r.link = link;
	r.pkt = pkt;
	r.count = 1;
	r.seg[0] = (struct hd_rma_seg){ .addr = pkt->tag, .len = len, .key = pkt->imm };
	err = hd_rma_find(&r, HD_ACCESS_REMOTE_WRITE, HD_EP_REMOTE_WRITE, &f);
	if (!err) {
		rma_target_store(&f, payload, len);
		hd_rma_touched(f.ep, f.access, f.mr, f.regions);
	}
	if (err && f.ep)
		hd_qp_judge(f.ep, err);
	hd_rma_answer(peer, pkt->op, err);
	hd_peer_free_units(peer, units);
	return 0;
}

/* ---- reads ------------------------------------------------------------------------------------------------------------------ */

static void served(struct hd_op *op, int err)
{
	if (!err)
		hd_rma_turns_count(op);
}

static const struct hd_op_kind serves = { .end = served, .free = hd_rma_turns_free };

/* All of it in one packet, now. */
static int serve_now(const struct hd_rma_request *r, const struct hd_rma_found *f)
{
	const struct hd_pkt pkt = { .kind = HD_PKT_DATA, .op = r->pkt->op, .src = f->ep->index };
	struct hd_link *link = r->link;
	unsigned char gathered[HD_RMA_ORDERED];

	if (!TAILQ_EMPTY(&link->peer->ctl))
		return -EAGAIN;
	if (f->pieces <= HD_IOV_MAX)
		return link->ops->sendv(link, &pkt, f->iov, f->pieces, r->len);
	hd_iov_drain(f->iov, f->pieces, gathered, r->len);
	return link->ops->send(link, &pkt, gathered, r->len);
}

/* In frames, in turn with others. A short one is of this moment, whenever it leaves. */
static int serve_later(const struct hd_rma_request *r, const struct hd_rma_found *f)
{
	struct hd_op *op = hd_rma_turns_make(r, f, &serves);

	if (!op)
		return -ENOMEM;
	op->state = HD_OP_FRAMES;
	TAILQ_INSERT_TAIL(&op->peer->framing, op, entry);
	if (r->len <= HD_RMA_ORDERED && hd_op_copy(op) < 0) {
		hd_op_done(op, ENOMEM);
		return 1; /* it has given the credit back */
	}
	hd_peer_busy(op->peer);
	return 0;
}

int hd_rma_read(struct hd_link *link, const struct hd_pkt *pkt, const void *payload, size_t len)
{
	struct hd_peer *peer = link->peer;
	struct hd_rma_request r;
	struct hd_rma_found f;
	int err, rc;

	if (hd_rma_parse(link, pkt, payload, len, &r) < 0 || r.rest_len ||
	    !hd_peer_charge(peer, HD_UNITS_RMA))
		return -EPROTO;
	err = hd_rma_find(&r, HD_ACCESS_REMOTE_READ, HD_EP_REMOTE_READ, &f);
	if (!err && r.len && (r.len > HD_RMA_ORDERED || serve_now(&r, &f) < 0)) {
		rc = serve_later(&r, &f);
		if (!rc)
			return 0;
		hd_rma_answer(peer, pkt->op, ENOMEM);
		if (rc < 0)
			hd_peer_free_units(peer, HD_UNITS_RMA);
		return 0;
	}
	if (!err)
		hd_rma_touched(f.ep, f.access, f.mr, f.regions);
	if (err && f.ep)
		hd_qp_judge(f.ep, err);
	if (err || !r.len)
		hd_rma_answer(peer, pkt->op, err);
	hd_peer_free_units(peer, HD_UNITS_RMA);
	return 0;
}

void hd_rma_taken_back(struct hd_peer *peer, uint32_t number)
{
	struct hd_op *op;

	TAILQ_FOREACH(op, &peer->ops, under)
		if (op->kind == &serves && op->remote == number) {
			hd_rma_serve_no_more(op, ECANCELED);
			return;
		}
}
