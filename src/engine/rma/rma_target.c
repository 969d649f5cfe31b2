/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * One-sided operations by packets, fi_rma(3): the target's half; what travels is told in rma.c.
 * Short ones are carried out when their packet comes, so these find the memory in their order.
 */
#include "engine/link/link.h"
#include "engine/rma/response.h"

#include <errno.h>
#include <string.h>

/* ---- writes ---------------------------------------------------------------------------------- */

/*
 * The completion of a write with immediate data of len bytes. Returns what is left of the arrival's
 * credit to be given back.
 */
static uint32_t tell_written(const struct hd_rma_server *server, const struct hd_arrival *a, uint64_t len)
{
	const struct hd_cqe e = { .len = len,
				  .imm = a->pkt->imm,
				  .src = a->src,
				  .ep = a->ep->index,
				  .flags = HD_C_RMA | HD_C_REMOTE | HD_C_WRITE | HD_C_IMM |
					   (a->pkt->flags & HD_PKT_F_SOLICITED ? HD_C_SOLICITED : 0) };

	if (!(a->pkt->flags & HD_PKT_F_IMM))
		return a->units;
	if (a->ep->policy & HD_EP_IMM_RECV)
		return server->written(a->ep, a->peer, &e, a->units);
	return hd_owed_post(a->ep->rx_cq, &e, a->peer, a->units) ? 0 : a->units;
}

/* The memory that it led to is gone, and its initiator has been told. */
static void tell_memory_gone(const struct hd_response *r, enum hd_status status)
{
	if (status == HD_S_PROTECTION && r->server->offended)
		r->server->offended(r->t.ep, HD_S_ACCESS);
}

static void stored(struct hd_transfer *t, enum hd_status status)
{
	struct hd_response *r = hd_response_of(t);
	const struct hd_pkt pkt = { .flags = r->flags, .imm = r->imm };
	const struct hd_arrival a = {
		.peer = t->pending.peer, .ep = t->ep, .pkt = &pkt, .units = r->units, .src = r->src
	};

	if (!status) {
		hd_response_count(r);
		r->units = tell_written(r->server, &a, r->done + t->len);
		hd_answer_op(a.peer, HD_PKT_FIN, t->remote, 0);
	}
	tell_memory_gone(r, status);
	hd_response_free(r);
}

static bool store_turn(struct hd_transfer *t, enum hd_status *status)
{
	const struct hd_rma_server *server = hd_response_of(t)->server;

	return !server->turn || server->turn(t, status);
}

static const struct hd_transfer_owner stores = {
	.done = stored,
	.dropped = hd_response_dropped,
	.turn = store_turn,
	.refusal = HD_S_ACCESS,
};

bool hd_rma_tells(struct hd_transfer *t)
{
	return t->owner == &stores && hd_response_of(t)->flags & HD_PKT_F_IMM;
}

/*
 * Programs watch the last bytes of what is written to them, so these come last. 0, or HD_S_ACCESS:
 * some of the memory is gone.
 */
static int rma_target_store(const struct hd_rma_found *f, const void *from, size_t len)
{
	size_t last = len < sizeof(uint64_t) ? len : sizeof(uint64_t);

	if (hd_likely(f->pieces == 1 && last == sizeof(uint64_t))) {
		char *to = f->iov[0].iov_base;

		uint64_t word;

		if (len > last && hd_unlikely(hd_copy(to, from, len - last)))
			return HD_S_ACCESS;
		atomic_thread_fence(memory_order_release);
		memcpy(&word, (const char *)from + len - last, sizeof(word));
		return hd_likely(hd_guard_store64(to + len - last, word)) ? 0 : HD_S_ACCESS;
	}
	if (hd_iov_fill(f->iov, f->pieces, from, len - last))
		return HD_S_ACCESS;
	atomic_thread_fence(memory_order_release);
	if (hd_iov_fill_at(f->iov, f->pieces, len - last, (const char *)from + len - last, last))
		return HD_S_ACCESS;
	return 0;
}

static int store_later(const struct hd_rma_request *r, const struct hd_rma_found *f)
{
	struct hd_response *write = hd_response_make(r, f, &stores);

	if (!write)
		return -ENOMEM;
	hd_intake_begin(&write->t, r->a->peer, r->rest, r->rest_len);
	return 0;
}

/* It has been carried out: what is left of its credit goes back. */
static void rma_target_done(const struct hd_arrival *a, uint32_t units)
{
	hd_answer_op(a->peer, HD_PKT_FIN, a->pkt->op, 0);
	hd_peer_free_units(a->peer, units);
}

static int rma_target_write(const struct hd_arrival *a, const struct hd_rma_server *server)
{
	struct hd_rma_request r;
	struct hd_rma_found f;
	int err;

	if (hd_rma_parse(a, &r) < 0)
		return -EPROTO;
	r.server = server;
	err = hd_rma_find(&r, HD_ACCESS_REMOTE_WRITE, HD_EP_REMOTE_WRITE, &f);
	if (err)
		return err;
	if (r.offers || r.rest_len != r.len)
		return store_later(&r, &f) < 0 ? HD_S_NO_MEMORY : 0;
	err = rma_target_store(&f, r.rest, r.len);
	if (hd_unlikely(err))
		return err;
	hd_rma_touched(a->ep, &f);
	rma_target_done(a, tell_written(server, a, r.done + r.len));
	return 0;
}

bool hd_rma_may_join(const struct hd_arrival *a)
{
	struct hd_rma_found f;
	struct hd_rma_request r;

	if (a->pkt->flags & HD_PKT_F_IMM || hd_rma_parse(a, &r) < 0)
		return false;
	return !r.offers && !r.rest_len && r.len &&
	       !hd_rma_find(&r, HD_ACCESS_REMOTE_WRITE, HD_EP_REMOTE_WRITE, &f);
}

static int rma_target_put(const struct hd_arrival *a)
{
	struct hd_rma_request r; /* as much of it as hd_rma_find() looks at */
	struct hd_rma_found f;
	int err;

	if (!a->len || a->len > HD_PUT_MAX)
		return -EPROTO;
	r.a = a;
	r.count = 1;
	r.seg = &(struct hd_rma_seg){ .addr = a->pkt->tag, .len = a->len, .key = a->pkt->imm };
	err = hd_rma_find(&r, HD_ACCESS_REMOTE_WRITE, HD_EP_REMOTE_WRITE, &f);
	if (err)
		return err;
	err = rma_target_store(&f, a->payload, a->len);
	if (hd_unlikely(err))
		return err;
	hd_rma_touched(a->ep, &f);
	rma_target_done(a, a->units);
	return 0;
}

/* ---- reads ----------------------------------------------------------------------------------- */

static void served(struct hd_transfer *t, enum hd_status status)
{
	struct hd_response *r = hd_response_of(t);

	if (!status)
		hd_response_count(r);
	tell_memory_gone(r, status);
	hd_response_free(r);
}

static const struct hd_transfer_owner serves = { .done = served,
						 .dropped = hd_response_dropped,
						 .refusal = HD_S_ACCESS };

/* All of it in one packet, now. */
static int serve_now(const struct hd_rma_request *r, const struct hd_rma_found *f)
{
	const struct hd_pkt pkt = { .kind = HD_PKT_DATA, .op = r->a->pkt->op, .src = r->a->ep->index };
	struct hd_link *link = r->a->peer->link;
	unsigned char gathered[HD_RMA_ORDERED];
	int rc;

	if (!TAILQ_EMPTY(&link->peer->ctl))
		return -EAGAIN;
	if (f->pieces <= HD_IOV_MAX)
		rc = hd_link_sendv(link, &pkt, f->iov, f->pieces, r->len);
	else if (hd_iov_drain(f->iov, f->pieces, gathered, r->len))
		rc = -EFAULT;
	else
		rc = hd_link_send(link, &pkt, gathered, r->len);
	if (rc >= 0)
		hd_traffic_more_out(&link->peer->traffic, r->len);
	return rc;
}

/*
 * In frames, in turn with others. A short one is of this moment, whenever it leaves. 0, or a
 * status for the initiator.
 */
static int serve_later(const struct hd_rma_request *r, const struct hd_rma_found *f)
{
	struct hd_response *read = hd_response_make(r, f, &serves);
	int rc;

	if (!read)
		return HD_S_NO_MEMORY;
	rc = r->len <= HD_RMA_ORDERED ? hd_response_copy(read) : 0;
	if (!rc)
		rc = hd_of_peer_enter(r->a->peer, HD_OF_PEER_READ, read->t.remote, &read->of_peer);
	if (rc < 0) {
		read->units = 0; /* the answer gives it back */
		hd_response_free(read);
		return rc == -EFAULT ? HD_S_ACCESS : HD_S_NO_MEMORY;
	}
	hd_transfer_set_unanswered(&read->t);
	hd_frames_begin(&read->t, r->a->peer);
	return 0;
}

static int rma_target_read(const struct hd_arrival *a, const struct hd_rma_server *server)
{
	struct hd_rma_request r;
	struct hd_rma_found f;
	int err, rc;

	if (hd_rma_parse(a, &r) < 0 || r.rest_len)
		return -EPROTO;
	r.server = server;
	err = hd_rma_find(&r, HD_ACCESS_REMOTE_READ, HD_EP_REMOTE_READ, &f);
	if (err)
		return err;
	rc = r.len > HD_RMA_ORDERED ? -EAGAIN : 0;
	if (r.len && !rc)
		rc = serve_now(&r, &f);
	if (rc < 0)
		return hd_unlikely(rc == -EFAULT) ? HD_S_ACCESS : serve_later(&r, &f);
	hd_rma_touched(a->ep, &f);
	if (!r.len)
		hd_answer_op(a->peer, HD_PKT_FIN, a->pkt->op, 0);
	hd_peer_free_units(a->peer, a->units);
	return 0;
}

void hd_rma_taken_back(struct hd_peer *peer, uint32_t number)
{
	struct hd_of_peer *of = hd_of_peer_first(peer, HD_OF_PEER_READ, number);

	if (of)
		hd_transfer_end(&hd_container(of, struct hd_response, of_peer)->t, HD_S_CANCELLED);
}

/* ---- flushes --------------------------------------------------------------------------------- */

/*
 * What was written before is in memory by now, as all requests are carried out in order; a
 * peer that writes by itself has ended that before it asks. So only the rights are left to be
 * looked at, as Linux' rxe does.
 */
static int rma_target_flush(const struct hd_arrival *a)
{
	uint32_t how = (uint32_t)a->pkt->imm;
	struct hd_rma_request r;
	int err = 0;

	if (hd_rma_parse(a, &r) < 0 || r.rest_len)
		return -EPROTO;
	if (!(a->ep->policy & (how & HD_FLUSH_GLOBAL ? HD_EP_REMOTE_FLUSH : HD_EP_PAIRED)))
		return HD_S_INVALID;
	if (how & HD_FLUSH_PERSISTENT)
		return HD_S_ACCESS;
	for (int i = 0; i < r.count && !err; i++)
		err = hd_mr_flushable(
			a->ep->node,
			&(struct hd_mr_want){ .key = r.seg[i].key,
					      .addr = r.seg[i].addr,
					      .len = how & HD_FLUSH_REGION ? 0 : r.seg[i].len,
					      .access = how & HD_FLUSH_GLOBAL ? HD_ACCESS_REMOTE_FLUSH : 0,
					      .ep = a->ep,
					      .from = a->src });
	if (err)
		return hd_status_of(err);
	atomic_thread_fence(memory_order_seq_cst);
	rma_target_done(a, a->units);
	return 0;
}

/* ---- all of them ----------------------------------------------------------------------------- */

int hd_rma_request(const struct hd_arrival *a, const struct hd_rma_server *server)
{
	switch (a->pkt->kind) {
	case HD_PKT_WRITE:
		return rma_target_write(a, server);
	case HD_PKT_PUT:
		return rma_target_put(a);
	case HD_PKT_READ:
		return rma_target_read(a, server);
	case HD_PKT_FLUSH:
		return rma_target_flush(a);
	default:
		return hd_atomic_carry_out(a);
	}
}
