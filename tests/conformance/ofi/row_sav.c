/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* Address vectors that processes share by name, fi_av(3). */
#include "ct.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define PEERS 20
#define LEN 64

/* The same in all ranks of a case, and another in the next run. */
static void name_of(struct ct *ct, char *name, size_t size)
{
	snprintf(name, size, "ct-%d-%llx", (int)getpgrp(), (unsigned long long)ct_rand(ct));
}

static int open_av(struct ct_dom *dom, const char *name, uint64_t flags, struct fid_av **av)
{
	struct fi_av_attr attr = {
		.type = (enum fi_av_type)dom->ct->cs->arg, .count = 64, .name = name, .flags = flags
	};

	return fi_av_open(dom->domain, &attr, av, NULL);
}

static void open_dom(struct ct *ct, struct ct_dom *dom)
{
	struct ct_want want = { .av_type = (enum fi_av_type)ct->cs->arg };

	ct_open(ct, dom, &want);
	if (dom->info->addr_format != FI_SOCKADDR_IN)
		ct_unsupported(ct, "names are not IPv4 addresses");
}

static void open_or_unsupported(struct ct_dom *dom, const char *name, struct fid_av **av)
{
	int rc = open_av(dom, name, 0, av);

	if (rc == -FI_ENOSYS)
		ct_unsupported(dom->ct, "fi_av_open refuses a name: %s", fi_strerror(-rc));
	CT_OK(dom->ct, rc);
}

static struct sockaddr_in sin_of(int i)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons((uint16_t)(20000 + i)) };

	a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	return a;
}

static void check(struct ct *ct, struct fid_av *av, fi_addr_t addr, int i)
{
	struct sockaddr_in got = { 0 };
	size_t len = sizeof(got);

	CT_OK(ct, fi_av_lookup(av, addr, &got, &len));
	CT_EQ(ct, ntohs(got.sin_port), 20000 + i);
}

/* Rank 0 and 1 insert in turns, rank 2 only reads: all three see the same. arg: type */
static void insert(struct ct *ct)
{
	fi_addr_t addr[PEERS];
	struct fid_av *av;
	struct ct_dom dom;
	char name[64];
	int i;

	name_of(ct, name, sizeof(name));
	open_dom(ct, &dom);
	if (ct->rank != 2)
		open_or_unsupported(&dom, name, &av);
	ct_sync(ct, NULL);
	if (ct->rank == 2)
		CT_OK(ct, open_av(&dom, name, FI_READ, &av));
	for (i = 0; i < PEERS; i++) {
		int who = i % 2;

		if (ct->rank == who) {
			struct sockaddr_in sin = sin_of(i);

			CT_EQ(ct, fi_av_insert(av, &sin, 1, &addr[i], 0, NULL), 1);
			for (int r = 0; r < 3; r++)
				if (r != who)
					ct_put(ct, r, &addr[i], sizeof(addr[i]));
		} else {
			ct_get(ct, NULL, who, &addr[i], sizeof(addr[i]));
		}
		if (ct->cs->arg == FI_AV_TABLE)
			CT_EQ(ct, addr[i], i);
		check(ct, av, addr[i], i);
	}
	ct_sync(ct, NULL);
	CT_OK(ct, fi_close(&av->fid));
	ct_close(&dom);
}

/* A message goes to an address that another process has inserted, and its source is known by it. */
static void message(struct ct *ct)
{
	struct ct_want want = { .caps = FI_MSG | FI_SOURCE, .disabled = true };
	fi_addr_t addr[2];
	struct ct_dom dom;
	struct ct_comp c;
	struct ct_ep e;
	char name[64], names[2][CT_NAME], buf[LEN] = { 0 };
	struct fid_av *own;

	name_of(ct, name, sizeof(name));
	ct_open(ct, &dom, &want);
	ct_ep_open(&dom, &e);
	own = e.av;
	CT_OK(ct, fi_close(&e.ep->fid));
	open_or_unsupported(&dom, name, &e.av);
	CT_OK(ct, fi_endpoint(dom.domain, dom.info, &e.ep, NULL));
	CT_OK(ct, fi_ep_bind(e.ep, &e.av->fid, 0));
	CT_OK(ct, fi_ep_bind(e.ep, &e.txcq->fid, FI_TRANSMIT | FI_RECV));
	ct_ep_enable(&e);
	if (ct->rank == 1) {
		ct_put(ct, 0, e.name, CT_NAME);
		ct_get(ct, NULL, 0, addr, sizeof(addr));
	} else {
		memcpy(names[0], e.name, CT_NAME);
		ct_get(ct, NULL, 1, names[1], CT_NAME);
		addr[0] = ct_insert(&e, names[0]);
		addr[1] = ct_insert(&e, names[1]);
		ct_put(ct, 1, addr, sizeof(addr));
	}
	e.addr[!ct->rank] = addr[!ct->rank];
	ct_recv(&e, buf, LEN, buf);
	ct_sync(ct, &e);
	ct_send(&e, !ct->rank, name, 8, CTX(1));
	ct_of(&e, buf, &c);
	CT_EQ(ct, c.err, 0);
	CT_EQ(ct, c.src, addr[!ct->rank]);
	ct_done(&e, CTX(1));
	ct_sync(ct, &e);
	CT_EQ(ct, fi_close(&e.av->fid), -FI_EBUSY);
	ct_ep_close(&e);
	CT_OK(ct, fi_close(&own->fid));
	ct_close(&dom);
}

/*
 * Removed by one, it is gone for all; the index is given again, and means the new address to all.
 */
static void removal(struct ct *ct)
{
	struct sockaddr_in sin;
	struct fid_av *av;
	struct ct_dom dom;
	char name[64];
	fi_addr_t addr;
	size_t len;
	int i;

	name_of(ct, name, sizeof(name));
	open_dom(ct, &dom);
	open_or_unsupported(&dom, name, &av);
	ct_sync(ct, NULL);
	for (i = 0; i < 50; i++) {
		if (ct->rank == i % 2) {
			sin = sin_of(i);
			CT_EQ(ct, fi_av_insert(av, &sin, 1, &addr, 0, NULL), 1);
			ct_put(ct, !ct->rank, &addr, sizeof(addr));
			ct_sync(ct, NULL);
			ct_sync(ct, NULL);
			len = sizeof(sin);
			CT_REFUSED(ct, fi_av_lookup(av, addr, &sin, &len));
		} else {
			ct_get(ct, NULL, !ct->rank, &addr, sizeof(addr));
			check(ct, av, addr, i);
			ct_sync(ct, NULL);
			CT_OK(ct, fi_av_remove(av, &addr, 1, 0));
			ct_sync(ct, NULL);
		}
		CT_EQ(ct, addr, 0);
		ct_sync(ct, NULL); /* not before that is looked at */
	}
	CT_OK(ct, fi_close(&av->fid));
	ct_close(&dom);
}

/*
 * The maker is killed: the table lives on with the others. When the last has
 * closed it there is none.
 */
static void killed(struct ct *ct)
{
	struct sockaddr_in sin = sin_of(3);
	struct fid_av *av, *none;
	struct ct_dom dom;
	char name[64];
	fi_addr_t addr;

	name_of(ct, name, sizeof(name));
	open_dom(ct, &dom);
	if (ct->rank == 0) {
		open_or_unsupported(&dom, name, &av);
		CT_EQ(ct, fi_av_insert(av, &sin, 1, &addr, 0, NULL), 1);
		ct_doomed(ct);
		ct_put(ct, 1, &addr, sizeof(addr));
		ct_get(ct, NULL, 1, &addr, sizeof(addr));
		kill(getpid(), SIGKILL);
	}
	if (ct->rank == 1) {
		ct_get(ct, NULL, 0, &addr, sizeof(addr));
		open_or_unsupported(&dom, name, &av);
		ct_put(ct, 0, &addr, sizeof(addr));
		while (!kill(ct->pid[0], 0) && ct_now() < 1e18) {
			char state = 0, path[64];
			FILE *f;

			snprintf(path, sizeof(path), "/proc/%d/stat", (int)ct->pid[0]);
			f = fopen(path, "r");
			if (!f)
				break;
			if (fscanf(f, "%*d (%*[^)]) %c", &state) != 1)
				state = 0;
			fclose(f);
			if (state == 'Z')
				break;
			ct_pause();
		}
		check(ct, av, addr, 3);
		ct_put(ct, 2, &addr, sizeof(addr));
		ct_get(ct, NULL, 2, &addr, sizeof(addr));
		CT_OK(ct, fi_close(&av->fid));
		CT_REFUSED(ct, open_av(&dom, name, FI_READ, &none));
		open_or_unsupported(&dom, name, &av); /* a new one */
		CT_REFUSED(ct, fi_av_lookup(av, addr, &sin, &(size_t){ sizeof(sin) }));
		CT_OK(ct, fi_close(&av->fid));
	}
	if (ct->rank == 2) {
		ct_get(ct, NULL, 1, &addr, sizeof(addr));
		open_or_unsupported(&dom, name, &av); /* finds it through rank 1 */
		check(ct, av, addr, 3);
		CT_OK(ct, fi_close(&av->fid));
		ct_put(ct, 1, &addr, sizeof(addr));
	}
	ct_close(&dom);
}

static void bad(struct ct *ct)
{
	struct sockaddr_in sin = sin_of(1);
	struct fi_av_attr attr = { .flags = FI_READ };
	struct fid_av *av, *reader, *none;
	struct ct_dom dom;
	char name[64], longer[300];
	fi_addr_t addr = 7;
	int err = 0;

	name_of(ct, name, sizeof(name));
	memset(longer, 'x', sizeof(longer) - 1);
	longer[sizeof(longer) - 1] = 0;
	open_dom(ct, &dom);
	CT_REFUSED(ct, fi_av_open(dom.domain, &attr, &none, NULL)); /* to read what? */
	CT_REFUSED(ct, open_av(&dom, name, FI_READ, &none));
	open_or_unsupported(&dom, name, &av);
	CT_REFUSED(ct, open_av(&dom, longer, 0, &none));
	CT_OK(ct, open_av(&dom, name, FI_READ, &reader));
	CT_EQ(ct, fi_av_insert(reader, &sin, 1, &addr, FI_SYNC_ERR, &err), 0);
	CT_TRUE(ct, err > 0 && addr == FI_ADDR_NOTAVAIL);
	CT_EQ(ct, fi_av_insert(av, &sin, 1, &addr, 0, NULL), 1);
	check(ct, reader, addr, 1);
	CT_REFUSED(ct, fi_av_remove(reader, &addr, 1, 0));
	check(ct, av, addr, 1);
	sin.sin_family = AF_UNIX;
	CT_EQ(ct, fi_av_insert(av, &sin, 1, &addr, FI_SYNC_ERR, &err), 0);
	CT_TRUE(ct, err > 0);
	CT_OK(ct, fi_close(&reader->fid));
	CT_OK(ct, fi_close(&av->fid));
	ct_close(&dom);
}

const struct ct_case ct_sav[] = { { "SAV", "insert-map", { insert, insert, insert }, .arg = FI_AV_MAP },
				  { "SAV", "insert-table", { insert, insert, insert }, .arg = FI_AV_TABLE },
				  { "SAV", "message", { message, message } },
				  { "SAV", "remove", { removal, removal }, .arg = FI_AV_TABLE },
				  { "SAV", "killed", { killed, killed, killed }, .arg = FI_AV_TABLE },
				  { "SAV", "bad", { bad }, .arg = FI_AV_MAP },
				  { 0 } };
