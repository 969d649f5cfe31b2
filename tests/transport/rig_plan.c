/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* Traffic: what an end sends, and how the other end knows that it is right. */
#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "transport/rig.h"

#define OFFERS_MAX 12 /* messages on offer at one time */
#define PUTS_MAX 8

/* ---- content ---- */

uint64_t rig_mix(uint64_t x)
{
	x += UINT64_C(0x9e3779b97f4a7c15);
	x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
	return x ^ (x >> 31);
}

uint64_t rig_draw(uint64_t *random)
{
	return rig_mix((*random)++);
}

uint64_t rig_between(uint64_t *random, uint64_t least, uint64_t most)
{
	return least + rig_draw(random) % (most - least + 1);
}

static uint64_t content_word(uint64_t index, uint64_t seed)
{
	return htole64(seed + index * UINT64_C(0x9e3779b97f4a7c15));
}

static unsigned char content_byte(uint64_t at, uint64_t seed)
{
	uint64_t word = content_word(at / 8, seed);

	return ((unsigned char *)&word)[at % 8];
}

void rig_fill(void *buf, uint64_t at, size_t n, uint64_t seed)
{
	unsigned char *p = buf;

	for (; n && at % 8; at++, n--)
		*p++ = content_byte(at, seed);
	for (; n >= 8; at += 8, n -= 8, p += 8) {
		uint64_t word = content_word(at / 8, seed);

		memcpy(p, &word, 8);
	}
	for (; n; at++, n--)
		*p++ = content_byte(at, seed);
}

bool rig_same(const void *buf, uint64_t at, size_t n, uint64_t seed)
{
	const unsigned char *p = buf;

	for (; n && at % 8; at++, n--)
		if (*p++ != content_byte(at, seed))
			return false;
	for (; n >= 8; at += 8, n -= 8, p += 8) {
		uint64_t word = content_word(at / 8, seed);

		if (memcmp(p, &word, 8))
			return false;
	}
	for (; n; at++, n--)
		if (*p++ != content_byte(at, seed))
			return false;
	return true;
}

int rig_segments(uint64_t *random, void *buf, size_t n, struct iovec *iov, int max)
{
	int count = (int)rig_between(random, 1, (uint64_t)max);
	char *at = buf;

	for (int i = 0; i < count; i++) {
		size_t part = i == count - 1 ? n : rig_between(random, 0, n);

		if (part > 64 && rig_draw(random) % 2)
			part = rig_between(random, 1, 64);
		if (i == count - 1)
			part = n;
		iov[i] = (struct iovec){ at, part };
		at += part;
		n -= part;
	}
	return count;
}

/* ---- headers ---- */

static uint64_t checksum(const struct hd_pkt *pkt, size_t len)
{
	return rig_mix(pkt->tag ^ rig_mix(pkt->imm ^ rig_mix(len ^ (uint64_t)pkt->op << 32 ^
							     (uint64_t)pkt->kind << 24)));
}

static void seal(struct hd_pkt *pkt, size_t len)
{
	uint64_t sum = checksum(pkt, len);

	pkt->src = (uint32_t)sum;
	pkt->gen = (uint16_t)(sum >> 32);
	pkt->flags = (uint8_t)(sum >> 48);
	pkt->dst = (uint32_t)rig_mix(sum);
}

static bool sealed(const struct hd_pkt *pkt, size_t len)
{
	struct hd_pkt again = *pkt;

	seal(&again, len);
	return !memcmp(&again, pkt, sizeof(again));
}

/* ---- sending ---- */

struct rig_put {
	struct hd_put put; /* first */
	struct rig_end *end;
	size_t len;
	uint64_t seed;
	TAILQ_ENTRY(rig_put) entry;
	unsigned char buf[];
};

struct rig_offer {
	struct hd_offer offer; /* first */
	uint32_t id;
	struct iovec iov[HD_IOV_MAX];
	TAILQ_ENTRY(rig_offer) entry;
	unsigned char *buf;
};

struct rig_get {
	struct hd_get get; /* first */
	struct rig_end *end;
	uint32_t id;
	uint64_t seed;
	int patience; /* turns until it is given up; below 0: for ever */
	struct iovec iov[HD_IOV_MAX];
	TAILQ_ENTRY(rig_get) entry;
	unsigned char *buf;
};

struct rig_fin {
	uint32_t id;
	int err;
	TAILQ_ENTRY(rig_fin) entry;
};

static void *must(void *p)
{
	if (!p)
		abort();
	return p;
}

/* 0; -EAGAIN; or negative after a complaint. */
static int judge(struct rig_end *end, int rc, const char *call)
{
	if (rc == -EAGAIN) {
		end->again++;
		end->node->stuck = true;
	} else if (rc == -ENOTCONN && end->link->down)
		return rc;
	else if (rc < 0)
		rig_complain(end->node, "%s answered %d", call, rc);
	else
		end->tx++;
	return rc;
}

static int send_buf(struct rig_end *end, struct hd_pkt *pkt, const void *buf, size_t len)
{
	int rc;

	pkt->tag = end->tx;
	seal(pkt, len);
	end->node->in_send = true;
	rc = end->link->ops->send(end->link, pkt, buf, len);
	end->node->in_send = false;
	return judge(end, rc, "send");
}

static int send_hello(struct rig_end *end)
{
	unsigned char hello[sizeof(struct hd_hello)];
	struct hd_pkt pkt = { .kind = HD_PKT_HELLO, .imm = end->serial };

	rig_fill(hello, 0, sizeof(hello), pkt.imm);
	return send_buf(end, &pkt, hello, sizeof(hello));
}

static size_t draw_len(struct rig_end *end, uint32_t limit)
{
	uint32_t most = end->plan.most < limit ? end->plan.most : limit;
	uint32_t least = end->plan.least < most ? end->plan.least : most;

	/* half of them small, so that all the ways that small packets take are used as well */
	if (least < 256 && rig_draw(&end->random) % 2)
		most = most < 256 ? most : 256;
	return rig_between(&end->random, least, most);
}

/* The payload is damaged after the call: it must have been copied. */
static int send_copied(struct rig_end *end, bool in_segments)
{
	size_t len = draw_len(end, end->link->send_max);
	unsigned char *buf = must(malloc(len + 1));
	struct hd_pkt pkt = { .kind = HD_PKT_EAGER, .imm = rig_draw(&end->random), .tag = end->tx };
	struct iovec iov[HD_IOV_MAX];
	int rc, count;

	pkt.op = (uint32_t)pkt.imm;
	rig_fill(buf, 0, len, pkt.imm);
	if (in_segments) {
		count = rig_segments(&end->random, buf, len, iov, HD_IOV_MAX);
		seal(&pkt, len);
		end->node->in_send = true;
		rc = judge(end, end->link->ops->sendv(end->link, &pkt, iov, count, len), "sendv");
		end->node->in_send = false;
	} else {
		rc = send_buf(end, &pkt, buf, len);
	}
	memset(buf, 0xee, len);
	free(buf);
	return rc;
}

static void put_done(struct hd_put *put)
{
	struct rig_put *p = (struct rig_put *)put;
	struct rig_end *end = p->end;

	if (end->link->down)
		rig_complain(end->node, "a put was done after its link was down");
	if (!rig_same(p->buf, 0, p->len, p->seed))
		rig_complain(end->node, "the payload of a put was changed");
	end->puts--;
	TAILQ_REMOVE(&end->put_list, p, entry);
	memset(p->buf, 0xdd, p->len);
	free(p);
}

static int send_put(struct rig_end *end)
{
	size_t len = draw_len(end, HD_FRAME_MAX);
	struct hd_pkt pkt = { .kind = HD_PKT_DATA, .imm = rig_draw(&end->random), .tag = end->tx };
	struct iovec iov[HD_IOV_MAX];
	struct rig_put *p;
	int rc, count;

	if (end->puts >= PUTS_MAX)
		return -EAGAIN;
	p = must(malloc(sizeof(*p) + len));
	p->put = (struct hd_put){ .done = put_done, .link = end->link };
	p->end = end;
	p->len = len;
	p->seed = pkt.imm;
	rig_fill(p->buf, 0, len, pkt.imm);
	count = rig_segments(&end->random, p->buf, len, iov, HD_IOV_MAX);
	seal(&pkt, len);
	end->puts++;
	TAILQ_INSERT_TAIL(&end->put_list, p, entry);
	end->node->in_send = true;
	rc = judge(end, end->link->ops->put(end->link, &pkt, iov, count, len, &p->put), "put");
	end->node->in_send = false;
	if (rc == 0)
		return 0;
	end->puts--;
	TAILQ_REMOVE(&end->put_list, p, entry);
	memset(p->buf, 0xdd, len);
	free(p);
	return rc == 1 ? 0 : rc;
}

/* Half of what is under way is taken back, and what was its memory is damaged. */
static void unput_some(struct rig_end *end)
{
	struct rig_put *p, *next;
	int rc;

	for (p = TAILQ_FIRST(&end->put_list); p; p = next) {
		next = TAILQ_NEXT(p, entry);
		if (rig_draw(&end->random) % 2)
			continue;
		rc = end->link->ops->unput(end->link, &p->put);
		if (rc)
			rig_complain(end->node, "unput answered %d", rc);
		end->unput++;
		end->puts--;
		TAILQ_REMOVE(&end->put_list, p, entry);
		memset(p->buf, 0xbb, p->len);
		free(p);
	}
}

static void offer_end(struct rig_end *end, struct rig_offer *o)
{
	end->link->ops->unoffer(end->link, &o->offer);
	TAILQ_REMOVE(&end->offer_list, o, entry);
	end->offers--;
	free(o->buf);
	free(o);
}

/* Where the link cannot fetch, an ordinary packet stands in, so that the plan goes on. */
static int send_offer(struct rig_end *end)
{
	struct hd_pkt pkt = { .kind = HD_PKT_RTS, .imm = rig_draw(&end->random) };
	size_t len = rig_between(&end->random, 1, end->plan.message_most), blob;
	struct hd_rts rts = { .len = len };
	struct rig_offer *o;
	int rc;

	if (end->offers >= OFFERS_MAX)
		return -EAGAIN;
	o = must(calloc(1, sizeof(*o)));
	o->id = pkt.op = (uint32_t)end->tx;
	o->buf = must(malloc(len));
	rig_fill(o->buf, 0, len, pkt.imm);
	o->offer.iov = o->iov;
	o->offer.count = rig_segments(&end->random, o->buf, len, o->iov, HD_IOV_MAX);
	o->offer.len = len;
	blob = end->link->ops->offer(end->link, &o->offer, rts.offer);
	if (!blob || blob > HD_OFFER_MAX) {
		if (blob)
			rig_complain(end->node, "offer wrote %zu bytes", blob);
		end->not_offered++;
		free(o->buf);
		free(o);
		return send_copied(end, true);
	}
	TAILQ_INSERT_TAIL(&end->offer_list, o, entry);
	end->offers++;
	rc = send_buf(end, &pkt, &rts, offsetof(struct hd_rts, offer) + blob);
	if (rc)
		offer_end(end, o);
	return rc;
}

static unsigned draw_how(struct rig_end *end)
{
	unsigned how = end->plan.how & (RIG_SEND | RIG_SENDV | RIG_PUT | RIG_RTS), pick;

	do {
		pick = 1u << (rig_draw(&end->random) % 4);
	} while (!(how & pick));
	return pick;
}

static int send_one(struct rig_end *end)
{
	switch (draw_how(end)) {
	case RIG_SEND:
		return send_copied(end, false);
	case RIG_SENDV:
		return send_copied(end, true);
	case RIG_PUT:
		return send_put(end);
	default:
		return send_offer(end);
	}
}

static int send_fins(struct rig_end *end)
{
	struct rig_fin *fin;

	while ((fin = TAILQ_FIRST(&end->fin_list))) {
		struct hd_pkt pkt = { .kind = HD_PKT_FIN, .op = fin->id, .imm = (uint64_t)-fin->err };
		int rc = send_buf(end, &pkt, NULL, 0);

		if (rc)
			return rc;
		TAILQ_REMOVE(&end->fin_list, fin, entry);
		free(fin);
	}
	return 0;
}

/* ---- getting ---- */

static void get_end(struct rig_get *p, int err)
{
	struct rig_end *end = p->end;
	struct rig_fin *fin = must(malloc(sizeof(*fin)));

	fin->id = p->id;
	fin->err = err;
	TAILQ_INSERT_TAIL(&end->fin_list, fin, entry);
	TAILQ_REMOVE(&end->get_list, p, entry);
	end->gets--;
	free(p->buf);
	free(p);
}

static void get_done(struct hd_get *get, int err)
{
	struct rig_get *p = (struct rig_get *)get;
	struct rig_end *end = p->end;

	if (err && !end->plan.may_fail)
		rig_complain(end->node, "a get of %llu bytes ended with %d", (unsigned long long)get->len,
			     err);
	else if (err)
		;
	else if (!rig_same(p->buf, 0, get->len, p->seed))
		rig_complain(end->node, "a get of %llu bytes brought something else",
			     (unsigned long long)get->len);
	else
		end->fetched++;
	if (end->link->down)
		rig_complain(end->node, "a get was done after its link was down");
	get_end(p, err);
}

static int start_get(struct rig_end *end, const struct hd_pkt *pkt, const struct hd_rts *rts,
		     size_t offer_len)
{
	struct rig_get *p = must(calloc(1, sizeof(*p)));
	struct hd_get *get = &p->get;
	int rc;

	p->end = end;
	p->id = pkt->op;
	p->seed = pkt->imm;
	p->patience = -1;
	if (end->plan.how & RIG_UNGET && rig_draw(&end->random) % 3 == 0)
		p->patience = (int)rig_between(&end->random, 0, 4);
	get->len = rts->len;
	if (end->plan.truncates && rig_draw(&end->random) % 3 == 0)
		get->len = rig_between(&end->random, 1, rts->len);
	p->buf = must(malloc(get->len));
	get->iov = p->iov;
	get->count = rig_segments(&end->random, p->buf, get->len, p->iov, HD_IOV_MAX);
	get->offer = rts->offer;
	get->offer_len = offer_len;
	get->done = get_done;
	TAILQ_INSERT_TAIL(&end->get_list, p, entry);
	end->gets++;
	rc = end->link->ops->get(end->link, get);
	if (rc) {
		if (!end->plan.may_fail || rc > 0)
			rig_complain(end->node, "get answered %d", rc);
		get_end(p, rc);
	}
	return 0;
}

static void lose_patience(struct rig_end *end)
{
	struct rig_get *p, *next;

	for (p = TAILQ_FIRST(&end->get_list); p; p = next) {
		next = TAILQ_NEXT(p, entry);
		if (p->patience < 0 || p->patience--)
			continue;
		end->link->ops->unget(end->link, &p->get, true);
		memset(p->buf, 0xcc, p->get.len);
		end->unget++;
		get_end(p, -ECANCELED);
	}
}

/* ---- receiving ---- */

static int bad(struct rig_end *end, const struct hd_pkt *pkt, size_t len, const char *what)
{
	rig_complain(end->node, "packet %llu (kind %u, %zu bytes): %s", (unsigned long long)end->rx,
		     pkt->kind, len, what);
	return -EPROTO;
}

static int receive_fin(struct rig_end *end, const struct hd_pkt *pkt)
{
	struct rig_offer *o;

	TAILQ_FOREACH(o, &end->offer_list, entry)
		if (o->id == pkt->op) {
			offer_end(end, o);
			return 0;
		}
	return bad(end, pkt, 0, "an offer that there is not");
}

static int receive_rts(struct rig_end *end, const struct hd_pkt *pkt, const void *payload, size_t len)
{
	struct hd_rts rts;

	if (len <= offsetof(struct hd_rts, offer) || len > sizeof(rts))
		return bad(end, pkt, len, "length");
	memcpy(&rts, payload, len);
	return start_get(end, pkt, &rts, len - offsetof(struct hd_rts, offer));
}

int rig_receive(struct rig_end *end, const struct hd_pkt *pkt, const void *payload, size_t have, size_t len)
{
	if (pkt->tag != end->rx)
		return bad(end, pkt, len, "out of order, lost or repeated");
	if (!sealed(pkt, len))
		return bad(end, pkt, len, "the header or the length has changed");
	end->rx++;
	end->rx_bytes += len;
	end->grant_out += end->grant_step;
	if (end->plan.how & RIG_ECHO && pkt->kind == HD_PKT_EAGER)
		end->plan.packets++;
	if (pkt->kind == HD_PKT_FIN)
		return receive_fin(end, pkt);
	if (pkt->kind == HD_PKT_RTS)
		return receive_rts(end, pkt, payload, len);
	if (have && !rig_same(payload, 0, have, pkt->imm))
		return bad(end, pkt, len, "the payload has changed");
	return 0;
}

/* ---- a turn ---- */

static int exchange_grants(struct rig_end *end)
{
	uint32_t now = end->link->ops->granted(end->link);
	int news = now != end->grant_in;

	if ((int32_t)(now - end->grant_in) < 0)
		rig_complain(end->node, "granted fell from %u to %u", end->grant_in, now);
	end->grant_in = now;
	if (end->grant_out == end->grant_sent)
		return news;
	end->grant_sent = end->grant_out;
	end->link->ops->grant(end->link, end->grant_out);
	return 1;
}

static bool usable(const struct rig_end *end)
{
	return end->link && !end->link->down;
}

int rig_pump(struct rig_end *end)
{
	int grants = 0;
	uint64_t before = end->tx, burst = end->plan.burst ? end->plan.burst : UINT64_MAX;

	lose_patience(end);
	if (!end->tx && send_hello(end))
		return 0;
	if (send_fins(end))
		return (int)(end->tx - before);
	while (usable(end) && end->plan.packets && burst-- && !send_one(end))
		end->plan.packets--;
	if (end->plan.how & RIG_UNPUT && usable(end) && rig_draw(&end->random) % 4 == 0)
		unput_some(end);
	if (usable(end))
		grants = exchange_grants(end);
	return (int)(end->tx - before) + grants;
}

bool rig_end_idle(const struct rig_end *end)
{
	return end->tx && !end->plan.packets && !end->puts && !end->offers && !end->gets &&
	       TAILQ_EMPTY(&end->fin_list) && end->grant_out == end->grant_sent;
}

/* The order is the engine's: receives end first, then sends, and the link is closed last. */
void rig_end_drop(struct rig_end *end)
{
	struct rig_fin *fin;
	struct rig_put *p;

	while (!TAILQ_EMPTY(&end->get_list)) {
		struct rig_get *get = TAILQ_FIRST(&end->get_list);

		end->link->ops->unget(end->link, &get->get, true);
		get_end(get, -ECONNRESET);
	}
	while (!TAILQ_EMPTY(&end->offer_list))
		offer_end(end, TAILQ_FIRST(&end->offer_list));
	while ((fin = TAILQ_FIRST(&end->fin_list))) {
		TAILQ_REMOVE(&end->fin_list, fin, entry);
		free(fin);
	}
	while ((p = TAILQ_FIRST(&end->put_list))) {
		TAILQ_REMOVE(&end->put_list, p, entry);
		end->puts--;
		free(p);
	}
	free(end->stream);
	end->stream = NULL;
}
