/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * One-sided operations by packets, fi_rma(3): the initiator's half, then the target's.
 *
 *	short write	PUT where, data      ──►  stored		◄── FIN
 *	the same, with segments or immediate data
 *			WRITE {where, data}  ──►  stored		◄── FIN
 *	long write	WRITE {where, offer} ──►  goes on as a rendezvous does, with the memory in the place of a receive
 *	read		READ {where}         ──►  ◄── DATA …		(FIN only for an error, or where there is nothing to send)
 *
 * The target checks key, range and rights of all segments before it touches a byte. While a transfer takes several turns, it holds
 * its regions, and its end is theirs. Short ones are carried out when their packet comes, so these find the memory in their order.
 */
#include "engine/memory/rma.h"
#include "engine/event/event.h"
#include "engine/message/message.h"
#include "engine/peer/peer.h"

#include "base/log.h"
#include "engine/memory/mr.h"
#include "engine/memory/reach.h"
#include "engine/message/seat.h"
#include "engine/message/sent.h"
#include "engine/pair/pair.h"

#include <errno.h>
#include <string.h>

#define PIECES (HD_RMA_SEGS * HD_MAX_IOV) /* segments of ours that a request can lead to */

/* ---- the initiator ------------------------------------------------------------------------------------------------------------ */

static size_t run_size(int count)
{
	return sizeof(struct hd_rma_run) + (size_t)count * sizeof(struct hd_rma_seg);
}

static void run_free(struct hd_op *op)
{
	struct hd_rma_run *run = op->extra;

	hd_bytes_put(&op->ep->node->bytes, run, run_size(run->count));
}

/* What begins the payload, in one piece with room for an offer. */
struct list {
	struct hd_rma head;
	struct hd_rma_seg seg[HD_RMA_SEGS];
	uint8_t offer[HD_OFFER_MAX];
};

static size_t list_size(int count)
{
	return sizeof(struct hd_rma) + (size_t)count * sizeof(struct hd_rma_seg);
}

/* Returns the bytes that it takes up without an offer. */
static size_t list_fill(struct list *list, const struct hd_rma_run *run)
{
	list->head = (struct hd_rma){ .count = (uint8_t)run->count,
				      .done_high = (uint16_t)(run->done >> 32),
				      .done = (uint32_t)run->done };
	memcpy(list->seg, run->seg, sizeof(run->seg[0]) * (size_t)run->count);
	return list_size(run->count);
}

static int start_read(struct hd_op *op, struct hd_peer *peer)
{
	struct list list;
	struct hd_pkt pkt;
	int rc;

	if (!hd_credit_take(peer, HD_UNITS_RMA))
		return -EAGAIN;
	hd_op_header(op, HD_PKT_READ, &pkt);
	pkt.tag |= op->len;
	rc = peer->link->ops->send(peer->link, &pkt, &list, list_fill(&list, hd_op_rma(op)));
	if (rc < 0) {
		peer->spent -= HD_UNITS_RMA;
		return rc;
	}
	op->want = op->len;
	op->at = 0;
	hd_op_under(op, HD_OP_INTAKE);
	return 0;
}

/*
 * One segment and no more to be said: place and key find room in the header, and data of 24 bytes in one line of the ring. (Queue
 * pairs have their own use of the upper half of imm.)
 */
static bool is_put(const struct hd_op *op)
{
	return hd_op_rma(op)->count == 1 && op->count == 1 && op->len && op->len <= HD_PUT_MAX &&
	       !(op->flags & HD_SEND_IMM) && !(op->ep->policy & HD_EP_PAIRED);
}

static int start_put(struct hd_op *op, struct hd_peer *peer)
{
	const struct hd_rma_seg *seg = hd_op_rma(op)->seg;
	uint32_t units = hd_units(op->len);
	struct hd_pkt pkt;
	int rc;

	if (!hd_credit_take(peer, units))
		return -EAGAIN;
	hd_op_header(op, HD_PKT_PUT, &pkt);
	pkt.tag = seg->addr;
	pkt.imm = seg->key;
	rc = peer->link->ops->send(peer->link, &pkt, op->iov[0].iov_base, op->len);
	if (rc < 0) {
		peer->spent -= units;
		return rc;
	}
	hd_op_under(op, HD_OP_ACK);
	return 0;
}

/* The data behind the list in one packet. */
static int start_short(struct hd_op *op, struct hd_peer *peer)
{
	const struct hd_rma_run *run = hd_op_rma(op);
	struct iovec iov[HD_IOV_MAX];
	struct list list;
	struct hd_pkt pkt;
	size_t n = list_fill(&list, run);
	uint32_t units = hd_units(n + op->len);
	int rc;

	if (op->count == HD_IOV_MAX && !op->copy && hd_op_copy(op) < 0) /* no place for the list */
		return -EAGAIN;
	if (!hd_credit_take(peer, units))
		return -EAGAIN;
	iov[0] = (struct iovec){ &list, n };
	memcpy(iov + 1, op->iov, sizeof(iov[0]) * (size_t)op->count);
	hd_op_header(op, HD_PKT_WRITE, &pkt);
	pkt.tag |= op->len;
	rc = peer->link->ops->sendv(peer->link, &pkt, iov, op->count + 1, n + op->len);
	if (rc < 0) {
		peer->spent -= units;
		return rc;
	}
	hd_op_under(op, HD_OP_ACK);
	return 0;
}

static void offer_fill(struct hd_op *op, struct hd_link *link, struct list *list, size_t *n)
{
	size_t more;

	op->offer = (struct hd_offer){ .iov = op->iov, .count = op->count, .len = op->len };
	more = link->ops->offer(link, &op->offer, list->offer);
	memmove((char *)list + *n, list->offer, more);
	list->head.offer_len = (uint8_t)more;
	*n += more;
}

static int start_long(struct hd_op *op, struct hd_peer *peer)
{
	struct hd_link *link = peer->link;
	struct list list;
	struct hd_pkt pkt;
	size_t n = list_fill(&list, hd_op_rma(op));
	int rc;

	if (op->flags & HD_SEND_INJECT && !op->copy && hd_op_copy(op) < 0)
		return -EAGAIN;
	if (!hd_credit_take(peer, HD_UNITS_RMA))
		return -EAGAIN;
	hd_op_header(op, HD_PKT_WRITE, &pkt);
	pkt.tag |= op->len;
	offer_fill(op, link, &list, &n);
	rc = link->ops->send(link, &pkt, &list, n);
	if (rc < 0) {
		peer->spent -= HD_UNITS_RMA;
		if (list.head.offer_len)
			link->ops->unoffer(link, &op->offer);
		return rc;
	}
	op->offered = list.head.offer_len > 0;
	hd_op_under(op, HD_OP_OFFERED);
	hd_op_gate(op);
	return 0;
}

/*
 * Does the data travel with the request? What hd_rma promises of order needs that for HD_RMA_ORDERED bytes, however small the limit
 * of messages is. The first window holds so much four times over: see the least value of HEDDLE_UNEXPECTED_PEER.
 */
static bool is_short(const struct hd_op *op, const struct hd_peer *peer)
{
	uint64_t limit = peer->eager_limit > HD_RMA_ORDERED ? peer->eager_limit : HD_RMA_ORDERED;

	if (op->beside && limit > peer->link->beside_min)
		limit = peer->link->beside_min;
	return op->len <= limit && op->len + sizeof(struct list) <= peer->link->send_max;
}

static int start(struct hd_op *op)
{
	struct hd_peer *peer = op->dest->peer;
	int rc = hd_reach_try(op);

	if (rc != -EOPNOTSUPP)
		return rc;
	if (hd_op_is_read(op))
		return start_read(op, peer);
	if (is_put(op))
		return start_put(op, peer);
	return is_short(op, peer) ? start_short(op, peer) : start_long(op, peer);
}

const struct hd_op_kind hd_rma_writes = { .cqe_flags = HD_C_RMA | HD_C_WRITE,
					  .start = start,
					  .free = run_free };
const struct hd_op_kind hd_rma_reads = { .cqe_flags = HD_C_RMA | HD_C_READ,
					 .start = start,
					 .free = run_free };

int hd_rma_later(struct hd_ep *ep, struct hd_dest *dest, const struct hd_rma_args *args, bool by_packet)
{
	const struct hd_send_args send = { .iov = args->iov,
					   .count = args->count,
					   .tag = args->tag,
					   .imm = args->imm,
					   .ctx = args->ctx,
					   .flags = args->flags };
	bool reads = args->op == HD_RMA_READ;
	struct hd_rma_run *run = hd_bytes_get(&ep->node->bytes, run_size(args->seg_count));
	struct hd_op *op = run ? hd_op_make(ep, dest, &send) : NULL;

	if (!op) {
		if (run)
			hd_bytes_put(&ep->node->bytes, run, run_size(args->seg_count));
		return -EAGAIN;
	}
	run->count = args->seg_count;
	run->done = 0;
	memcpy(run->seg, args->segs, sizeof(run->seg[0]) * (size_t)args->seg_count);
	op->extra = run;
	op->kind = reads ? &hd_rma_reads : &hd_rma_writes;
	op->cntr = reads ? ep->cntrs.read : ep->cntrs.write;
	op->by_packet = by_packet;
	return hd_op_post(op);
}

/* ---- the target: what is asked for ------------------------------------------------------------------------------------------------ */

/* A request, checked as far as it can be without looking at our memory. */
struct request {
	struct hd_link *link;
	const struct hd_pkt *pkt;
	uint64_t len;  /* to be transferred */
	uint64_t done; /* was before */
	int count;
	struct hd_rma_seg seg[HD_RMA_SEGS];
	const void *rest; /* payload behind the list: the offer, or all the data */
	size_t rest_len;
	bool offers;
};

/* Where it leads to. */
struct found {
	struct hd_ep *ep;
	uint32_t access;
	int pieces, regions;
	struct iovec iov[PIECES];
	struct hd_mr *mr[HD_RMA_SEGS];
};

static int parse(struct hd_link *link, const struct hd_pkt *pkt, const void *payload, size_t len,
		 struct request *r)
{
	struct hd_rma head;
	uint64_t sum = 0;
	size_t n;

	if (len < sizeof(head))
		return -EPROTO;
	memcpy(&head, payload, sizeof(head));
	n = list_size(head.count);
	if (head.count > HD_RMA_SEGS || head.offer_len > HD_OFFER_MAX || len < n)
		return -EPROTO;
	memcpy(r->seg, (const char *)payload + sizeof(head), n - sizeof(head));
	for (int i = 0; i < head.count; i++)
		if (r->seg[i].len > HD_MAX_MSG || (sum += r->seg[i].len) > HD_MAX_MSG)
			return -EPROTO;
	if (sum != pkt->tag || head.done_high >= HD_MAX_MSG >> 32)
		return -EPROTO;
	r->link = link;
	r->pkt = pkt;
	r->len = sum;
	r->done = (uint64_t)head.done_high << 32 | head.done;
	r->count = head.count;
	r->rest = (const char *)payload + n;
	r->rest_len = len - n;
	r->offers = head.offer_len > 0;
	if (r->offers)
		return head.offer_len == r->rest_len && sum ? 0 : -EPROTO;
	return !r->rest_len || r->rest_len == sum ? 0 : -EPROTO;
}

static void answer(struct hd_peer *peer, uint32_t op, int err)
{
	struct hd_pkt pkt = { .kind = HD_PKT_FIN, .op = op, .imm = (uint64_t)err };

	hd_peer_send(peer, &pkt, NULL, 0);
}

/* Find the memory of all segments at f->ep. 0, or a positive errno for the initiator. */
static int find_at(const struct request *r, uint32_t access, uint32_t policy, struct found *f)
{
	struct hd_node *node = r->link->node;

	if (!(f->ep->policy & policy))
		return EACCES;
	f->access = access;
	f->pieces = f->regions = 0;
	for (int i = 0; i < r->count; i++) {
		const struct hd_rma_seg *seg = &r->seg[i];
		const struct hd_mr_want want = { .key = seg->key,
						 .addr = seg->addr,
						 .len = seg->len,
						 .access = access,
						 .ep = f->ep,
						 .from = hd_pkt_source(r->link->peer, r->pkt->src) };
		int n, rc = hd_mr_reach(node, &want, f->iov + f->pieces, &n, &f->mr[f->regions]);

		if (rc)
			return -rc;
		f->pieces += n;
		f->regions += f->mr[f->regions] != NULL;
	}
	return 0;
}

static int find(const struct request *r, uint32_t access, uint32_t policy, struct found *f)
{
	f->ep = hd_pkt_target(r->link, r->pkt);
	return f->ep ? find_at(r, access, policy, f) : ECONNREFUSED;
}

static void count_touched(struct hd_ep *ep, uint32_t access, struct hd_mr *const *mr, int regions)
{
	ep->node->written += access == HD_ACCESS_REMOTE_WRITE;
	hd_cntr_count(access & HD_ACCESS_REMOTE_READ ? ep->cntrs.remote_read : ep->cntrs.remote_write);
	for (int i = 0; i < regions; i++)
		hd_mr_touched(mr[i], access);
}

/* ---- the target: transfers that take several turns ----------------------------------------------------------------------------------- */

struct held {
	struct hd_mr_hold hold;
	struct hd_op *op;
};

/* hd_op.extra of one that is executed here. */
struct run {
	uint32_t access, units; /* units: credit that it holds */
	int regions, pieces;
	struct iovec *more; /* pieces of them, where hd_op.iov is too short */
	uint64_t done;
	struct held held[HD_RMA_SEGS];
};

/* It sends its frames no more: what it reads from is about to go, or nobody wants them. */
static void serve_no_more(struct hd_op *op, int err)
{
	struct hd_link *link = op->peer->link;

	if (op->puts && link->ops->unput(link, &op->put) < 0)
		hd_link_down(link, -ENOMEM, "no memory for the rest of a read that was given up");
	hd_op_done(op, err);
}

static void regions_drop(struct run *run)
{
	for (int i = 0; i < run->regions; i++)
		hd_mr_drop(&run->held[i].hold);
	run->regions = 0;
}

/* A region that the transfer needs goes away. */
static void region_gone(struct hd_mr_hold *hold)
{
	struct hd_op *op = hd_container(hold, struct held, hold)->op;

	answer(op->peer, op->remote, EACCES);
	regions_drop(op->extra); /* it may have to stay for its turn */
	if (op->state == HD_OP_PULL || op->state == HD_OP_INTAKE) {
		hd_recv_op_done(op, EACCES);
		return;
	}
	serve_no_more(op, EACCES);
}

static void stored(struct hd_op *op, int err);
static void served(struct hd_op *op, int err);
static void served_free(struct hd_op *op);
static const struct hd_op_kind stores = { .end = stored, .free = served_free, .in_turn = true };
static const struct hd_op_kind serves = { .end = served, .free = served_free };

/* An operation for a request; NULL without memory. */
static struct hd_op *run_make(const struct request *r, const struct found *f, const struct hd_op_kind *kind)
{
	struct hd_node *node = r->link->node;
	struct run *run = hd_bytes_get(&node->bytes, sizeof(*run));
	size_t size = sizeof(f->iov[0]) * (size_t)f->pieces;
	struct hd_op *op = run ? hd_pool_get(&node->ops) : NULL;

	if (op) {
		memset(op, 0, offsetof(struct hd_op, iov));
		op->more = f->pieces > HD_IOV_MAX ? hd_bytes_get(&node->bytes, size) : NULL;
		if ((f->pieces > HD_IOV_MAX && !op->more) || hd_idmap_add(&node->op_ids, op, &op->id) < 0) {
			if (op->more)
				hd_bytes_put(&node->bytes, op->more, size);
			hd_pool_put(&node->ops, op);
			op = NULL;
		}
	}
	if (!op) {
		if (run)
			hd_bytes_put(&node->bytes, run, sizeof(*run));
		return NULL;
	}
	op->kind = kind;
	run->done = r->done;
	op->extra = run;
	op->ep = f->ep;
	op->peer = r->link->peer;
	op->remote = r->pkt->op;
	op->len = op->want = r->len;
	op->imm = r->pkt->imm;
	op->cqe_flags = r->pkt->flags;
	op->src = hd_pkt_source(op->peer, r->pkt->src);
	op->count = f->pieces;
	memcpy(op->more ? op->more : op->iov, f->iov, size);
	run->access = f->access;
	run->units = HD_UNITS_RMA;
	run->regions = f->regions;
	run->pieces = f->pieces;
	run->more = op->more;
	for (int i = 0; i < f->regions; i++) {
		run->held[i].op = op;
		hd_mr_hold(f->mr[i], &run->held[i].hold, region_gone);
	}
	TAILQ_INSERT_TAIL(&op->peer->ops, op, under);
	if (kind == &stores) {
		op->ep->node->storing++;
		hd_coming_begin(op);
	}
	return op;
}

static void run_count(const struct hd_op *op)
{
	const struct run *run = op->extra;
	struct hd_mr *mr[HD_RMA_SEGS];

	for (int i = 0; i < run->regions; i++)
		mr[i] = run->held[i].hold.mr;
	count_touched(op->ep, run->access, mr, run->regions);
}

static void served_free(struct hd_op *op)
{
	struct hd_bytes *bytes = &op->ep->node->bytes;
	struct run *run = op->extra;

	if (op->kind == &stores) {
		op->ep->node->storing--;
		hd_coming_end(op);
	}
	regions_drop(run);
	if (run->more)
		hd_bytes_put(bytes, run->more, sizeof(run->more[0]) * (size_t)run->pieces);
	hd_peer_free_units(op->peer, run->units);
	hd_bytes_put(bytes, run, sizeof(*run));
}

/* ---- the target: writes ------------------------------------------------------------------------------------------------------------- */

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
		hd_pair_took(ep);
		return hd_deliver_written(ep, peer, &e, units);
	}
	return hd_cq_post_from(ep->rx_cq, &e, peer, units) ? 0 : units;
}

static void stored(struct hd_op *op, int err)
{
	const struct hd_pkt pkt = { .flags = (uint8_t)op->cqe_flags, .imm = op->imm };
	struct run *run = op->extra;

	if (err)
		return;
	run_count(op);
	run->units = tell_written(op->ep, op->peer, &pkt, op->src, run->done + op->len, run->units);
	answer(op->peer, op->remote, 0);
}

/* Programs watch the last bytes of what is written to them, so these come last. */
static void store(const struct found *f, const void *from, size_t len)
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

static int store_later(const struct request *r, const struct found *f)
{
	struct hd_op *op = run_make(r, f, &stores);

	if (!op)
		return -ENOMEM;
	op->state = HD_OP_INTAKE;
	hd_intake_begin(op, r->rest, r->rest_len);
	return 0;
}

int hd_rma_write(struct hd_link *link, const struct hd_pkt *pkt, const void *payload, size_t len)
{
	struct hd_peer *peer = link->peer;
	struct request r;
	struct found f;
	uint32_t units;
	bool whole;
	int err;

	if (parse(link, pkt, payload, len, &r) < 0)
		return -EPROTO;
	whole = !r.offers && r.rest_len == r.len;
	units = whole ? hd_units(len) : HD_UNITS_RMA;
	if (!hd_peer_charge(peer, units))
		return -EPROTO;
	err = find(&r, HD_ACCESS_REMOTE_WRITE, HD_EP_REMOTE_WRITE, &f);
	if (!err && !whole) {
		if (!store_later(&r, &f))
			return 0;
		err = ENOMEM;
	}
	if (!err) {
		store(&f, r.rest, r.len);
		count_touched(f.ep, f.access, f.mr, f.regions);
		units = tell_written(f.ep, peer, pkt, hd_pkt_source(peer, pkt->src), r.done + r.len, units);
	}
	if (err && f.ep)
		hd_pair_judge(f.ep, err);
	answer(peer, pkt->op, err);
	hd_peer_free_units(peer, units);
	return 0;
}

bool hd_rma_may_join(struct hd_link *link, struct hd_ep *ep, const struct hd_pkt *pkt, const void *payload,
		     size_t len)
{
	struct found f = { .ep = ep };
	struct request r;

	if (pkt->flags & HD_PKT_F_IMM || parse(link, pkt, payload, len, &r) < 0)
		return false;
	return !r.offers && !r.rest_len && r.len &&
	       !find_at(&r, HD_ACCESS_REMOTE_WRITE, HD_EP_REMOTE_WRITE, &f);
}

int hd_rma_put(struct hd_link *link, const struct hd_pkt *pkt, const void *payload, size_t len)
{
	struct hd_peer *peer = link->peer;
	uint32_t units = hd_units(len);
	struct request r; /* as much of it as find() looks at */
	struct found f;
	int err;

	if (!len || len > HD_PUT_MAX || !hd_peer_charge(peer, units))
		return -EPROTO;
	r.link = link;
	r.pkt = pkt;
	r.count = 1;
	r.seg[0] = (struct hd_rma_seg){ .addr = pkt->tag, .len = len, .key = pkt->imm };
	err = find(&r, HD_ACCESS_REMOTE_WRITE, HD_EP_REMOTE_WRITE, &f);
	if (!err) {
		store(&f, payload, len);
		count_touched(f.ep, f.access, f.mr, f.regions);
	}
	if (err && f.ep)
		hd_pair_judge(f.ep, err);
	answer(peer, pkt->op, err);
	hd_peer_free_units(peer, units);
	return 0;
}

/* ---- the target: reads -------------------------------------------------------------------------------------------------------------- */

static void served(struct hd_op *op, int err)
{
	if (!err)
		run_count(op);
}

/* All of it in one packet, now. */
static int serve_now(const struct request *r, const struct found *f)
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
static int serve_later(const struct request *r, const struct found *f)
{
	struct hd_op *op = run_make(r, f, &serves);

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
	struct request r;
	struct found f;
	int err, rc;

	if (parse(link, pkt, payload, len, &r) < 0 || r.rest_len || !hd_peer_charge(peer, HD_UNITS_RMA))
		return -EPROTO;
	err = find(&r, HD_ACCESS_REMOTE_READ, HD_EP_REMOTE_READ, &f);
	if (!err && r.len && (r.len > HD_RMA_ORDERED || serve_now(&r, &f) < 0)) {
		rc = serve_later(&r, &f);
		if (!rc)
			return 0;
		answer(peer, pkt->op, ENOMEM);
		if (rc < 0)
			hd_peer_free_units(peer, HD_UNITS_RMA);
		return 0;
	}
	if (!err)
		count_touched(f.ep, f.access, f.mr, f.regions);
	if (err && f.ep)
		hd_pair_judge(f.ep, err);
	if (err || !r.len)
		answer(peer, pkt->op, err);
	hd_peer_free_units(peer, HD_UNITS_RMA);
	return 0;
}

/* ---- reads that are taken back ------------------------------------------------------------------------------------------------------- */

/* hd_rma_take_back: a READ of ours is given up, while its data is awaited: tell the target to send no more of it. */
void hd_rma_take_back(const struct hd_op *op)
{
	struct hd_pkt fin = { .kind = HD_PKT_FIN, .flags = HD_PKT_F_BACK, .op = op->id, .imm = ECANCELED };

	hd_peer_send(op->peer, &fin, NULL, 0);
}

/* hd_rma_taken_back: the peer has said so of its READ with this number. */
void hd_rma_taken_back(struct hd_peer *peer, uint32_t number)
{
	struct hd_op *op;

	TAILQ_FOREACH(op, &peer->ops, under)
		if (op->kind == &serves && op->remote == number) {
			serve_no_more(op, ECANCELED);
			return;
		}
}
