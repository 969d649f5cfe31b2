/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Direct copies that the kernel refuses, from the start or later on: the
 * same results by another way.
 */
#include "e2e.h"

#include <errno.h>
#include <grp.h>
#include <seccomp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <unistd.h>

#define NOBODY 65534

enum {
	READS = 1,
	WRITES = 2
};

/* From now on the calls of these kinds fail with EPERM in all threads of this process. */
static void deny(struct ct *ct, int which)
{
	scmp_filter_ctx f = seccomp_init(SCMP_ACT_ALLOW);
	int rc = !f;

	if (f && which & READS)
		rc |= seccomp_rule_add(f, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(process_vm_readv), 0);
	if (f && which & WRITES)
		rc |= seccomp_rule_add(f, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(process_vm_writev), 0);
	if (f)
		rc |= seccomp_attr_set(f, SCMP_FLTATR_CTL_TSYNC, 1);
	if (f)
		rc |= seccomp_load(f);
	if (rc)
		ct_unsupported(ct, "a seccomp filter cannot be set here");
	seccomp_release(f);
}

/* The filter must bite, or the case would prove nothing. */
static void bites(struct ct *ct, int which)
{
	char a = 1, b = 0;
	struct iovec l = { &b, 1 }, r = { &a, 1 };

	if (which & READS)
		CT_TRUE(ct, process_vm_readv(getpid(), &l, 1, &r, 1, 0) < 0 && errno == EPERM);
	if (which & WRITES)
		CT_TRUE(ct, process_vm_writev(getpid(), &l, 1, &r, 1, 0) < 0 && errno == EPERM);
}

static void all_lengths(struct ct *ct, struct ct_ep *e, uint64_t seed)
{
	static const size_t lens[] = { 0, 100, 5000, 20000, 65536, 300001, 1 << 20, (8 << 20) + 3 };
	size_t i;

	for (i = 0; i < CT_COUNT(lens); i++)
		e2e_exchange(ct, e, !ct->rank, lens[i], seed + i);
}

/* arg: what is refused in rank 0, and times 4 in rank 1 */
static void from_start(struct ct *ct)
{
	int which = (int)(ct->rank ? ct->cs->arg / 4 : ct->cs->arg % 4);
	struct ct_dom dom;
	struct ct_ep e;

	if (which) {
		deny(ct, which);
		bites(ct, which);
	}
	ct_start(ct, &dom, &e, NULL);
	all_lengths(ct, &e, 1);
	if (e2e_forced("shm"))
		e2e_over(ct, &e, "shm");
	ct_finish(&e);
}

/* The same, while long messages are on their way in both directions. */
static void later(struct ct *ct)
{
	int which = (int)(ct->rank ? ct->cs->arg / 4 : ct->cs->arg % 4);
	size_t len = 24u << 20;
	struct ct_dom dom;
	struct ct_ep e;
	char *out = ct_alloc(ct, len), *in = ct_alloc(ct, len);
	int i;

	ct_start(ct, &dom, &e, NULL);
	all_lengths(ct, &e, 1);
	for (i = 0; i < 6; i++) {
		ct_fill(out, len, (uint64_t)(2 * i + ct->rank));
		memset(in, 0, len);
		ct_trecv(&e, in, len, 500, 0, CTX(1));
		ct_sync(ct, &e);
		ct_tsend(&e, !ct->rank, out, len, 500, CTX(2));
		ct_idle(&e, i == 2 ? 1 : 0);
		if (i == 2 && which) {
			deny(ct, which);
			bites(ct, which);
		}
		CT_EQ(ct, ct_done(&e, CTX(1)), len);
		ct_verify(ct, in, len, (uint64_t)(2 * i + !ct->rank), "while copies became refused");
		ct_done(&e, CTX(2));
	}
	all_lengths(ct, &e, 100);
	free(in);
	free(out);
	ct_finish(&e);
}

static void become(struct ct *ct, unsigned int uid)
{
	if (geteuid())
		ct_unsupported(ct, "only root can become another user");
	CT_OK(ct, setgroups(0, NULL));
	CT_OK(ct, setresgid(uid, uid, uid));
	CT_OK(ct, setresuid(uid, uid, uid));
	prctl(PR_SET_PDEATHSIG, 9);
}

/*
 * Both without CAP_SYS_PTRACE, and not dumpable since they changed their user: no
 * direct copies by default.
 */
static void unprivileged(struct ct *ct)
{
	struct ct_dom dom;
	struct ct_ep e;

	become(ct, NOBODY);
	CT_EQ(ct, prctl(PR_SET_DUMPABLE, 0), 0);
	ct_start(ct, &dom, &e, NULL);
	all_lengths(ct, &e, 1);
	ct_finish(&e);
}

static void switched_off(struct ct *ct)
{
	struct ct_dom dom;
	char text[4096];
	struct ct_ep e;

	if (ct->rank)
		e2e_set(ct, "HEDDLE_DIRECT_COPY", "no");
	ct_start(ct, &dom, &e, NULL);
	all_lengths(ct, &e, 1);
	ct_sync(ct, &e);
	if (e2e_forced("shm")) {
		e2e_link(ct, &e, text, sizeof(text));
		/* Whoever switched it off says so; heddle info tells both directions of a link. */
		CT_TRUE(ct, strstr(text, "\"works\": false") != NULL);
	}
	ct_finish(&e);
}

/* ---- who may share memory, and who may come at all ---- */

/* A process of another user is served, over TCP. */
static void other_user(struct ct *ct)
{
	struct ct_dom dom;
	struct ct_ep e;

	if (e2e_forced("shm") || e2e_forced("tcp"))
		e2e_set(ct, "HEDDLE_TRANSPORT", "auto");
	if (ct->rank)
		become(ct, NOBODY);
	ct_start(ct, &dom, &e, NULL);
	all_lengths(ct, &e, 1);
	if (!ct->rank)
		e2e_over(ct, &e, "tcp");
	ct_finish(&e);
}

/* And one of the same user, left to itself, shares memory. */
static void same_user(struct ct *ct)
{
	struct ct_dom dom;
	struct ct_ep e;

	e2e_set(ct, "HEDDLE_TRANSPORT", "auto");
	ct_start(ct, &dom, &e, NULL);
	all_lengths(ct, &e, 1);
	e2e_over(ct, &e, "shm");
	ct_finish(&e);
}

const struct ct_case e2e_refuse[] = {
	{ "COPY", "refused-reads", CT_TWO(from_start), .arg = READS | READS * 4 },
	{ "COPY", "refused-writes", CT_TWO(from_start), .arg = WRITES | WRITES * 4 },
	{ "COPY", "refused-both", CT_TWO(from_start), .arg = (READS | WRITES) * 5 },
	{ "COPY", "refused-on-one-side", CT_TWO(from_start), .arg = READS | WRITES },
	{ "COPY", "refused-crosswise", CT_TWO(from_start), .arg = READS | WRITES * 4 },
	{ "COPY", "refused-later", CT_TWO(later), .arg = (READS | WRITES) * 5 },
	{ "COPY", "refused-later-on-one-side", CT_TWO(later), .arg = READS | WRITES, .slow = true },
	{ "COPY", "refused-later-reads", CT_TWO(later), .arg = READS * 5, .slow = true },
	{ "COPY", "refused-later-writes", CT_TWO(later), .arg = WRITES * 5, .slow = true },
	{ "COPY", "unprivileged", CT_TWO(unprivileged) },
	{ "COPY", "switched-off", CT_TWO(switched_off) },
	{ "USER", "another", CT_TWO(other_user) },
	{ "USER", "the-same", CT_TWO(same_user) },
	{ 0 }
};
