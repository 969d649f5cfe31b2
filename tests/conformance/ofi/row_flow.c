/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * M21: full queues say -FI_EAGAIN, lose nothing and do not lock up; manual and automatic progress.
 */
#include "ct.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FLOOD 100000
#define WINDOW 128  /* operations posted at once on either side */
#define SMALL 32    /* bytes of most messages of a flood */
#define ROOM 100000 /* bytes of the largest */

enum {
	TAGGED = 1,
	AUTO = 2,
	MIXED = 4
};

struct flow { /* one direction of a flood */
	struct ct_ep *e;
	int mode;
	size_t n; /* messages in all */
	size_t posted, done;
	char *buf; /* WINDOW slots of room bytes */
	size_t room;
	uint64_t salt;
};

/* The low bit of a context tells the direction, the others the message. */
static void *tx_ctx(size_t i)
{
	return CTX(2 * i + 2);
}
static void *rx_ctx(size_t i)
{
	return CTX(2 * i + 3);
}

static size_t flow_len(const struct flow *f, size_t i)
{
	if (!(f->mode & MIXED))
		return i % (SMALL + 1);
	return i % 101 == 100 ? ROOM : i % 23 == 22 ? 9000 : i % 7 ? SMALL : 0;
}

static void flow_init(struct flow *f, struct ct_ep *e, size_t n, int mode, uint64_t salt)
{
	*f = (struct flow){ .e = e, .mode = mode, .n = n, .salt = salt };
	f->room = mode & MIXED ? ROOM : SMALL;
	f->buf = ct_alloc(e->ct, WINDOW * f->room);
}

/* Tries to post the next send; false when the window or the provider is full. */
static bool flow_send(struct flow *f, int to)
{
	char *buf = f->buf + f->posted % WINDOW * f->room;
	size_t len = flow_len(f, f->posted);
	ssize_t rc;

	if (f->posted == f->n || f->posted - f->done == WINDOW)
		return false;
	ct_fill(buf, len, f->salt + f->posted);
	if (f->mode & TAGGED)
		rc = fi_tsend(f->e->ep, buf, len, NULL, f->e->addr[to], f->posted, tx_ctx(f->posted));
	else
		rc = fi_send(f->e->ep, buf, len, NULL, f->e->addr[to], tx_ctx(f->posted));
	if (rc == -FI_EAGAIN)
		return false;
	CT_OK(f->e->ct, rc);
	f->posted++;
	return true;
}

static bool flow_recv(struct flow *f)
{
	char *buf = f->buf + f->posted % WINDOW * f->room;
	ssize_t rc;

	if (f->posted == f->n || f->posted - f->done == WINDOW)
		return false;
	if (f->mode & TAGGED)
		rc = fi_trecv(f->e->ep, buf, f->room, NULL, FI_ADDR_UNSPEC, f->posted, 0, rx_ctx(f->posted));
	else
		rc = fi_recv(f->e->ep, buf, f->room, NULL, FI_ADDR_UNSPEC, rx_ctx(f->posted));
	if (rc == -FI_EAGAIN)
		return false;
	CT_OK(f->e->ct, rc);
	f->posted++;
	return true;
}

/* Accounts one completion of either direction; each side's operations complete in any order. */
static void flow_done(struct flow *tx, struct flow *rx, bool *seen_tx, bool *seen_rx, const struct ct_comp *c)
{
	struct flow *f = (uintptr_t)c->ctx & 1 ? rx : tx;
	bool *seen = f == tx ? seen_tx : seen_rx;
	size_t i = ((uintptr_t)c->ctx - 2) / 2;

	if (c->err)
		ct_fail(f->e->ct, "message %zu failed: %s", i, fi_strerror(c->err));
	CT_TRUE(f->e->ct, i >= f->done && i < f->posted && !seen[i % WINDOW]);
	if (f == rx) {
		CT_EQ(f->e->ct, c->len, flow_len(f, i));
		ct_verify(f->e->ct, f->buf + i % WINDOW * f->room, c->len, f->salt + i, "flood");
	}
	seen[i % WINDOW] = true;
	while (f->done < f->posted && seen[f->done % WINDOW])
		seen[f->done++ % WINDOW] = false;
}

/* Runs both directions to their ends.  lazy: microseconds that this side sleeps now and then. */
static void flow_run(struct flow *tx, struct flow *rx, int to, unsigned int lazy)
{
	bool seen_tx[WINDOW] = { false }, seen_rx[WINDOW] = { false };
	struct ct *ct = tx->e->ct;
	double end = ct_deadline(ct);
	struct ct_comp c;
	size_t events = 0;

	while (tx->done < tx->n || rx->done < rx->n) {
		bool any = false;

		while (flow_send(tx, to))
			any = true;
		while (flow_recv(rx))
			any = true;
		while (ct_poll(tx->e, &c)) {
			flow_done(tx, rx, seen_tx, seen_rx, &c);
			any = true;
			events++;
		}
		if (any)
			end = ct_deadline(ct);
		else
			ct_pause();
		if (lazy && events >= 1000) {
			usleep(lazy);
			events = 0;
		}
		ct_late(ct, end, "a flood to go on");
	}
	free(tx->buf);
	free(rx->buf);
}

static void open_flow(struct ct *ct, struct ct_dom *dom, struct ct_ep *e, int mode)
{
	struct ct_want want = {
		.msg_order = FI_ORDER_SAS,
		.progress = mode & AUTO ? FI_PROGRESS_AUTO : FI_PROGRESS_MANUAL,
	};

	ct_start(ct, dom, e, &want);
}

/* The receiver sleeps between batches; the sender never does. */
static void slow_receiver(struct ct *ct)
{
	int mode = (int)ct->cs->arg;
	struct flow tx, rx;
	struct ct_dom dom;
	struct ct_ep e;

	open_flow(ct, &dom, &e, mode);
	flow_init(&tx, &e, ct->rank ? 0 : FLOOD, mode, 0);
	flow_init(&rx, &e, ct->rank ? FLOOD : 0, mode, 0);
	flow_run(&tx, &rx, !ct->rank, ct->rank ? 3000 : 0);
	ct_finish(&e);
}

/* No receive is posted until the sender has got no further for a while, or has sent all. */
static void unexpected(struct ct *ct)
{
	int mode = (int)ct->cs->arg;
	struct flow tx, rx;
	struct ct_dom dom;
	struct ct_ep e;

	open_flow(ct, &dom, &e, mode);
	flow_init(&tx, &e, ct->rank ? 0 : FLOOD / 2, mode, 0);
	flow_init(&rx, &e, ct->rank ? FLOOD / 2 : 0, mode, 0);
	if (ct->rank)
		ct_idle(&e, 500);
	flow_run(&tx, &rx, !ct->rank, 0);
	ct_finish(&e);
}

/* Both flood each other, lengths mixed, and first nobody receives. */
static void both_flood(struct ct *ct)
{
	int mode = (int)ct->cs->arg;
	struct flow tx, rx;
	struct ct_dom dom;
	struct ct_ep e;

	open_flow(ct, &dom, &e, mode);
	flow_init(&tx, &e, FLOOD / 4, mode, (uint64_t)ct->rank << 40);
	flow_init(&rx, &e, FLOOD / 4, mode, (uint64_t)!ct->rank << 40);
	while (flow_send(&tx, !ct->rank))
		ct_progress(&e);
	ct_idle(&e, 50);
	flow_run(&tx, &rx, !ct->rank, 0);
	ct_finish(&e);
}

/* Waits for a completion while only one of the two queues is ever read. */
static void only(struct ct_ep *e, struct fid_cq *cq, void *ctx)
{
	double end = ct_deadline(e->ct);
	struct ct_comp c;

	while (!ct_read_cq(e, cq, &c)) {
		ct_late(e->ct, end, "progress by reading the other CQ");
		ct_pause();
	}
	CT_EQ(e->ct, c.err, 0);
	CT_TRUE(e->ct, c.ctx == ctx);
}

/*
 * Large messages need both sides to act. Rank 0 reads only its receive CQ while its send must move,
 * then only its transmit CQ while its receive must move.
 */
static void either_cq(struct ct *ct)
{
	struct ct_want want = { .split = true, .progress = FI_PROGRESS_MANUAL };
	size_t len = 4 << 20;
	struct ct_dom dom;
	struct ct_ep e;
	char *buf = ct_alloc(ct, len), go = 0;

	ct_start(ct, &dom, &e, &want);
	if (!ct->rank) {
		ct_recv(&e, &go, 1, CTX(1));
		CT_POST(&e, fi_send(e.ep, buf, len, NULL, e.addr[1], CTX(2)));
		only(&e, e.rxcq, CTX(1)); /* rank 1 answers once it has got it all */
		only(&e, e.txcq, CTX(2));
		ct_recv(&e, buf, len, CTX(3));
		CT_POST(&e, fi_send(e.ep, &go, 1, NULL, e.addr[1], CTX(4)));
		only(&e, e.txcq, CTX(4));
		ct_put(ct, 1, &go, 1);
		/* Rank 1 sends; its channel byte comes when its send has completed. */
		while (!ct_match(buf, len, 5, 0)) {
			struct ct_comp c;

			CT_TRUE(ct, !ct_read_cq(&e, e.txcq, &c));
			ct_pause();
		}
		only(&e, e.rxcq, CTX(3));
	} else {
		ct_recv(&e, buf, len, CTX(1));
		ct_done(&e, CTX(1));
		ct_recv(&e, &go, 1, CTX(2));
		ct_send(&e, 0, &go, 1, CTX(3));
		ct_done(&e, CTX(3));
		ct_done(&e, CTX(2));
		ct_get(ct, &e, 0, &go, 1);
		ct_fill(buf, len, 5);
		ct_send(&e, 0, buf, len, CTX(4));
		ct_done(&e, CTX(4));
	}
	free(buf);
	ct_finish(&e);
}

/*
 * With automatic progress neither side has to call in: arg 0: the receiver
 * sleeps, 1: the sender does.
 */
static void automatic(struct ct *ct)
{
	struct ct_want want = { .progress = FI_PROGRESS_AUTO };
	bool sleeper = (ct->cs->arg == 0) == (ct->rank == 1);
	size_t len = 2 << 20;
	struct ct_dom dom;
	struct ct_ep e;
	char *buf = ct_alloc(ct, len);

	ct_start(ct, &dom, &e, &want);
	ct_ping(&e, !ct->rank);
	if (ct->rank)
		ct_recv(&e, buf, len, CTX(1));
	ct_sync(ct, NULL);
	if (!ct->rank) {
		ct_fill(buf, len, 8);
		CT_POST(&e, fi_send(e.ep, buf, len, NULL, e.addr[1], CTX(1)));
	}
	/* The sleeper waits on the channel alone until the other has its completion. */
	if (sleeper)
		ct_sync(ct, NULL);
	ct_done(&e, CTX(1));
	if (ct->rank)
		ct_verify(ct, buf, len, 8, "automatic progress");
	if (!sleeper)
		ct_sync(ct, NULL);
	free(buf);
	ct_finish(&e);
}

/*
 * What is left of the queues shrinks by what is posted, and grows back; nothing
 * is told before fi_enable.
 */
static void size_left(struct ct *ct)
{
	struct ct_want want = { .disabled = true };
	struct ct_dom dom;
	struct ct_ep e;
	ssize_t rx, tx;
	char buf[8];

	ct_open(ct, &dom, &want);
	ct_ep_open(&dom, &e);
	CT_REFUSED(ct, e.ep->ops->rx_size_left(e.ep));
	CT_REFUSED(ct, e.ep->ops->tx_size_left(e.ep));
	ct_ep_enable(&e);
	rx = e.ep->ops->rx_size_left(e.ep);
	tx = e.ep->ops->tx_size_left(e.ep);
	if (rx == -FI_ENOSYS)
		ct_unsupported(ct, "fi_rx_size_left: %s", fi_strerror(FI_ENOSYS));
	CT_TRUE(ct, rx > 1 && tx > 1);
	ct_recv(&e, buf, sizeof(buf), CTX(1));
	ct_trecv(&e, buf, sizeof(buf), 1, 0, CTX(2));
	CT_EQ(ct, e.ep->ops->rx_size_left(e.ep), rx - 2);
	CT_OK(ct, fi_cancel(&e.ep->fid, CTX(1)));
	CT_EQ(ct, e.ep->ops->rx_size_left(e.ep), rx - 1);
	ct_ep_close(&e);
	ct_close(&dom);
}

const struct ct_case ct_flow[] = {
	{ "M21", "slow-receiver", CT_TWO(slow_receiver), .seconds = 150, .arg = 0 },
	{ "M21", "slow-receiver-tagged", CT_TWO(slow_receiver), .seconds = 150, .arg = TAGGED, .slow = true },
	{ "M21", "slow-receiver-auto", CT_TWO(slow_receiver), .seconds = 150, .arg = TAGGED | AUTO,
	  .slow = true },
	{ "M21", "unexpected", CT_TWO(unexpected), .seconds = 120, .arg = 0 },
	{ "M21", "unexpected-tagged", CT_TWO(unexpected), .seconds = 120, .arg = TAGGED, .slow = true },
	{ "M21", "unexpected-auto", CT_TWO(unexpected), .seconds = 120, .arg = AUTO, .slow = true },
	{ "M21", "both-flood", CT_TWO(both_flood), .seconds = 150, .arg = MIXED },
	{ "M21", "both-flood-tagged", CT_TWO(both_flood), .seconds = 150, .arg = MIXED | TAGGED,
	  .slow = true },
	{ "M21", "both-flood-auto", CT_TWO(both_flood), .seconds = 150, .arg = MIXED | AUTO, .slow = true },
	{ "M21", "size-left", { size_left } },
	{ "M21", "either-cq", CT_TWO(either_cq) },
	{ "M21", "auto-receiver", CT_TWO(automatic), .arg = 0 },
	{ "M21", "auto-sender", CT_TWO(automatic), .arg = 1 },
	{ 0 }
};
