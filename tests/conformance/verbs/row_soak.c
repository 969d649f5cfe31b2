/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * SOAK: both ends do everything that RC can, at random and at once, and all of it is checked. Where
 * the environment has promised broken connections (luck.c) there must be some: what has completed
 * well is there, once and in order, what has not is an error or flushed, and after RESET the two
 * are as good as new.
 */
#include "vt.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define EPISODES 24
#define OPS 60 /* of each end in an episode */
#define SLOT (1u << 17)
#define OUTS 16 /* requests under way */
#define INS 8	/* receives posted */
#define AREAS 8
#define STOCK_SEED 99
#define RECV (1ull << 40) /* ids of receives have this bit */

/*
 * The buffer, in slots: what is sent or fetched, what is received, what the other end writes, what
 * it reads, what it counts.
 */
enum place {
	OUT = 0,
	IN = OUT + OUTS,
	AREA = IN + INS,
	STOCK = AREA + AREAS,
	COUNT = STOCK + 1,
	ALL = COUNT + 1
};

struct written {
	uint64_t seed;
	uint32_t len;
};

/* What each end tells the other at the end of an episode. */
struct told {
	uint64_t sent, accepted; /* messages: posted, and completed well */
	uint64_t adds, added;
	bool failed;
	struct written area[AREAS];
};

struct op {
	enum ibv_wr_opcode code;
	uint32_t at, len; /* at: in the other end's slot */
	uint64_t seed;
};

struct soak {
	struct ct_ep e;
	struct told mine, theirs;
	uint64_t rng, posted, ended, got, seq; /* seq: seed of the next message */
	uint64_t their_seq;		       /* seed of the next one to come */
	struct op op[OUTS];
	bool broke; /* a request has had the error, so the rest is flushed */
	unsigned failures;
};

static bool may_break(void)
{
	const char *luck = getenv("HD_LUCK");

	return luck && strstr(luck, "break=");
}

static uint64_t draw(struct soak *s, uint64_t n)
{
	uint64_t x = s->rng += UINT64_C(0x9e3779b97f4a7c15);

	x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	return (x ^ (x >> 27)) % n;
}

static char *slot(struct soak *s, unsigned n)
{
	return s->e.buf + (size_t)n * SLOT;
}

/* ---- posting --------------------------------------------------------------------------------- */

static uint32_t some_length(struct soak *s)
{
	static const uint32_t most[] = { 16, 1000, 20000, SLOT };

	return 1 + (uint32_t)draw(s, most[draw(s, CT_COUNT(most))]);
}

static void choose(struct soak *s, struct op *op)
{
	static const enum ibv_wr_opcode codes[] = { IBV_WR_SEND, IBV_WR_SEND, IBV_WR_RDMA_WRITE,
						    IBV_WR_RDMA_READ, IBV_WR_ATOMIC_FETCH_AND_ADD };

	*op = (struct op){ .code = codes[draw(s, CT_COUNT(codes))], .len = some_length(s) };
	switch (op->code) {
	case IBV_WR_SEND:
		op->seed = s->seq++;
		s->mine.sent++;
		break;
	case IBV_WR_RDMA_WRITE:
		op->at = (uint32_t)draw(s, AREAS);
		op->seed = draw(s, 1u << 30);
		s->mine.area[op->at] = (struct written){ op->seed, op->len };
		break;
	case IBV_WR_RDMA_READ:
		op->at = (uint32_t)draw(s, SLOT - op->len + 1);
		break;
	default:
		op->len = 8;
		s->mine.adds++;
	}
}

static uint64_t remote_of(struct soak *s, const struct op *op)
{
	uint64_t base = s->e.peer[!s->e.ct->rank].addr;

	switch (op->code) {
	case IBV_WR_RDMA_WRITE:
		return base + (AREA + op->at) * (uint64_t)SLOT;
	case IBV_WR_RDMA_READ:
		return base + STOCK * (uint64_t)SLOT + op->at;
	default:
		return base + COUNT * (uint64_t)SLOT;
	}
}

static void post_one(struct soak *s)
{
	unsigned i = (unsigned)(s->posted % OUTS);
	struct op *op = &s->op[i];
	struct ibv_send_wr wr;
	struct ibv_sge sge;

	choose(s, op);
	sge = vt_sge(&s->e, (OUT + i) * (size_t)SLOT, op->len);
	wr = vt_wr(&s->e, op->code, &sge, s->posted);
	if (op->code == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr.wr.atomic.remote_addr = remote_of(s, op);
		wr.wr.atomic.compare_add = 1;
	} else {
		wr.wr.rdma.remote_addr = remote_of(s, op);
		ct_fill(slot(s, OUT + i), op->len, op->seed);
	}
	vt_post(&s->e, &wr);
	s->posted++;
}

static void post_in(struct soak *s, uint64_t n)
{
	vt_recv(&s->e, (IN + n % INS) * (size_t)SLOT, SLOT, RECV | n);
}

/* ---- completions ----------------------------------------------------------------------------- */

static void received(struct soak *s, const struct ibv_wc *wc)
{
	struct ct *ct = s->e.ct;

	if (wc->status != IBV_WC_SUCCESS) {
		CT_EQ(ct, wc->status, IBV_WC_WR_FLUSH_ERR);
		s->mine.failed = true;
		return;
	}
	CT_EQ(ct, wc->wr_id, RECV | s->got);
	ct_verify(ct, slot(s, (unsigned)(IN + s->got % INS)), wc->byte_len, s->their_seq, "a message");
	s->got++;
	s->their_seq++;
	post_in(s, s->got + INS - 1);
}

static void done_well(struct soak *s, const struct op *op, const char *at)
{
	struct ct *ct = s->e.ct;
	uint64_t old;

	switch (op->code) {
	case IBV_WR_SEND:
		s->mine.accepted++;
		break;
	case IBV_WR_RDMA_READ:
		CT_TRUE(ct, ct_match(at, op->len, STOCK_SEED, op->at));
		break;
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		memcpy(&old, at, sizeof(old));
		CT_EQ(ct, old, s->mine.added);
		s->mine.added++;
		break;
	default:
		break;
	}
}

static void done(struct soak *s, const struct ibv_wc *wc)
{
	unsigned i = (unsigned)(s->ended % OUTS);
	struct ct *ct = s->e.ct;

	CT_EQ(ct, wc->wr_id, s->ended);
	s->ended++;
	if (wc->status == IBV_WC_SUCCESS)
		done_well(s, &s->op[i], slot(s, OUT + i));
	else if (!may_break() ||
		 (wc->status != IBV_WC_WR_FLUSH_ERR && (s->broke || wc->status != IBV_WC_RETRY_EXC_ERR)))
		ct_fail(ct, "request %llu, opcode %d%s: %s", (unsigned long long)wc->wr_id, s->op[i].code,
			s->broke ? ", behind a failed one" : "", ibv_wc_status_str(wc->status));
	s->broke |= wc->status != IBV_WC_SUCCESS;
	s->mine.failed |= s->broke;
}

static void take_all(struct soak *s)
{
	struct ct_ep *e = &s->e;
	struct ibv_wc wc;

	if (!ct_progress(e))
		ct_pause();
	while (e->tail > e->head) {
		vt_any(e, &wc);
		if (wc.wr_id & RECV)
			received(s, &wc);
		else
			done(s, &wc);
	}
}

/* ---- an episode ------------------------------------------------------------------------------ */

static void begin(struct soak *s)
{
	struct ct *ct = s->e.ct;

	s->mine = (struct told){ 0 };
	s->broke = false;
	s->posted = s->ended = s->got = 0;
	memset(slot(s, COUNT), 0, 8);
	for (uint64_t i = 0; i < INS; i++)
		post_in(s, i);
	ct_sync(ct, NULL);
}

static void work(struct soak *s)
{
	double end = ct_deadline(s->e.ct);
	uint64_t ops = OPS;

	while (s->ended < ops) {
		if (s->posted < ops && s->posted - s->ended < 1 + draw(s, OUTS))
			post_one(s);
		if (s->mine.failed) /* what is posted is flushed, and that is enough */
			ops = s->posted;
		take_all(s);
		ct_late(s->e.ct, end, "an episode to end");
	}
}

/* What the other end has completed well is here; and no more than it has begun. */
static void compare(struct soak *s)
{
	struct ct *ct = s->e.ct;
	double end = ct_deadline(ct);
	uint64_t count;

	ct_put(ct, !ct->rank, &s->mine, sizeof(s->mine));
	ct_get(ct, NULL, !ct->rank, &s->theirs, sizeof(s->theirs));
	while (s->got < s->theirs.accepted) {
		take_all(s);
		ct_late(ct, end, "a message that has been accepted");
	}
	memcpy(&count, slot(s, COUNT), sizeof(count));
	CT_TRUE(ct, s->got <= s->theirs.sent);
	CT_TRUE(ct, count >= s->theirs.added && count <= s->theirs.adds);
	s->their_seq += s->theirs.sent - s->got;
	if (s->theirs.failed)
		return;
	CT_EQ(ct, s->got, s->theirs.sent);
	for (unsigned i = 0; i < AREAS; i++)
		ct_verify(ct, slot(s, AREA + i), s->theirs.area[i].len, s->theirs.area[i].seed, "an area");
}

/* The other end may need receives of this one for as long as it is not here. */
static void meet(struct soak *s)
{
	struct ct *ct = s->e.ct;
	int other = !ct->rank;
	char c = 'M';

	ct_put(ct, other, &c, 1);
	while (recv(ct->chan[other], &c, 1, MSG_PEEK | MSG_DONTWAIT) < 0)
		take_all(s);
	ct_get(ct, NULL, other, &c, 1);
}

static void soak(struct ct *ct)
{
	const struct vt_want want = { .size = (size_t)ALL * SLOT };
	struct soak s = { .rng = ct->conf->seed + (uint64_t)ct->rank };

	vt_start(ct, &s.e, &want);
	ct_fill(slot(&s, STOCK), SLOT, STOCK_SEED);
	for (int i = 0; i < EPISODES; i++) {
		begin(&s);
		work(&s);
		meet(&s);
		compare(&s);
		ct_sync(ct, NULL);
		s.failures += s.mine.failed || s.theirs.failed;
		vt_to(&s.e, s.e.qp, IBV_QPS_RESET); /* whatever is left over goes with it */
		s.e.tail = s.e.head;
		ct_sync(ct, NULL);
		vt_connect(&s.e, s.e.qp, &s.e.peer[!ct->rank]);
		ct_sync(ct, NULL);
	}
	CT_TRUE(ct, may_break() ? s.failures > 0 : s.failures == 0);
	vt_finish(&s.e);
}

const struct ct_case vt_soak[] = { { "SOAK", "random", { soak, soak }, .seconds = 180 }, { NULL } };
