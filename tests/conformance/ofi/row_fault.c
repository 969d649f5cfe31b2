/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* Faults: peers that are killed, forked children, signals, no descriptors left. */
#include "ct.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#define LARGE (4u << 20)

/* ---- a peer is killed ---- */

static void kill_rank(struct ct *ct, int rank)
{
	if (kill(ct->pid[rank], SIGKILL))
		ct_fail(ct, "cannot kill rank %d: %s", rank, strerror(errno));
}

/* ct_sync between the ranks that are left: 0 and 2. */
static void meet(struct ct *ct, struct ct_ep *e)
{
	char c = 'M';
	int other = 2 - ct->rank;

	ct_put(ct, other, &c, 1);
	ct_get(ct, e, other, &c, 1);
}

/* Sends to the dead: each is refused at the call or completes; in error sooner or later. */
static void send_to_dead(struct ct_ep *e, int rank, char *buf, size_t len)
{
	double end = ct_deadline(e->ct);
	struct ct_comp c = { 0 };
	ssize_t rc;

	for (;;) {
		ct_late(e->ct, end, "sends to a dead peer to fail");
		rc = fi_tsend(e->ep, buf, len, NULL, e->addr[rank], 5, CTX(900));
		if (rc == -FI_EAGAIN) {
			ct_progress(e);
			ct_pause();
			continue;
		}
		if (rc)
			return;
		ct_of(e, CTX(900), &c);
		if (c.err)
			return;
	}
}

/* Rank 1 takes part until it is killed; what it sends nobody has asked for. */
static void victim(struct ct *ct)
{
	struct ct_dom dom;
	struct ct_ep e;
	char *buf = ct_alloc(ct, LARGE);

	ct_start(ct, &dom, &e, NULL);
	ct_ping(&e, 0);
	ct_doomed(ct);
	ct_put(ct, 0, buf, 1);
	for (;;)
		ct_progress(&e);
}

static void bystander(struct ct *ct)
{
	struct ct_dom dom;
	struct ct_ep e;
	int i;

	ct_start(ct, &dom, &e, NULL);
	for (i = 0; i < 200; i++)
		ct_ping(&e, 0);
	meet(ct, &e);
	ct_ep_close(&e);
	ct_close(&dom);
}

/* Takes note of what has completed before anything happened to the peer. */
static void outstanding(struct ct_ep *e, size_t posted, bool *open)
{
	struct ct_comp c;

	ct_idle(e, 50);
	while (ct_poll(e, &c))
		if ((uintptr_t)c.ctx <= posted)
			open[(uintptr_t)c.ctx - 1] = false;
}

/* arg: length of the sends that are outstanding when rank 1 is killed */
static void survivor(struct ct *ct)
{
	struct ct_dom dom;
	struct ct_comp c;
	struct ct_ep e;
	char *buf = ct_alloc(ct, LARGE), go;
	size_t i, posted = 0;
	bool open[20];

	ct_start(ct, &dom, &e, NULL);
	ct_ping(&e, 1);
	ct_get(ct, &e, 1, &go, 1);
	/*
	 * A peer that stands still takes nothing any more, so that large sends are
	 * outstanding for certain.
	 */
	if (ct->cs->arg == LARGE)
		ct_stop_rank(ct, 1);
	while (posted < 20 && !fi_tsend(e.ep, buf, ct->cs->arg, NULL, e.addr[1], 5, CTX(posted + 1)))
		open[posted++] = true;
	CT_TRUE(ct, posted > 0);
	outstanding(&e, posted, open);
	for (i = 0; i < 100; i++)
		ct_ping(&e, 2);
	kill_rank(ct, 1);
	for (i = 0; i < 100; i++)
		ct_ping(&e, 2);
	for (i = 0; i < posted; i++) {
		if (!open[i])
			continue;
		/* Those that nobody had taken when the peer died never arrive. */
		ct_of(&e, CTX(i + 1), &c);
		CT_TRUE(ct, c.err || ct->cs->arg < LARGE);
	}
	send_to_dead(&e, 1, buf, 8);
	send_to_dead(&e, 1, buf, LARGE);
	meet(ct, &e);
	ct_ep_close(&e);
	ct_close(&dom);
	free(buf);
}

/* Rank 1 sends 32 MiB that rank 0 is receiving; it dies at some moment of the transfer. */
static void dying_sender(struct ct *ct)
{
	size_t len = 32u << 20;
	struct ct_dom dom;
	struct ct_ep e;
	char *buf = ct_alloc(ct, len);

	ct_start(ct, &dom, &e, NULL);
	ct_ping(&e, 0);
	ct_fill(buf, len, 3);
	ct_doomed(ct);
	ct_tsend(&e, 0, buf, len, 5, CTX(1));
	ct_put(ct, 0, buf, 1);
	for (;;)
		ct_progress(&e);
}

/* arg: milliseconds from the matching to the kill */
static void receiver(struct ct *ct)
{
	size_t len = 32u << 20;
	struct ct_dom dom;
	struct ct_comp c;
	struct ct_ep e;
	char *buf = ct_alloc(ct, len), go;

	ct_start(ct, &dom, &e, NULL);
	ct_ping(&e, 1);
	/* No progress while waiting: the message is announced, not yet here. */
	ct_get(ct, NULL, 1, &go, 1);
	ct_trecv(&e, buf, len, 5, 0, CTX(1));
	ct_progress(&e);
	ct_idle(&e, (int)ct->cs->arg);
	kill_rank(ct, 1);
	ct_of(&e, CTX(1), &c);
	/* Whole and right, or an error: never a success with holes. */
	if (!c.err) {
		CT_EQ(ct, c.len, len);
		ct_verify(ct, buf, len, 3, "from a peer that died");
	}
	ct_ping(&e, 2);
	meet(ct, &e);
	ct_ep_close(&e);
	ct_close(&dom);
	free(buf);
}

static void receiver_friend(struct ct *ct)
{
	struct ct_dom dom;
	struct ct_ep e;

	ct_start(ct, &dom, &e, NULL);
	ct_ping(&e, 0);
	meet(ct, &e);
	ct_ep_close(&e);
	ct_close(&dom);
}

/* M6: an inject to a dead peer is refused or writes an error completion; it never vanishes. */
static void inject_dead(struct ct *ct)
{
	struct ct_dom dom;
	struct ct_comp c;
	struct ct_ep e;
	double end;
	ssize_t rc;
	char go;

	ct_start(ct, &dom, &e, NULL);
	ct_ping(&e, 1);
	ct_get(ct, &e, 1, &go, 1);
	kill_rank(ct, 1);
	end = ct_deadline(ct);
	for (;;) {
		rc = fi_inject(e.ep, "x", 1, e.addr[1]);
		if (rc && rc != -FI_EAGAIN)
			break;
		/*
		 * Those that went out before the death was noticed are lost with the
		 * peer, later ones are told.
		 */
		if (ct_poll(&e, &c)) {
			CT_TRUE(ct, c.err);
			break;
		}
		ct_late(ct, end, "an inject to a dead peer to fail");
		ct_pause();
	}
	meet(ct, &e);
	ct_ep_close(&e);
	ct_close(&dom);
}

static void inject_bystander(struct ct *ct)
{
	struct ct_dom dom;
	struct ct_ep e;

	ct_start(ct, &dom, &e, NULL);
	meet(ct, &e);
	ct_ep_close(&e);
	ct_close(&dom);
}

/* ---- fork ---- */

/* In the child of a fork the parent's objects answer with errors, at once. */
static int in_child(struct ct_ep *e)
{
	struct fi_cq_tagged_entry t;
	char buf[8] = { 0 };
	ssize_t rc;
	int i;

	alarm(CT_BUSY * 20);
	for (i = 0; i < 3; i++) {
		rc = fi_send(e->ep, buf, 8, NULL, e->addr[1], CTX(1));
		if (rc >= 0 || rc == -FI_EAGAIN)
			return 10;
		rc = fi_tinject(e->ep, buf, 8, e->addr[1], 1);
		if (rc >= 0 || rc == -FI_EAGAIN)
			return 11;
		rc = fi_trecv(e->ep, buf, 8, NULL, FI_ADDR_UNSPEC, 1, 0, CTX(1));
		if (rc >= 0 || rc == -FI_EAGAIN)
			return 12;
		rc = fi_cq_read(e->txcq, &t, 1);
		if (rc > 0)
			return 13;
	}
	fi_close(&e->ep->fid);
	return 0;
}

static void forking(struct ct *ct)
{
	struct ct_dom dom;
	struct ct_ep e;
	pid_t pid;
	int st = 0, i;

	ct_start(ct, &dom, &e, NULL);
	ct_ping(&e, !ct->rank);
	for (i = 0; !ct->rank && i < 3; i++) {
		pid = fork();
		if (!pid)
			_exit(in_child(&e));
		while (waitpid(pid, &st, WNOHANG) == 0)
			if (!ct_progress(&e))
				ct_pause();
		if (WIFSIGNALED(st))
			ct_fail(ct, "use after fork: the child %s",
				WTERMSIG(st) == SIGALRM ? "hangs" : "crashes");
		if (WEXITSTATUS(st))
			ct_fail(ct, "use after fork: call %d of the child was not refused",
				WEXITSTATUS(st) - 10);
	}
	ct_sync(ct, &e);
	/* The parent never noticed. */
	ct_ping(&e, !ct->rank);
	ct_finish(&e);
}

/* A child that only lives on, or only ends, changes nothing for its parent's traffic. */
static void fork_idle(struct ct *ct)
{
	struct ct_dom dom;
	struct ct_ep e;
	pid_t pid = -1;
	int i;

	ct_start(ct, &dom, &e, NULL);
	ct_ping(&e, !ct->rank);
	for (i = 0; i < 30; i++) {
		if (i % 10 == 0) {
			pid = fork();
			if (!pid && i)
				exit(0);
			while (!pid)
				pause();
		}
		ct_ping(&e, !ct->rank);
	}
	ct_finish(&e);
	/* A second stack after the fork is a new start. */
	ct_start(ct, &dom, &e, NULL);
	ct_ping(&e, !ct->rank);
	ct_finish(&e);
}

/*
 * A child that has never touched the parent's objects opens its own and talks
 * with its grandparent's peer.
 */
static void fork_new(struct ct *ct)
{
	struct ct_dom dom, own;
	struct ct_ep e, mine;
	char name[CT_NAME];
	pid_t pid;
	int st;

	ct_start(ct, &dom, &e, NULL);
	ct_ping(&e, !ct->rank);
	if (ct->rank) {
		ct_put(ct, 0, e.name, sizeof(e.name));
		ct_get(ct, &e, 0, name, sizeof(name));
		e.addr[0] = ct_insert(&e, name);
		ct_ping(&e, 0);
	} else {
		ct_get(ct, &e, 1, name, sizeof(name));
		pid = fork();
		if (!pid) {
			ct_open(ct, &own, NULL);
			ct_ep_open(&own, &mine);
			mine.addr[1] = ct_insert(&mine, name);
			ct_put(ct, 1, mine.name, sizeof(mine.name));
			ct_ping(&mine, 1);
			_exit(0);
		}
		while (waitpid(pid, &st, WNOHANG) == 0)
			if (!ct_progress(&e))
				ct_pause();
		CT_TRUE(ct, WIFEXITED(st) && !WEXITSTATUS(st));
	}
	ct_sync(ct, &e);
	ct_ep_close(&e);
	ct_close(&dom);
}

/* ---- signals ---- */

static volatile sig_atomic_t ticks;

static void tick(int sig)
{
	(void)sig;
	ticks++;
}

/* A handler without SA_RESTART runs every millisecond: EINTR never shows. */
static void signals(struct ct *ct)
{
	struct itimerval it = { { 0, 1000 }, { 0, 1000 } }, off = { { 0 } };
	struct sigaction sa = { .sa_handler = tick };
	struct ct_want want = { .wait = FI_WAIT_UNSPEC };
	struct fi_cq_tagged_entry t;
	struct ct_dom dom;
	struct ct_ep e;
	char *buf = ct_alloc(ct, LARGE);
	double end;
	ssize_t n;
	int i;

	sigaction(SIGALRM, &sa, NULL);
	setitimer(ITIMER_REAL, &it, NULL);
	ct_start(ct, &dom, &e, &want);
	for (i = 0; i < 30; i++) {
		if (ct->rank)
			ct_trecv(&e, buf, LARGE, 1, 0, CTX(1));
		else
			ct_tsend(&e, 1, buf, LARGE, 1, CTX(1));
		end = ct_deadline(ct);
		/*
		 * Woken by a signal it may return early, with -FI_EAGAIN, as
		 * if woken by fi_cq_signal.
		 */
		while (e.head == e.tail && (n = fi_cq_sread(e.rxcq, &t, 1, NULL, 2000)) != 1) {
			CT_EQ(ct, n, -FI_EAGAIN);
			ct_late(ct, end, "a message under signals");
		}
		if (e.head != e.tail)
			ct_done(&e, CTX(1));
		ct_ping(&e, !ct->rank);
	}
	CT_TRUE(ct, ticks > 0);
	ct_finish(&e);
	setitimer(ITIMER_REAL, &off, NULL);
	free(buf);
}

/* ---- no descriptors ---- */

/*
 * Opens the stack as far as it goes and closes it again; any refusal is fine,
 * a crash or a hang is not.
 */
static bool try_stack(struct ct *ct)
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
	bool ok = !ct_getinfo(ct, h, &info) && !fi_fabric(info->fabric_attr, &fabric, NULL) &&
		  !fi_domain(fabric, info, &domain, NULL) && !fi_cq_open(domain, &cqa, &cq, NULL) &&
		  !fi_av_open(domain, &ava, &av, NULL) && !fi_endpoint(domain, info, &ep, NULL) &&
		  !fi_ep_bind(ep, &cq->fid, FI_TRANSMIT | FI_RECV) && !fi_ep_bind(ep, &av->fid, 0) &&
		  !fi_enable(ep);

	if (ep)
		CT_OK(ct, fi_close(&ep->fid));
	if (av)
		CT_OK(ct, fi_close(&av->fid));
	if (cq)
		CT_OK(ct, fi_close(&cq->fid));
	if (domain)
		CT_OK(ct, fi_close(&domain->fid));
	if (fabric)
		CT_OK(ct, fi_close(&fabric->fid));
	fi_freeinfo(info);
	fi_freeinfo(h);
	return ok;
}

static void no_descriptors(struct ct *ct)
{
	struct rlimit was, now;
	rlim_t n, worked = 0;
	int fd = dup(0);

	close(fd);
	/* The library itself is loaded and set up before. */
	CT_TRUE(ct, try_stack(ct));
	CT_OK(ct, getrlimit(RLIMIT_NOFILE, &was));
	for (n = (rlim_t)fd; n < (rlim_t)fd + 40; n++) {
		now = was;
		now.rlim_cur = n;
		CT_OK(ct, setrlimit(RLIMIT_NOFILE, &now));
		worked += try_stack(ct);
	}
	CT_OK(ct, setrlimit(RLIMIT_NOFILE, &was));
	/* Forty are plenty, none is too few; and afterwards all is as before. */
	CT_TRUE(ct, worked > 0 && worked < 40);
	CT_TRUE(ct, try_stack(ct));
}

/*
 * The descriptors end when a peer wants to connect: it waits or fails, and
 * those that are there go on.
 */
static void no_descriptors_peer(struct ct *ct)
{
	struct rlimit was, now;
	struct ct_dom dom;
	struct ct_comp c;
	struct ct_ep e;
	int fd, r;

	ct_start(ct, &dom, &e, NULL);
	if (ct->rank < 2)
		ct_ping(&e, !ct->rank);
	if (!ct->rank) {
		CT_OK(ct, getrlimit(RLIMIT_NOFILE, &was));
		fd = dup(0);
		close(fd);
		now = was;
		now.rlim_cur = (rlim_t)fd;
		CT_OK(ct, setrlimit(RLIMIT_NOFILE, &now));
	}
	ct_sync(ct, &e);
	if (ct->rank == 2 && !fi_tsend(e.ep, "x", 1, NULL, e.addr[0], 44, CTX(1)))
		ct_idle(&e, 50);
	for (r = 0; r < 20 && ct->rank < 2; r++)
		ct_ping(&e, !ct->rank);
	ct_sync(ct, &e);
	if (!ct->rank)
		CT_OK(ct, setrlimit(RLIMIT_NOFILE, &was));
	ct_sync(ct, &e);
	/* The one that was held up is told, or gets through now. */
	while (ct_poll(&e, &c))
		CT_TRUE(ct, ct->rank == 2);
	ct_sync(ct, &e);
	ct_ep_close(&e);
	ct_close(&dom);
}

#define DIES(ms) { receiver, dying_sender, receiver_friend }, .arg = (ms)

const struct ct_case ct_fault[] = { { "FAULT", "killed-small", { survivor, victim, bystander }, .arg = 64 },
				    { "FAULT", "killed-large", { survivor, victim, bystander }, .arg = LARGE },
				    { "FAULT", "killed-sending-0", DIES(0) },
				    { "FAULT", "killed-sending-1", DIES(1) },
				    { "FAULT", "killed-sending-3", DIES(3) },
				    { "FAULT", "killed-sending-8", DIES(8) },
				    { "M6", "inject-error", { inject_dead, victim, inject_bystander } },
				    { "FAULT", "use-after-fork", CT_TWO(forking) },
				    { "FAULT", "fork-and-live", CT_TWO(fork_idle) },
				    { "FAULT", "fork-new-stack", CT_TWO(fork_new) },
				    { "FAULT", "signals", CT_TWO(signals) },
				    { "FAULT", "no-descriptors", { no_descriptors } },
				    { "FAULT",
				      "no-descriptors-for-a-peer",
				      { no_descriptors_peer, no_descriptors_peer, no_descriptors_peer } },
				    { 0 } };
