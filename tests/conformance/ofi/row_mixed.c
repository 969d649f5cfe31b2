/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Connected endpoints in a domain that was opened for connectionless ones, and that the program
 * uses from one thread at a time, fi_domain(3): event queues belong to the fabric, so that another
 * thread may read them meanwhile.
 */
#include "connect.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#define ROUNDS 200

struct reader {
	struct fid_eq *eq;
	pthread_t thread;
	atomic_bool over;
	ssize_t got; /* what was no -FI_EAGAIN */
};

static void *read_events(void *arg)
{
	struct reader *r = arg;
	struct fi_eq_cm_entry cm;
	uint32_t event;
	ssize_t n;

	while (!atomic_load(&r->over)) {
		n = fi_eq_sread(r->eq, &event, &cm, sizeof(cm), 5, 0);
		if (n != -FI_EAGAIN && n != -FI_ETIMEDOUT)
			r->got = n;
	}
	return NULL;
}

/* The same domain as *dom, for connected endpoints. */
static void other_type(const struct ct_dom *dom, struct ct_dom *msg)
{
	const struct ct_want want = { .type = FI_EP_MSG, .threading = FI_THREAD_DOMAIN };
	struct fi_info *hints = ct_hints(dom->ct, &want), *list, *i;
	int rc = ct_getinfo(dom->ct, hints, &list);

	fi_freeinfo(hints);
	if (rc)
		ct_unsupported(dom->ct, "no connected endpoints: %s", fi_strerror(-rc));
	for (i = list; i && strcmp(i->domain_attr->name, dom->info->domain_attr->name);)
		i = i->next;
	if (!i)
		ct_unsupported(dom->ct, "no domain has both types");
	*msg = *dom;
	msg->want = want;
	msg->info = fi_dupinfo(i);
	fi_freeinfo(list);
}

static void two_types(struct ct *ct, bool msg_first)
{
	const struct ct_want want = { .type = FI_EP_RDM, .threading = FI_THREAD_DOMAIN };
	struct ct_dom dom, msg;
	struct ct_ep rdm, conn;
	struct reader r = { 0 };

	ct_open(ct, &dom, &want);
	other_type(&dom, &msg);
	if (!msg_first) {
		ct_ep_open(&dom, &rdm);
		ct_join(&rdm);
		ct_ping(&rdm, 1 - ct->rank);
	}
	ct_ep_open(&msg, &conn);
	ct_join(&conn);
	if (msg_first) {
		ct_ep_open(&dom, &rdm);
		ct_join(&rdm);
	}
	r.eq = conn.eq;
	CT_EQ(ct, pthread_create(&r.thread, NULL, read_events, &r), 0);
	for (int i = 0; i < ROUNDS; i++) {
		ct_ping(&rdm, 1 - ct->rank);
		ct_ping(&conn, 1 - ct->rank);
	}
	atomic_store(&r.over, true);
	CT_EQ(ct, pthread_join(r.thread, NULL), 0);
	CT_EQ(ct, r.got, 0);
	ct_sync(ct, &conn);
	ct_ep_close(&conn);
	fi_freeinfo(msg.info);
	ct_finish(&rdm);
}

static void connected_later(struct ct *ct)
{
	two_types(ct, false);
}

static void connected_first(struct ct *ct)
{
	two_types(ct, true);
}

const struct ct_case ct_mixed[] = {
	{ "CM", "other-domain", { connected_later, connected_later } },
	{ "CM", "other-domain-first", { connected_first, connected_first } },
	{ 0 },
};
