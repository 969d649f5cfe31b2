/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Poll sets, fi_poll(3): a turn of progress, and a look at the queues and counters of one domain.
 */
#include "front/ofi/stubs.h"

#include <stdlib.h>

struct member {
	struct fid *fid;
	uint64_t events; /* of a counter: hd_cntr_events when fi_poll looked last */
};

struct hd_fi_poll {
	struct fid_poll fid;
	uint32_t magic;
	struct hd_fi_domain *domain;
	struct member *members; /* under the node's lock, with count, room and next */
	size_t count, room;
	size_t next; /* whom fi_poll asks first: programs with a short array get to know of all */
	struct hd_fi_object object;
};

static bool has_news(struct member *m)
{
	uint64_t events;

	if (m->fid->fclass == FI_CLASS_CQ)
		return hd_cq_peek(((struct hd_fi_cq *)m->fid)->cq) != NULL;
	events = hd_cntr_events(((struct hd_fi_cntr *)m->fid)->cntr);
	if (events == m->events)
		return false;
	m->events = events;
	return true;
}

static int poll_poll(struct fid_poll *fid, void **context, int count)
{
	struct hd_fi_poll *poll = (struct hd_fi_poll *)fid;
	size_t looked = 0;
	int found = 0;

	if (count < 0 || (count && !context))
		return hd_fi_no(FI_EINVAL, "fi_poll without room for contexts");
	hd_fi_lock(poll->domain);
	hd_node_poll(poll->domain->node);
	while (looked < poll->count && found < count) {
		struct member *m = &poll->members[(poll->next + looked++) % poll->count];

		if (has_news(m))
			context[found++] = m->fid->context;
	}
	if (poll->count)
		poll->next = (poll->next + looked) % poll->count;
	hd_fi_unlock(poll->domain);
	if (!found)
		hd_node_rest(poll->domain->node);
	return found;
}

/* The domain, and the count of users, of what may be polled: a CQ or a counter. */
static _Atomic int *users_of(struct fid *fid, struct hd_fi_domain **domain)
{
	struct hd_fi_cntr *cntr = hd_fi_as(hd_fi_cntr, HD_FI_CNTR, FI_CLASS_CNTR, fid);
	struct hd_fi_cq *cq = hd_fi_as(hd_fi_cq, HD_FI_CQ, FI_CLASS_CQ, fid);

	if (cq) {
		*domain = cq->domain;
		return &cq->users;
	}
	if (!cntr)
		return NULL;
	*domain = cntr->domain;
	return &cntr->users;
}

static int check_event_fid(const struct hd_fi_poll *poll, struct fid *fid, uint64_t flags,
			   _Atomic int **users)
{
	struct hd_fi_domain *domain;

	*users = users_of(fid, &domain);
	if (!*users)
		return hd_fi_no(FI_EINVAL, "a poll set takes completion queues and counters only");
	if (flags)
		return hd_fi_no(FI_EBADFLAGS, "fi_poll_add and fi_poll_del take no flags");
	return domain == poll->domain
		       ? 0
		       : hd_fi_no(FI_EDOMAIN, "a queue or counter of another domain than the poll set's");
}

static struct member *poll_find(struct hd_fi_poll *poll, const struct fid *fid)
{
	for (size_t i = 0; i < poll->count; i++)
		if (poll->members[i].fid == fid)
			return &poll->members[i];
	return NULL;
}

static int poll_insert(struct hd_fi_poll *poll, struct fid *fid)
{
	if (poll->count == poll->room) {
		size_t room = poll->room ? 2 * poll->room : 8;
		struct member *grown = reallocarray(poll->members, room, sizeof(*grown));

		if (!grown)
			return hd_fi_no(FI_ENOMEM);
		poll->members = grown;
		poll->room = room;
	}
	poll->members[poll->count++] = (struct member){ .fid = fid };
	return 0;
}

static int poll_add(struct fid_poll *fid, struct fid *event_fid, uint64_t flags)
{
	struct hd_fi_poll *poll = (struct hd_fi_poll *)fid;
	_Atomic int *users;
	int rc = check_event_fid(poll, event_fid, flags, &users);

	if (rc)
		return rc;
	hd_fi_lock(poll->domain);
	rc = poll_find(poll, event_fid) ? hd_fi_no(FI_EINVAL, "fi_poll_add of what is in the poll set")
					: poll_insert(poll, event_fid);
	if (!rc)
		atomic_fetch_add(users, 1);
	hd_fi_unlock(poll->domain);
	return rc;
}

static int poll_del(struct fid_poll *fid, struct fid *event_fid, uint64_t flags)
{
	struct hd_fi_poll *poll = (struct hd_fi_poll *)fid;
	_Atomic int *users;
	struct member *m;
	int rc = check_event_fid(poll, event_fid, flags, &users);

	if (rc)
		return rc;
	hd_fi_lock(poll->domain);
	m = poll_find(poll, event_fid);
	if (m) {
		*m = poll->members[--poll->count];
		poll->next = 0;
		atomic_fetch_sub(users, 1);
	}
	hd_fi_unlock(poll->domain);
	return m ? 0 : hd_fi_no(FI_EINVAL, "fi_poll_del of what is not in the poll set");
}

/*
 * Nothing is associated with a poll set but its members, which it lets go: programs close
 * it without removing them.
 */
static int poll_close(struct fid *fid)
{
	struct hd_fi_poll *poll = (struct hd_fi_poll *)fid;
	struct hd_fi_domain *domain;

	for (size_t i = 0; i < poll->count; i++)
		atomic_fetch_sub(users_of(poll->members[i].fid, &domain), 1);
	poll->magic = 0;
	hd_fi_domain_drop(poll->domain, &poll->object);
	free(poll->members);
	free(poll);
	return 0;
}

static struct fi_ops poll_fid_ops = HD_FI_FID_OPS(poll_close, hd_fi_no_bind, hd_fi_no_control);

static struct fi_ops_poll poll_ops = {
	.size = sizeof(struct fi_ops_poll),
	.poll = poll_poll,
	.poll_add = poll_add,
	.poll_del = poll_del,
};

int hd_fi_poll_open(struct fid_domain *domain_fid, struct fi_poll_attr *attr, struct fid_poll **out)
{
	struct hd_fi_domain *domain = hd_fi_as(hd_fi_domain, HD_FI_DOMAIN, FI_CLASS_DOMAIN, domain_fid);
	struct hd_fi_poll *poll;

	if (!domain || !out)
		return hd_fi_no(FI_EINVAL, "fi_poll_open without a domain, or room for the poll set");
	if (attr && attr->flags)
		return hd_fi_no(FI_EBADFLAGS, "fi_poll_open takes no flags");
	poll = calloc(1, sizeof(*poll));
	if (!poll)
		return hd_fi_no(FI_ENOMEM);
	poll->fid.fid = (struct fid){ .fclass = FI_CLASS_POLL, .ops = &poll_fid_ops };
	poll->fid.ops = &poll_ops;
	poll->domain = domain;
	poll->magic = HD_FI_POLL;
	hd_fi_domain_add(domain, &poll->object, &poll->fid.fid);
	*out = &poll->fid;
	return 0;
}
