/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * kill -9 at any moment, again and again, with a living forked child and without: rank 1 raises
 * victims and kills them, rank 0 talks with them, rank 2 must not notice.
 */
#include "e2e.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define VICTIMS 40
#define SENDS 6
#define LONG_LEN (2u << 20)
/* seconds until every operation to a dead peer has ended: generous, the machine is busy */
#define TOLD 5.0

static size_t len_of(size_t i)
{
	static const size_t lens[] = { 0, 64, 9000, 200000, LONG_LEN, 30000 };

	return lens[i % CT_COUNT(lens)];
}

/* A victim: sends to rank 0 and takes from it as fast as it can, until it is killed. */
static void __attribute__((noreturn)) live(struct ct *ct, const char *server, bool with_child)
{
	struct ct_dom dom;
	struct ct_ep e;
	struct ct_comp c;
	size_t i;
	char *buf = ct_alloc(ct, LONG_LEN);

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	ct_open(ct, &dom, NULL);
	ct_ep_open(&dom, &e);
	e.addr[0] = ct_insert(&e, server);
	ct_put(ct, 0, e.name, sizeof(e.name));
	/* The child inherits whatever the victim has open and outlives it. */
	if (with_child && !fork()) {
		prctl(PR_SET_PDEATHSIG, 0);
		for (;;)
			pause();
	}
	for (i = 0;; i++) {
		(void)!fi_trecv(e.ep, buf, LONG_LEN, NULL, FI_ADDR_UNSPEC, i % SENDS, 0, CTX(1));
		(void)!fi_tsend(e.ep, buf, len_of(i), NULL, e.addr[0], 1000 + i % SENDS, CTX(2));
		while (ct_poll(&e, &c))
			;
	}
}

static void killer(struct ct *ct)
{
	char server[CT_NAME], ok;
	int i;

	ct_get(ct, NULL, 0, server, sizeof(server));
	for (i = 0; i < VICTIMS; i++) {
		pid_t pid = fork();

		if (!pid)
			live(ct, server, i & 1);
		CT_TRUE(ct, pid > 0);
		/* Some die while they connect, others in full swing. */
		usleep((useconds_t)(ct_range(ct, 60) * 1000));
		/*
		 * Rank 0 tells that it has heard of this one: the name must have
		 * been sent before the end.
		 */
		ct_get(ct, NULL, 0, &ok, 1);
		usleep((useconds_t)(ct_range(ct, 40) * 1000));
		CT_OK(ct, kill(pid, SIGKILL));
		CT_TRUE(ct, waitpid(pid, NULL, 0) == pid);
		ct_put(ct, 0, &ok, 1);
	}
	ct_sync(ct, NULL);
}

/* Sends to a victim that may die at any moment; what the provider does not take is left out. */
static size_t send_all(struct ct_ep *e, char *buf, fi_addr_t to)
{
	double end = ct_now() + 0.05;
	size_t i = 0;

	while (i < SENDS && ct_now() < end) {
		ssize_t rc = fi_tsend(e->ep, buf, len_of(i), NULL, to, i, CTX(100 + i));

		if (!rc)
			i++;
		else if (rc != -FI_EAGAIN)
			break;
		ct_progress(e);
	}
	return i;
}

static void serve_one(struct ct *ct, struct ct_ep *e, char *buf)
{
	char name[CT_NAME], ok = 'O';
	fi_addr_t addr;
	struct ct_comp c;
	size_t i, posted;
	double dead;

	ct_get(ct, e, 1, name, sizeof(name));
	addr = ct_insert(e, name);
	ct_put(ct, 1, &ok, 1);
	for (i = 0; i < SENDS; i++)
		ct_trecv(e, buf, LONG_LEN, 1000 + i, 0, CTX(200 + i));
	posted = send_all(e, buf, addr);
	ct_get(ct, e, 1, &ok, 1);
	dead = ct_now();
	/* It is gone: whatever was sent to it ends, well or in error. */
	for (i = 0; i < posted; i++) {
		ct_of(e, CTX(100 + i), &c);
		if (ct_now() - dead > TOLD * ct->conf->scale)
			ct_fail(ct, "a send to a dead peer took %.1f s to end", ct_now() - dead);
	}
	/*
	 * Receives that nothing matched are still this rank's own; those half
	 * filled end by themselves.
	 */
	for (i = 0; i < SENDS; i++) {
		fi_cancel(&e->ep->fid, CTX(200 + i));
		ct_of(e, CTX(200 + i), &c);
	}
	CT_OK(ct, fi_av_remove(e->av, &addr, 1, 0));
}

/*
 * Messages of victims that nobody wanted are thrown away, so that the next one's
 * are not mistaken for them.
 */
static void throw_away(struct ct_ep *e, char *buf)
{
	struct ct_comp c;

	for (;;) {
		struct iovec iov = { buf, LONG_LEN };
		struct fi_msg_tagged t = { .msg_iov = &iov,
					   .iov_count = 1,
					   .addr = FI_ADDR_UNSPEC,
					   .tag = 1000,
					   .ignore = 15,
					   .context = CTX(300) };

		CT_POST(e, fi_trecvmsg(e->ep, &t, FI_PEEK | FI_DISCARD));
		ct_of(e, CTX(300), &c);
		if (c.err == FI_ENOMSG)
			return;
	}
}

static void server(struct ct *ct)
{
	struct ct_dom dom;
	struct ct_ep e;
	char *buf = ct_alloc(ct, LONG_LEN), name[CT_NAME];
	int i, fds, files = e2e_shm_files(ct);
	double end;

	/*
	 * A dead peer's forked child keeps its listening socket: such a peer is
	 * given up by this time-out.
	 */
	e2e_set(ct, "HEDDLE_CONNECT_TIMEOUT", "1500");
	ct_open(ct, &dom, NULL);
	ct_ep_open(&dom, &e);
	ct_put(ct, 1, e.name, sizeof(e.name));
	ct_put(ct, 2, e.name, sizeof(e.name));
	ct_get(ct, NULL, 2, name, sizeof(name));
	e.addr[2] = ct_insert(&e, name);
	ct_ping(&e, 2);
	fds = e2e_fds(ct);
	for (i = 0; i < VICTIMS; i++) {
		serve_one(ct, &e, buf);
		throw_away(&e, buf);
		ct_ping(&e, 2);
	}
	/* The links of the dead are gone with them, descriptors and all. */
	end = ct_deadline(ct);
	while (e2e_fds(ct) > fds) {
		ct_late(ct, end, "the descriptors of dead peers' links to be closed");
		ct_idle(&e, 10);
	}
	CT_EQ(ct, e2e_shm_files(ct), files);
	ct_sync(ct, &e);
	ct_ep_close(&e);
	ct_close(&dom);
	free(buf);
}

static void bystander(struct ct *ct)
{
	struct ct_dom dom;
	struct ct_ep e;
	char name[CT_NAME];
	int i;

	ct_open(ct, &dom, NULL);
	ct_ep_open(&dom, &e);
	ct_get(ct, NULL, 0, name, sizeof(name));
	e.addr[0] = ct_insert(&e, name);
	ct_put(ct, 0, e.name, sizeof(e.name));
	for (i = 0; i <= VICTIMS; i++)
		ct_ping(&e, 0);
	ct_sync(ct, &e);
	ct_ep_close(&e);
	ct_close(&dom);
}

/* ---- a restart under the same name ---- */

static void open_at(struct ct *ct, struct ct_dom *dom, struct ct_ep *e)
{
	static const struct ct_want none;
	struct fi_info *h = ct_hints(ct, &none);
	char port[12];

	snprintf(port, sizeof(port), "%d", e2e_port(20));
	memset(dom, 0, sizeof(*dom));
	dom->ct = ct;
	CT_OK(ct, fi_getinfo(CT_API, ct->conf->node[0], port, FI_SOURCE, h, &dom->info));
	fi_freeinfo(h);
	CT_OK(ct, fi_fabric(dom->info->fabric_attr, &dom->fabric, NULL));
	CT_OK(ct, fi_domain(dom->fabric, dom->info, &dom->domain, NULL));
	ct_ep_open(dom, e);
}

/* Comes up under a fixed name, answers one ping, and goes on until it is killed. */
static void __attribute__((noreturn)) reborn(struct ct *ct, const char *peer)
{
	struct ct_dom dom;
	struct ct_ep e;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	open_at(ct, &dom, &e);
	e.addr[0] = ct_insert(&e, peer);
	ct_put(ct, 0, e.name, sizeof(e.name));
	ct_ping(&e, 0);
	for (;;)
		ct_progress(&e);
}

static void raiser(struct ct *ct)
{
	char peer[CT_NAME], ok;
	int i;

	ct_get(ct, NULL, 0, peer, sizeof(peer));
	for (i = 0; i < 10; i++) {
		pid_t pid = fork();

		if (!pid)
			reborn(ct, peer);
		ct_get(ct, NULL, 0, &ok, 1);
		CT_OK(ct, kill(pid, SIGKILL));
		CT_TRUE(ct, waitpid(pid, NULL, 0) == pid);
	}
	ct_sync(ct, NULL);
}

/*
 * The same name, ten lives: each of them is reached, and none gets what was
 * meant for the one before.
 */
static void caller(struct ct *ct)
{
	struct ct_dom dom;
	struct ct_ep e;
	char name[CT_NAME], ok = 'O';
	int i;

	ct_open(ct, &dom, NULL);
	ct_ep_open(&dom, &e);
	ct_put(ct, 1, e.name, sizeof(e.name));
	for (i = 0; i < 10; i++) {
		ct_get(ct, &e, 1, name, sizeof(name));
		e.addr[1] = ct_insert(&e, name);
		ct_ping(&e, 1);
		ct_put(ct, 1, &ok, 1);
		CT_OK(ct, fi_av_remove(e.av, &e.addr[1], 1, 0));
	}
	ct_sync(ct, &e);
	ct_ep_close(&e);
	ct_close(&dom);
}

const struct ct_case e2e_kill[] = {
	{ "KILL", "again-and-again", { server, killer, bystander }, .seconds = 150 },
	{ "KILL", "restart-same-name", { caller, raiser } },
	{ 0 }
};
