/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * FI_EP_DGRAM, fi_endpoint(3): what reliable endpoints do not do. Datagrams may be lost at any
 * time, so what must arrive is sent again until it does.
 */
#include "ct.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static const struct ct_want dgram = { .caps = FI_MSG, .type = FI_EP_DGRAM };

#define KEY 0x5eed

/* Send the datagram until the other end says, over the ranks' channel, that it has it. */
static void throw_until(struct ct_ep *e, int rank, const void *buf, size_t len, void *ctx)
{
	struct ct *ct = e->ct;
	double end = ct_deadline(ct);
	char there = 0;

	while (!there) {
		ct_late(ct, end, "a datagram to arrive");
		ct_send(e, rank, buf, len, ctx);
		ct_done(e, ctx);
		ct_put(ct, rank, "s", 1);
		ct_get(ct, e, rank, &there, 1);
	}
}

/* The other half: true once the receive with this context is complete; *c is it. */
static void catch_until(struct ct_ep *e, int rank, void *ctx, struct ct_comp *c)
{
	struct ct *ct = e->ct;
	char there = 0, word;

	while (!there) {
		double end = ct_now() + 0.2;

		ct_get(ct, e, rank, &word, 1);
		while (!there && ct_now() < end) {
			struct ct_comp any;

			if (!ct_poll(e, &any))
				continue;
			if (any.ctx == ctx) {
				*c = any;
				there = 1;
			}
		}
		ct_put(ct, rank, &there, 1);
	}
}

static const size_t sizes[] = { 0, 1, 8, 63, 64, 1000, SIZE_MAX };

static size_t size_at(const struct ct_ep *e, size_t i)
{
	size_t max = e->dom->info->ep_attr->max_msg_size;

	return sizes[i] < max ? sizes[i] : max;
}

static void sizes_send(struct ct *ct)
{
	struct ct_dom dom;
	struct ct_ep e;
	char *buf;

	ct_start(ct, &dom, &e, &dgram);
	CT_TRUE(ct, dom.info->ep_attr->max_msg_size >= 512); /* what anybody may send by IP */
	buf = ct_alloc(ct, dom.info->ep_attr->max_msg_size + 1);
	for (size_t i = 0; i < CT_COUNT(sizes); i++) {
		size_t len = size_at(&e, i);
		char again = 1;

		ct_fill(buf, len, KEY + i);
		while (again) {
			throw_until(&e, 1, buf, len, CTX(i + 1));
			ct_get(ct, &e, 1, &again, 1);
		}
	}
	CT_EQ(ct, fi_send(e.ep, buf, dom.info->ep_attr->max_msg_size + 1, NULL, e.addr[1], NULL),
	      -FI_EMSGSIZE);
	ct_quiet(&e, 50, "a refused datagram");
	free(buf);
	ct_finish(&e);
}

static void sizes_recv(struct ct *ct)
{
	struct ct_dom dom;
	struct ct_ep e;

	ct_start(ct, &dom, &e, &dgram);
	for (size_t i = 0; i < CT_COUNT(sizes); i++) {
		size_t len = size_at(&e, i);
		char *buf = ct_alloc(ct, len + 16), again = 1;
		struct ct_comp c;

		while (again) { /* what was sent twice may come twice, and the second time late */
			memset(buf, 0x11, len + 16);
			ct_recv(&e, buf, len + 16, CTX(i + 1));
			catch_until(&e, 0, CTX(i + 1), &c);
			CT_EQ(ct, c.err, 0);
			again = i && c.len < len && c.len == size_at(&e, i - 1);
			ct_put(ct, 0, &again, 1);
		}
		CT_EQ(ct, c.len, len);
		ct_verify(ct, buf, len, KEY + i, "datagram");
		CT_TRUE(ct, ct_untouched(buf + len, 16, 0x11));
		free(buf);
	}
	ct_finish(&e);
}

/* of the flood that may come when it is over: a sender may keep some until there is a way */
#define LATE 200

/*
 * Nobody reads and nothing is posted: datagrams go on being accepted, and the
 * next receive gets a new one.
 */
static void flood_send(struct ct *ct)
{
	struct ct_dom dom;
	struct ct_ep e;
	char *buf, again = 1;

	ct_start(ct, &dom, &e, &dgram);
	buf = ct_alloc(ct, 512);
	ct_fill(buf, 512, KEY);
	for (size_t i = 0; i < 20000; i++) {
		ct_send(&e, 1, buf, 512, CTX(1));
		ct_done(&e, CTX(1));
	}
	ct_sync(ct, &e);
	ct_fill(buf, 512, KEY + 1);
	while (again) {
		throw_until(&e, 1, buf, 512, CTX(2));
		ct_get(ct, &e, 1, &again, 1);
	}
	free(buf);
	ct_finish(&e);
}

static void flood_recv(struct ct *ct)
{
	struct ct_dom dom;
	struct ct_ep e;
	char buf[512], again = 1;
	struct ct_comp c;

	ct_start(ct, &dom, &e, &dgram);
	ct_sync(ct, NULL);
	ct_quiet(&e, 50, "there is no receive");
	for (int i = 0; i < LATE && again; i++) {
		ct_recv(&e, buf, sizeof(buf), CTX(1));
		catch_until(&e, 0, CTX(1), &c);
		CT_EQ(ct, c.err, 0);
		CT_EQ(ct, c.len, sizeof(buf));
		again = i + 1 < LATE && ct_match(buf, sizeof(buf), KEY, 0);
		ct_put(ct, 0, &again, 1);
	}
	ct_verify(ct, buf, sizeof(buf), KEY + 1, "what came after the receive was posted");
	ct_finish(&e);
}

/* Sends to where nobody is are good sends. */
static void nobody(struct ct *ct)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(9) };
	fi_addr_t addr;
	struct ct_dom dom;
	struct ct_ep e;
	char byte = 1;

	ct_open(ct, &dom, &dgram);
	if (dom.info->addr_format != FI_SOCKADDR_IN)
		ct_unsupported(ct, "names are not IPv4 addresses");
	ct_ep_open(&dom, &e);
	inet_pton(AF_INET, "127.0.0.1", &to.sin_addr);
	CT_EQ(ct, fi_av_insert(e.av, &to, 1, &addr, 0, NULL), 1);
	for (int i = 0; i < 100; i++) {
		CT_POST(&e, fi_send(e.ep, &byte, 1, NULL, addr, CTX(1)));
		ct_done(&e, CTX(1));
	}
	ct_quiet(&e, 50, "nobody is there");
	ct_finish(&e);
}

/*
 * FI_DELIVERY_COMPLETE needs an answer, which unreliable endpoints do not have;
 * FI_TRANSMIT_COMPLETE needs none.
 */
static void levels(struct ct *ct)
{
	struct ct_dom dom;
	struct ct_ep e;
	char byte = 1;
	struct iovec iov = { &byte, 1 };
	struct fi_msg m = { .msg_iov = &iov, .iov_count = 1, .context = CTX(1) };

	ct_start(ct, &dom, &e, &dgram);
	m.addr = e.addr[1];
	CT_POST(&e, fi_sendmsg(e.ep, &m, FI_COMPLETION | FI_TRANSMIT_COMPLETE));
	ct_done(&e, CTX(1));
	CT_POST(&e, fi_sendmsg(e.ep, &m, FI_COMPLETION | FI_INJECT));
	ct_done(&e, CTX(1));
	CT_REFUSED(ct, fi_sendmsg(e.ep, &m, FI_COMPLETION | FI_DELIVERY_COMPLETE));
	CT_REFUSED(ct, fi_sendmsg(e.ep, &m, FI_COMPLETION | FI_MATCH_COMPLETE));
	ct_quiet(&e, 50, "refused sends");
	ct_finish(&e);
}

static void levels_peer(struct ct *ct)
{
	struct ct_dom dom;
	struct ct_ep e;

	ct_start(ct, &dom, &e, &dgram);
	ct_finish(&e);
}

/* A datagram too long for its buffer is cut, and said to be. */
static void cut_send(struct ct *ct)
{
	struct ct_dom dom;
	struct ct_ep e;
	char buf[100];

	ct_start(ct, &dom, &e, &dgram);
	ct_fill(buf, sizeof(buf), KEY);
	throw_until(&e, 1, buf, sizeof(buf), CTX(1));
	ct_finish(&e);
}

static void cut_recv(struct ct *ct)
{
	struct ct_dom dom;
	struct ct_comp c;
	struct ct_ep e;
	char buf[100];

	memset(buf, 0x22, sizeof(buf));
	ct_start(ct, &dom, &e, &dgram);
	ct_recv(&e, buf, 60, CTX(1));
	catch_until(&e, 0, CTX(1), &c);
	CT_EQ(ct, c.err, FI_ETRUNC);
	CT_EQ(ct, c.olen, 40);
	ct_verify(ct, buf, 60, KEY, "what fits");
	CT_TRUE(ct, ct_untouched(buf + 60, 40, 0x22));
	ct_finish(&e);
}

/* Memory that nobody may touch: that datagram fails, alone, in one segment and in two. */
static void gone_send(struct ct *ct)
{
	static const size_t lens[] = { 8, 64, 400 };
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	char *mem = mmap(NULL, page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), text[8] = "before";
	struct ct_comp c;
	struct ct_dom dom;
	struct ct_ep e;

	CT_TRUE(ct, mem != MAP_FAILED);
	ct_start(ct, &dom, &e, &dgram);
	throw_until(&e, 1, text, 8, CTX(1));
	for (size_t i = 0; i < CT_COUNT(lens); i++) {
		struct iovec iov[2] = { { text, 4 }, { mem, lens[i] } };

		ct_send(&e, 1, mem, lens[i], CTX(2));
		ct_of(&e, CTX(2), &c);
		CT_EQ(ct, c.err, FI_EFAULT);
		if (dom.info->tx_attr->iov_limit < 2)
			continue;
		CT_POST(&e, fi_sendv(e.ep, iov, NULL, 2, e.addr[1], CTX(3)));
		ct_of(&e, CTX(3), &c);
		CT_EQ(ct, c.err, FI_EFAULT);
	}
	strcpy(text, "after");
	throw_until(&e, 1, text, 8, CTX(4));
	munmap(mem, page);
	ct_finish(&e);
}

static void gone_recv(struct ct *ct)
{
	char buf[512] = { 0 };
	struct ct_comp c;
	struct ct_dom dom;
	struct ct_ep e;

	ct_start(ct, &dom, &e, &dgram);
	ct_recv(&e, buf, sizeof(buf), CTX(1));
	catch_until(&e, 0, CTX(1), &c);
	CT_EQ(ct, c.err, 0);
	ct_recv(&e, buf, sizeof(buf), CTX(2));
	catch_until(&e, 0, CTX(2), &c);
	CT_EQ(ct, c.err, 0);
	CT_EQ(ct, c.len, 8);
	/* the first may have come once more */
	CT_TRUE(ct, !strcmp(buf, "before") || !strcmp(buf, "after"));
	ct_finish(&e);
}

const struct ct_case ct_dgram[] = {
	{ "M2", "dgram-sizes", { sizes_send, sizes_recv } },
	{ "M2", "dgram-cut", { cut_send, cut_recv } },
	{ "M2", "dgram-gone", { gone_send, gone_recv } },
	{ "M13", "dgram-levels", { levels, levels_peer } },
	{ "M21", "dgram-flood", { flood_send, flood_recv } },
	{ "M21", "dgram-nobody", { nobody } },
	{ 0 },
};
