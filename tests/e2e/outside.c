/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* The outside world: strangers, garbage, ports in use, settings that make no sense. */
#include "e2e.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

static int dial(struct ct *ct, const char *name)
{
	struct sockaddr_in a;
	struct timeval tv = { .tv_sec = 20 };
	int s = socket(AF_INET, SOCK_STREAM, 0);

	memcpy(&a, name, sizeof(a));
	if (a.sin_family != AF_INET)
		ct_unsupported(ct, "names are not IPv4 addresses");
	CT_TRUE(ct, s >= 0);
	setsockopt(s, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv));
	if (connect(s, (struct sockaddr *)&a, sizeof(a))) {
		close(s);
		return -1;
	}
	return s;
}

/* ---- HEDDLE_ALLOW ---- */

/* Rank 0 lets nobody of this host in: an operation to it fails, and a socket gets not a byte. */
static void gate(struct ct *ct)
{
	struct ct_dom dom;
	struct ct_ep e;
	char buf[64];

	e2e_set(ct, "HEDDLE_ALLOW", "198.51.100.0/24");
	ct_open(ct, &dom, NULL);
	ct_ep_open(&dom, &e);
	ct_put(ct, 1, e.name, sizeof(e.name));
	ct_trecv(&e, buf, sizeof(buf), 0, ~0ull, CTX(1));
	ct_sync(ct, &e);
	ct_quiet(&e, 50, "from an address that is not allowed");
	ct_ep_close(&e);
	ct_close(&dom);
}

static void stranger(struct ct *ct)
{
	struct ct_dom dom;
	struct ct_comp c = { 0 };
	struct ct_ep e;
	char name[CT_NAME], buf[64];
	double end = ct_deadline(ct);
	ssize_t rc;
	int s;

	ct_get(ct, NULL, 0, name, sizeof(name));
	s = dial(ct, name);
	if (s >= 0) {
		CT_TRUE(ct, recv(s, buf, sizeof(buf), 0) <= 0);
		close(s);
	}
	ct_open(ct, &dom, NULL);
	ct_ep_open(&dom, &e);
	e.addr[0] = ct_insert(&e, name);
	while ((rc = fi_tsend(e.ep, "x", 1, NULL, e.addr[0], 1, CTX(1))) == -FI_EAGAIN) {
		ct_progress(&e);
		ct_late(ct, end, "a send to somebody who does not let us in to be refused");
	}
	if (!rc) {
		ct_of(&e, CTX(1), &c);
		CT_TRUE(ct, c.err);
	}
	ct_sync(ct, &e);
	ct_ep_close(&e);
	ct_close(&dom);
}

/* ---- garbage ---- */

#define CALLS 150

static void garbage_one(struct ct *ct, const char *name, int kind)
{
	unsigned char buf[4096];
	size_t n = ct_range(ct, sizeof(buf)) + 1, i, sent = 0;
	int s = dial(ct, name);

	if (s < 0)
		return;
	for (i = 0; i < n; i++)
		buf[i] = kind % 4 == 1 ? 0 : kind % 4 == 2 ? 0xff : (unsigned char)ct_rand(ct);
	switch (kind % 5) {
	case 0: /* nothing at all */
		break;
	case 1: /* a few bytes, and away */
		sent = (size_t)send(s, buf, n % 16 + 1, MSG_NOSIGNAL);
		break;
	case 2: /* byte by byte */
		for (i = 0; i < 60 && i < n; i++)
			sent += send(s, buf + i, 1, MSG_NOSIGNAL) == 1;
		break;
	default:
		sent = (size_t)send(s, buf, n, MSG_NOSIGNAL);
	}
	(void)sent;
	/* Some reset the connection, some close it, some leave it to the kernel. */
	if (kind % 3 == 0) {
		struct linger l = { .l_onoff = 1 };

		setsockopt(s, SOL_SOCKET, SO_LINGER, &l, sizeof(l));
	}
	close(s);
}

/*
 * What the other end says first, if it says anything, with single bits turned
 * over, is garbage as well.
 */
static void echo_one(struct ct *ct, const char *name, int kind)
{
	unsigned char buf[4096];
	struct pollfd pfd = { .events = POLLIN };
	ssize_t n = 0;

	pfd.fd = dial(ct, name);
	if (pfd.fd < 0)
		return;
	if (poll(&pfd, 1, 20) == 1)
		n = recv(pfd.fd, buf, sizeof(buf), 0);
	if (n > 0) {
		buf[kind % (int)n] ^= (unsigned char)(1 << kind % 8);
		(void)!send(pfd.fd, buf, (size_t)n, MSG_NOSIGNAL);
		poll(&pfd, 1, 5);
	}
	close(pfd.fd);
}

static void hooligan(struct ct *ct)
{
	char name[CT_NAME];
	int i;

	ct_get(ct, NULL, 0, name, sizeof(name));
	for (i = 0; i < CALLS; i++) {
		if (i % 6 == 5)
			echo_one(ct, name, i);
		else
			garbage_one(ct, name, i);
		usleep(500);
	}
	ct_sync(ct, NULL);
}

static void target(struct ct *ct)
{
	struct ct_dom dom;
	struct ct_ep e;
	char name[CT_NAME], c;
	int fds;
	double end;

	ct_open(ct, &dom, NULL);
	ct_ep_open(&dom, &e);
	ct_put(ct, 2, e.name, sizeof(e.name));
	ct_get(ct, NULL, 2, name, sizeof(name));
	e.addr[2] = ct_insert(&e, name);
	ct_ping(&e, 2);
	fds = e2e_fds(ct);
	ct_put(ct, 1, e.name, sizeof(e.name));
	for (;;) {
		struct pollfd pfd = { .fd = ct->chan[1], .events = POLLIN };

		ct_ping(&e, 2);
		c = poll(&pfd, 1, 0) == 1;
		ct_put(ct, 2, &c, 1);
		if (c)
			break;
	}
	/* Strangers that said nothing are thrown out as soon as their time is over. */
	end = ct_deadline(ct);
	while (e2e_fds(ct) > fds) {
		ct_late(ct, end, "strangers' connections to be closed");
		ct_idle(&e, 10);
	}
	ct_sync(ct, &e);
	ct_ep_close(&e);
	ct_close(&dom);
}

static void witness(struct ct *ct)
{
	struct ct_dom dom;
	struct ct_ep e;
	char name[CT_NAME], c = 0;

	ct_open(ct, &dom, NULL);
	ct_ep_open(&dom, &e);
	ct_get(ct, NULL, 0, name, sizeof(name));
	e.addr[0] = ct_insert(&e, name);
	ct_put(ct, 0, e.name, sizeof(e.name));
	ct_ping(&e, 0);
	while (!c) {
		ct_ping(&e, 0);
		ct_get(ct, &e, 0, &c, 1);
	}
	ct_sync(ct, &e);
	ct_ep_close(&e);
	ct_close(&dom);
}

/* ---- settings ---- */

/* Opens as far as it goes; the errno of the step that was refused, or 0. */
static int open_all(struct ct *ct)
{
	struct fi_cq_attr cqa = { .format = FI_CQ_FORMAT_TAGGED };
	struct fi_av_attr ava = { .type = FI_AV_UNSPEC };
	static const struct ct_want none;
	struct fi_info *h = ct_hints(ct, &none), *info = NULL;
	struct fid_fabric *fabric = NULL;
	struct fid_domain *domain = NULL;
	struct fid_cq *cq = NULL;
	struct fid_av *av = NULL;
	struct fid_ep *ep = NULL;
	int rc = ct_getinfo(ct, h, &info);

	rc = rc ? rc : fi_fabric(info->fabric_attr, &fabric, NULL);
	rc = rc ? rc : fi_domain(fabric, info, &domain, NULL);
	rc = rc ? rc : fi_cq_open(domain, &cqa, &cq, NULL);
	rc = rc ? rc : fi_av_open(domain, &ava, &av, NULL);
	rc = rc ? rc : fi_endpoint(domain, info, &ep, NULL);
	rc = rc ? rc : fi_ep_bind(ep, &cq->fid, FI_TRANSMIT | FI_RECV);
	rc = rc ? rc : fi_ep_bind(ep, &av->fid, 0);
	rc = rc ? rc : fi_enable(ep);
	if (ep)
		fi_close(&ep->fid);
	if (av)
		fi_close(&av->fid);
	if (cq)
		fi_close(&cq->fid);
	if (domain)
		fi_close(&domain->fid);
	if (fabric)
		fi_close(&fabric->fid);
	fi_freeinfo(info);
	fi_freeinfo(h);
	return rc;
}

/* All ports of the range are taken: the address is in use, and the errno says so. */
static void ports_in_use(struct ct *ct)
{
	struct sockaddr_in a = { .sin_family = AF_INET };
	int i, s[4];

	for (i = 0; i < 4; i++) {
		s[i] = socket(AF_INET, SOCK_STREAM, 0);
		a.sin_port = htons((uint16_t)e2e_port(i));
		if (bind(s[i], (struct sockaddr *)&a, sizeof(a)) || listen(s[i], 1))
			ct_unsupported(ct, "port %d is in use by somebody else", e2e_port(i));
	}
	e2e_ports(ct, 0, 4);
	CT_EQ(ct, open_all(ct), -FI_EADDRINUSE);
	close(s[2]);
	/* One is enough. */
	CT_OK(ct, open_all(ct));
	close(s[0]);
	close(s[1]);
	close(s[3]);
}

/* Endpoints use up a range one by one; closing one makes room again. */
static int enable_one(struct ct_dom *dom, struct ct_ep *like, struct fid_ep **ep)
{
	int rc = fi_endpoint(dom->domain, dom->info, ep, NULL);

	if (!rc) {
		rc = fi_ep_bind(*ep, &like->txcq->fid, FI_TRANSMIT | FI_RECV);
		rc = rc ? rc : fi_ep_bind(*ep, &like->av->fid, 0);
		rc = rc ? rc : fi_enable(*ep);
	}
	return rc;
}

/*
 * Four ports, of which both verbs devices in the same process, which libfabric's own provider for
 * these opens, may have one each.
 */
static void ports_used_up(struct ct *ct)
{
	struct fid_ep *more[3] = { NULL };
	struct ct_dom dom;
	struct ct_ep e[2];
	int rc = 0;

	e2e_ports(ct, 10, 4);
	ct_open(ct, &dom, NULL);
	ct_ep_open(&dom, &e[0]);
	ct_ep_open(&dom, &e[1]);
	for (int i = 0; i < 3 && !rc; i++)
		rc = enable_one(&dom, &e[0], &more[i]);
	CT_EQ(ct, rc, -FI_EADDRINUSE);
	ct_ep_close(&e[1]);
	ct_ep_open(&dom, &e[1]);
	for (int i = 0; i < 3; i++)
		if (more[i])
			CT_OK(ct, fi_close(&more[i]->fid));
	ct_ep_close(&e[0]);
	ct_ep_close(&e[1]);
	ct_close(&dom);
}

static const char *const nonsense[][2] = {
	{ "HEDDLE_ADDR", "no-such-interface" },
	{ "HEDDLE_ADDR", "203.0.113.77" },
	{ "HEDDLE_PORTS", "9-1" },
	{ "HEDDLE_PORTS", "99999" },
	{ "HEDDLE_ALLOW", "1.2.3.4/77" },
	{ "HEDDLE_ALLOW", "nonsense" },
	{ "HEDDLE_TRANSPORT", "pigeon" },
	{ "HEDDLE_UNEXPECTED_MAX", "-3" },
	{ "HEDDLE_EAGER_SHM", "many" },
};

/*
 * arg: which. Nonsense is told of and refused, or told of and replaced by the
 * default; it never crashes.
 */
static void setting(struct ct *ct)
{
	const char *const *n = nonsense[ct->cs->arg];
	char text[4096] = "";
	FILE *log = tmpfile();
	size_t got;
	int old = dup(2);

	CT_TRUE(ct, log && old >= 0);
	e2e_set(ct, n[0], n[1]);
	dup2(fileno(log), 2);
	open_all(ct);
	dup2(old, 2);
	rewind(log);
	got = fread(text, 1, sizeof(text) - 1, log);
	text[got] = 0;
	/* The line names what is wrong: the setting, or the value that was given. */
	if (!strstr(text, n[0]) && !strstr(text, n[0] + 7) && !strstr(text, n[1]))
		ct_fail(ct, "nothing was said of %s=%s: \"%s\"", n[0], n[1], text);
	fclose(log);
}

const struct ct_case e2e_outside[] = {
	{ "ALLOW", "stranger", { gate, stranger } },
	{ "GARBAGE", "from-strangers", { target, hooligan, witness }, .seconds = 120 },
	{ "PORTS", "in-use", { ports_in_use } },
	{ "PORTS", "used-up", { ports_used_up } },
	{ "SETTING", "no-such-interface", { setting }, .arg = 0 },
	{ "SETTING", "not-an-own-address", { setting }, .arg = 1 },
	{ "SETTING", "ports-backwards", { setting }, .arg = 2 },
	{ "SETTING", "ports-too-large", { setting }, .arg = 3 },
	{ "SETTING", "allow-prefix", { setting }, .arg = 4 },
	{ "SETTING", "allow-word", { setting }, .arg = 5 },
	{ "SETTING", "transport", { setting }, .arg = 6 },
	{ "SETTING", "negative-size", { setting }, .arg = 7 },
	{ "SETTING", "size-word", { setting }, .arg = 8 },
	{ 0 }
};
