/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* Address vectors, fi_av(3). */
#include "keyed.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PEERS 50

/* Addresses that nobody needs to listen on: 127.0.0.1, ports from 20000 on. */
static void ip_only(struct ct *ct, const struct ct_dom *dom)
{
	if (dom->info->addr_format != FI_SOCKADDR_IN)
		ct_unsupported(ct, "names are not IPv4 addresses");
}

static struct sockaddr_in sin_of(int i)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons((uint16_t)(20000 + i)) };

	a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	return a;
}

static bool same(const struct sockaddr_in *a, const struct sockaddr_in *b)
{
	return a->sin_family == b->sin_family && a->sin_port == b->sin_port &&
	       a->sin_addr.s_addr == b->sin_addr.s_addr;
}

static void check_lookup(struct ct_ep *e, fi_addr_t addr, int i)
{
	struct sockaddr_in want = sin_of(i), got = { 0 };
	size_t len = sizeof(got);

	CT_OK(e->ct, fi_av_lookup(e->av, addr, &got, &len));
	CT_EQ(e->ct, len, sizeof(got));
	CT_TRUE(e->ct, same(&want, &got));
}

static void alone(struct ct *ct, struct ct_dom *dom, struct ct_ep *e, enum fi_av_type type)
{
	struct ct_want want = { .av_type = type };

	ct_open(ct, dom, &want);
	ip_only(ct, dom);
	ct_ep_open(dom, e);
}

static void done(struct ct_ep *e)
{
	ct_ep_close(e);
	ct_close(e->dom);
}

/* arg: the AV's type */
static void insert(struct ct *ct)
{
	struct sockaddr_in sin[PEERS];
	fi_addr_t addr[PEERS];
	struct ct_dom dom;
	struct ct_ep e;
	int i, k;

	alone(ct, &dom, &e, (enum fi_av_type)ct->cs->arg);
	for (i = 0; i < PEERS; i++)
		sin[i] = sin_of(i);
	CT_EQ(ct, fi_av_insert(e.av, sin, 20, addr, 0, NULL), 20);
	CT_EQ(ct, fi_av_insert(e.av, sin + 20, PEERS - 20, addr + 20, FI_MORE, NULL), PEERS - 20);
	CT_EQ(ct, fi_av_insert(e.av, sin, 0, addr, 0, NULL), 0);
	for (i = 0; i < PEERS; i++) {
		if (ct->cs->arg == FI_AV_TABLE)
			CT_EQ(ct, addr[i], i);
		for (k = 0; k < i; k++)
			CT_TRUE(ct, addr[i] != addr[k]);
		check_lookup(&e, addr[i], i);
	}
	done(&e);
}

/*
 * Indices are known beforehand in a table: the array for them may be NULL. Those of a map are
 * indices as well, as with libfabric's providers.
 */
static void insert_null(struct ct *ct)
{
	struct sockaddr_in sin[3] = { sin_of(0), sin_of(1), sin_of(2) };
	struct ct_dom dom;
	struct ct_ep e;
	int i;

	alone(ct, &dom, &e, (enum fi_av_type)ct->cs->arg);
	CT_EQ(ct, fi_av_insert(e.av, sin, 3, NULL, 0, NULL), 3);
	for (i = 0; i < 3; i++)
		check_lookup(&e, (fi_addr_t)i, i);
	done(&e);
}

static void insert_bad(struct ct *ct)
{
	struct sockaddr_in sin[3] = { sin_of(0), sin_of(1), sin_of(2) };
	fi_addr_t addr[3] = { 7, 7, 7 };
	int err[3] = { 99, 99, 99 };
	struct ct_dom dom;
	struct ct_ep e;

	alone(ct, &dom, &e, FI_AV_MAP);
	/* One that is no address of this kind: it fails alone, and is told by its place. */
	sin[1].sin_family = AF_UNIX;
	CT_EQ(ct, fi_av_insert(e.av, sin, 3, addr, FI_SYNC_ERR, err), 2);
	CT_EQ(ct, err[0], 0);
	CT_TRUE(ct, err[1] > 0);
	CT_EQ(ct, err[2], 0);
	CT_TRUE(ct,
		addr[1] == FI_ADDR_NOTAVAIL && addr[0] != FI_ADDR_NOTAVAIL && addr[2] != FI_ADDR_NOTAVAIL);
	check_lookup(&e, addr[0], 0);
	check_lookup(&e, addr[2], 2);
	done(&e);
}

static void insertsvc(struct ct *ct)
{
	fi_addr_t addr = FI_ADDR_NOTAVAIL;
	struct ct_dom dom;
	struct ct_ep e;
	char service[16];

	alone(ct, &dom, &e, FI_AV_MAP);
	snprintf(service, sizeof(service), "%d", 20005);
	CT_EQ(ct, fi_av_insertsvc(e.av, "127.0.0.1", service, &addr, 0, NULL), 1);
	check_lookup(&e, addr, 5);
	addr = 7;
	CT_TRUE(ct, fi_av_insertsvc(e.av, "no.such.host.invalid", service, &addr, 0, NULL) <= 0);
	CT_TRUE(ct, fi_av_insertsvc(e.av, "127.0.0.1", "no-such-service", &addr, 0, NULL) <= 0);
	done(&e);
}

/* Services of the first node, then those of the second, fi_av(3). */
static void insertsym(struct ct *ct)
{
	fi_addr_t addr[4];
	struct sockaddr_in got;
	struct ct_dom dom;
	struct ct_ep e;
	size_t len;
	int i, rc;

	alone(ct, &dom, &e, FI_AV_MAP);
	rc = fi_av_insertsym(e.av, "127.0.0.1", 2, "20000", 2, addr, 0, NULL);
	if (rc == -FI_ENOSYS)
		ct_unsupported(ct, "fi_av_insertsym: %s", fi_strerror(-rc));
	CT_EQ(ct, rc, 4);
	for (i = 0; i < 4; i++) {
		len = sizeof(got);
		CT_OK(ct, fi_av_lookup(e.av, addr[i], &got, &len));
		CT_EQ(ct, ntohs(got.sin_port), 20000 + i % 2);
		CT_EQ(ct, ntohl(got.sin_addr.s_addr), INADDR_LOOPBACK + (unsigned int)i / 2);
	}
	done(&e);
}

/*
 * The first host may be named; those after one without a number at its end cannot be. What is not
 * inserted has no address.
 */
static void insertsym_names(struct ct *ct)
{
	fi_addr_t addr[4];
	struct ct_dom dom;
	struct ct_ep e;

	alone(ct, &dom, &e, FI_AV_MAP);
	CT_EQ(ct, fi_av_insertsym(e.av, "localhost", 2, "20000", 2, addr, 0, NULL), 2);
	check_lookup(&e, addr[0], 0);
	check_lookup(&e, addr[1], 1);
	CT_TRUE(ct, addr[2] == FI_ADDR_NOTAVAIL && addr[3] == FI_ADDR_NOTAVAIL);
	CT_TRUE(ct, fi_av_insertsym(e.av, "localhost", 1, "65535", 2, addr, 0, NULL) <= 0);
	CT_TRUE(ct, fi_av_insertsym(e.av, "localhost", 1, "no-such-service", 1, addr, 0, NULL) <= 0);
	CT_TRUE(ct, fi_av_insertsym(e.av, NULL, 1, "20000", 1, addr, 0, NULL) <= 0);
	done(&e);
}

/* A carry goes on to the digits before it. */
static void insertsym_ipv6(struct ct *ct)
{
	struct fi_av_attr attr = { .type = FI_AV_MAP };
	struct sockaddr_in6 got;
	struct fid_domain *six;
	struct fi_info *info;
	size_t len = sizeof(got);
	fi_addr_t addr[4];
	struct ct_dom dom;
	struct fid_av *av;
	char text[64];

	ct_open(ct, &dom, NULL);
	ip_only(ct, &dom);
	info = fi_dupinfo(dom.info);
	info->addr_format = FI_SOCKADDR_IN6;
	free(info->src_addr);
	info->src_addr = NULL;
	info->src_addrlen = 0;
	CT_OK(ct, fi_domain(dom.fabric, info, &six, NULL));
	CT_OK(ct, fi_av_open(six, &attr, &av, NULL));
	CT_EQ(ct, fi_av_insertsym(av, "fd00::1:ffff", 2, "20000", 2, addr, 0, NULL), 4);
	CT_OK(ct, fi_av_lookup(av, addr[3], &got, &len));
	CT_EQ(ct, len, sizeof(got));
	CT_EQ(ct, ntohs(got.sin6_port), 20001);
	CT_TRUE(ct, inet_ntop(AF_INET6, &got.sin6_addr, text, sizeof(text)) && !strcmp(text, "fd00::2:0"));
	CT_OK(ct, fi_close(&av->fid));
	CT_OK(ct, fi_close(&six->fid));
	fi_freeinfo(info);
	ct_close(&dom);
}

/* Buffers too small for the answer: what fits is given, and the length that is needed. */
static void lookup_short(struct ct *ct)
{
	struct sockaddr_in sin = sin_of(3);
	unsigned char got[sizeof(sin)];
	fi_addr_t addr;
	struct ct_dom dom;
	struct ct_ep e;
	size_t len = 4;

	alone(ct, &dom, &e, FI_AV_MAP);
	CT_EQ(ct, fi_av_insert(e.av, &sin, 1, &addr, 0, NULL), 1);
	memset(got, 0x55, sizeof(got));
	CT_OK(ct, fi_av_lookup(e.av, addr, got, &len));
	CT_EQ(ct, len, sizeof(sin));
	CT_TRUE(ct, !memcmp(got, &sin, 4) && ct_untouched(got + 4, sizeof(got) - 4, 0x55));
	done(&e);
}

static void straddr(struct ct *ct)
{
	struct sockaddr_in sin = sin_of(7);
	char buf[128], tiny[8];
	struct ct_dom dom;
	struct ct_ep e;
	size_t len = sizeof(buf);

	alone(ct, &dom, &e, FI_AV_MAP);
	CT_TRUE(ct, fi_av_straddr(e.av, &sin, buf, &len) == buf);
	CT_TRUE(ct, len <= sizeof(buf) && strlen(buf) < sizeof(buf));
	CT_TRUE(ct, strstr(buf, "127.0.0.1") && strstr(buf, "20007"));
	memset(tiny, 0x55, sizeof(tiny));
	len = 4;
	CT_TRUE(ct, fi_av_straddr(e.av, &sin, tiny, &len) == tiny);
	CT_TRUE(ct, len > 4 && ct_untouched((unsigned char *)tiny + 4, 4, 0x55));
	done(&e);
}

/* Removed and inserted again, many times over; a table gives the free index again. arg: type */
static void removal(struct ct *ct)
{
	struct sockaddr_in sin = sin_of(1), gap = sin_of(2);
	fi_addr_t a, b;
	struct ct_dom dom;
	struct ct_ep e;
	int i;

	alone(ct, &dom, &e, (enum fi_av_type)ct->cs->arg);
	CT_EQ(ct, fi_av_insert(e.av, &gap, 1, &b, 0, NULL), 1);
	for (i = 0; i < 1000; i++) {
		size_t len = sizeof(sin);
		struct sockaddr_in got;

		CT_EQ(ct, fi_av_insert(e.av, &sin, 1, &a, 0, NULL), 1);
		if (ct->cs->arg == FI_AV_TABLE)
			CT_EQ(ct, a, 1);
		CT_OK(ct, fi_av_lookup(e.av, a, &got, &len));
		CT_OK(ct, fi_av_remove(e.av, &a, 1, 0));
	}
	check_lookup(&e, b, 2);
	done(&e);
}

static void open_bad(struct ct *ct)
{
	struct fi_av_attr bad = { .type = (enum fi_av_type)77 };
	struct fid_av *av = NULL;
	struct ct_dom dom;

	ct_open(ct, &dom, NULL);
	CT_REFUSED(ct, fi_av_open(dom.domain, &bad, &av, NULL));
	bad = (struct fi_av_attr){ .type = FI_AV_MAP, .flags = FI_READ };
	CT_REFUSED(ct, fi_av_open(dom.domain, &bad, &av, NULL));
	ct_close(&dom);
}

/*
 * count and ep_per_node say what is expected, FI_SYMMETRIC how it looks: more may come, and of
 * other kinds. arg: expected
 */
static void hints(struct ct *ct)
{
	struct fi_av_attr attr = { .type = FI_AV_TABLE,
				   .count = ct->cs->arg,
				   .ep_per_node = ct->cs->arg ? 3 : 0,
				   .flags = FI_SYMMETRIC };
	struct fid_av *av;
	struct ct_dom dom;
	fi_addr_t addr;
	int rc, i;

	ct_open(ct, &dom, NULL);
	ip_only(ct, &dom);
	rc = fi_av_open(dom.domain, &attr, &av, NULL);
	if (rc == -FI_ENOSYS || rc == -FI_EINVAL || rc == -FI_EBADFLAGS)
		ct_unsupported(ct, "no AV with FI_SYMMETRIC: %s", fi_strerror(-rc));
	CT_OK(ct, rc);
	for (i = 0; i < 300; i++) {
		struct sockaddr_in sin = sin_of(i * 7 % 300), got;
		size_t len = sizeof(got);

		CT_EQ(ct, fi_av_insert(av, &sin, 1, &addr, 0, NULL), 1);
		CT_EQ(ct, addr, i);
		CT_OK(ct, fi_av_lookup(av, addr, &got, &len));
		CT_TRUE(ct, same(&sin, &got));
	}
	CT_OK(ct, fi_close(&av->fid));
	ct_close(&dom);
}

/* An address taken by fi_av_lookup leads to the peer when it is inserted into another AV. */
static void round_trip(struct ct *ct)
{
	struct ct_want want = { .av_type = FI_AV_TABLE };
	struct ct_dom dom;
	struct ct_ep e;
	char name[CT_NAME];
	size_t len = sizeof(name);

	ct_start(ct, &dom, &e, &want);
	ct_ping(&e, !ct->rank);
	CT_OK(ct, fi_av_lookup(e.av, e.addr[!ct->rank], name, &len));
	ct_sync(ct, &e);
	CT_OK(ct, fi_av_remove(e.av, &e.addr[!ct->rank], 1, 0));
	e.addr[!ct->rank] = ct_insert(&e, name);
	ct_ping(&e, !ct->rank);
	ct_finish(&e);
}

/* ---- user identifiers, FI_AV_USER_ID ---- */

#define CALLED UINT64_C(0xfeed00000042)
#define USER_IDS (FI_MSG | FI_TAGGED | FI_SOURCE | FI_DIRECTED_RECV | FI_AV_USER_ID)

/* What a message from the address is said to come from. */
static fi_addr_t told(struct ct_ep *e, const fi_addr_t *from)
{
	char buf[8];
	struct ct_one one = { .buf = buf, .len = sizeof(buf), .ctx = CTX(1), .from = from };
	struct ct_comp c;

	CT_POST(e, ct_recv_one(e, &one));
	ct_sync(e->ct, e);
	ct_of(e, CTX(1), &c);
	CT_EQ(e->ct, c.err, 0);
	CT_EQ(e->ct, c.len, 4);
	return c.src;
}

/*
 * Completions name a sender as the program calls him; calls go on to name his address. arg 1: he is
 * called so only after his insertion
 */
static void user_id(struct ct *ct)
{
	const bool later = ct->cs->arg;
	struct ct_want want = { .caps = USER_IDS | (later ? FI_SOURCE_ERR : 0),
				.av_flags = later ? FI_AV_USER_ID : 0 };
	fi_addr_t addr = later ? 0 : CALLED;
	char name[CT_NAME];
	struct ct_dom dom;
	struct ct_ep e;

	ct_open(ct, &dom, &want);
	ct_ep_open(&dom, &e);
	ct_put(ct, !ct->rank, e.name, sizeof(e.name));
	ct_get(ct, NULL, !ct->rank, name, sizeof(name));
	CT_EQ(ct, fi_av_insert(e.av, name, 1, &addr, later ? 0 : FI_AV_USER_ID, NULL), 1);
	CT_EQ(ct, addr, 0);
	e.addr[!ct->rank] = addr;
	if (ct->rank) {
		CT_TRUE(ct, told(&e, &addr) == (later ? FI_ADDR_NOTAVAIL : CALLED));
		if (later)
			CT_OK(ct, kd_ops(ct, e.av)->set_user_id(e.av, addr, CALLED, 0));
		CT_TRUE(ct, told(&e, &addr) == CALLED);
	}
	for (int i = 0; !ct->rank && i < 2; i++) {
		ct_sync(ct, &e);
		ct_send(&e, 1, "you", 4, CTX(2));
		ct_done(&e, CTX(2));
	}
	ct_ping(&e, !ct->rank);
	ct_finish(&e);
}

/*
 * Others of the same AV are called by their addresses, also those that come before the first with
 * an identifier, and after it at its place.
 */
static void user_id_others(struct ct *ct)
{
	struct ct_want want = { .caps = USER_IDS };
	fi_addr_t addr = CALLED;
	struct sockaddr_in other = sin_of(1);
	char name[CT_NAME];
	struct ct_dom dom;
	struct ct_ep e;

	ct_open(ct, &dom, &want);
	ip_only(ct, &dom);
	ct_ep_open(&dom, &e);
	ct_put(ct, !ct->rank, e.name, sizeof(e.name));
	ct_get(ct, NULL, !ct->rank, name, sizeof(name));
	e.addr[!ct->rank] = ct_insert(&e, name);
	CT_EQ(ct, fi_av_insert(e.av, &other, 1, &addr, FI_AV_USER_ID, NULL), 1);
	if (ct->rank) {
		CT_EQ(ct, told(&e, &e.addr[0]), e.addr[0]);
		CT_OK(ct, fi_av_remove(e.av, &addr, 1, 0));
		CT_OK(ct, fi_av_remove(e.av, &e.addr[0], 1, 0));
		e.addr[0] = ct_insert(&e, name);
		CT_EQ(ct, told(&e, &e.addr[0]), e.addr[0]);
	}
	for (int i = 0; !ct->rank && i < 2; i++) {
		ct_sync(ct, &e);
		ct_send(&e, 1, "you", 4, CTX(2));
		ct_done(&e, CTX(2));
	}
	ct_ping(&e, !ct->rank);
	ct_finish(&e);
}

static void user_id_refused(struct ct *ct)
{
	struct ct_want want = { .caps = USER_IDS };
	struct sockaddr_in sin = sin_of(1);
	struct fi_av_attr attr = { .type = FI_AV_TABLE, .flags = FI_AV_USER_ID };
	fi_addr_t addr = CALLED;
	struct ct_dom dom;
	struct fid_av *av;
	struct ct_ep e;

	ct_open(ct, &dom, &want);
	ip_only(ct, &dom);
	ct_ep_open(&dom, &e);
	CT_EQ(ct, fi_av_insert(e.av, &sin, 1, NULL, FI_AV_USER_ID, NULL),
	      -FI_EINVAL); /* what is it called? */
	CT_EQ(ct, fi_av_insert(e.av, &sin, 1, &addr, 0, NULL), 1);
	/* not opened for that */
	CT_EQ(ct, kd_ops(ct, e.av)->set_user_id(e.av, addr, CALLED, 0), -FI_EINVAL);
	CT_OK(ct, fi_av_open(dom.domain, &attr, &av, NULL));
	CT_EQ(ct, fi_av_insert(av, &sin, 1, &addr, FI_AV_USER_ID, NULL),
	      -FI_EINVAL); /* opened for the other way */
	CT_EQ(ct, kd_ops(ct, av)->set_user_id(av, 0, CALLED, 0), -FI_EINVAL);
	CT_EQ(ct, fi_av_insert(av, &sin, 1, &addr, 0, NULL), 1);
	CT_OK(ct, kd_ops(ct, av)->set_user_id(av, addr, CALLED, 0));
	CT_EQ(ct, kd_ops(ct, av)->set_user_id(av, addr, CALLED, FI_MORE), -FI_EBADFLAGS);
	CT_OK(ct, fi_close(&av->fid));
	done(&e);
}

const struct ct_case ct_av[] = { { "AV", "insert-map", { insert }, .arg = FI_AV_MAP },
				 { "AV", "insert-table", { insert }, .arg = FI_AV_TABLE },
				 { "AV", "insert-null", { insert_null }, .arg = FI_AV_TABLE },
				 { "AV", "insert-null-map", { insert_null }, .arg = FI_AV_MAP },
				 { "AV", "insert-bad", { insert_bad } },
				 { "AV", "insertsvc", { insertsvc } },
				 { "AV", "insertsym", { insertsym } },
				 { "AV", "insertsym-names", { insertsym_names } },
				 { "AV", "insertsym-ipv6", { insertsym_ipv6 } },
				 { "AV", "lookup-short", { lookup_short } },
				 { "AV", "straddr", { straddr } },
				 { "AV", "remove-map", { removal }, .arg = FI_AV_MAP },
				 { "AV", "remove-table", { removal }, .arg = FI_AV_TABLE },
				 { "AV", "expected-none", { hints }, .arg = 0 },
				 { "AV", "expected-few", { hints }, .arg = 2 },
				 { "AV", "expected-many", { hints }, .arg = 100000 },
				 { "AV", "open-bad", { open_bad } },
				 { "AV", "user-id", { user_id, user_id }, .arg = 0 },
				 { "AV", "user-id-later", { user_id, user_id }, .arg = 1 },
				 { "AV", "user-id-others", { user_id_others, user_id_others } },
				 { "AV", "user-id-refused", { user_id_refused } },
				 { "AV", "round-trip", { round_trip, round_trip } },
				 { 0 } };
