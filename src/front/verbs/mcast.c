/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * ibv_attach_mcast(3), and datagrams to multicast GIDs: groups of the engine. A queue pair that is
 * attached is a member, by IPv4 and by IPv6 where its port has addresses of either; who sends
 * leaves by the interface of the address handle's own GID, and need not be attached. LIDs of groups
 * are told apart when a program detaches, and lead nowhere.
 */
#include "front/verbs/addr.h"
#include "front/verbs/entry.h"
#include "front/verbs/qp.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#define FAMILIES 2 /* IPv4, IPv6 */

struct hv_mcast {
	struct hv_mcast *next; /* hv_qp.mcasts */
	union ibv_gid gid;
	/* ibv_attach_mcast: with this LID; else it was made to send, from this GID */
	bool attached;
	uint16_t lid;
	uint8_t sgid_index;
	struct hd_group *groups[FAMILIES]; /* NULL: not in this family */
};

const union ibv_gid *hv_mcast_gid(const struct hv_mcast *m)
{
	return &m->gid;
}

/* ---- memberships ----------------------------------------------------------------------------- */

/* 0, or negative: in none of the families that `attr` leaves open. */
static int verbs_mcast_join(struct hv_qp *qp, struct hv_mcast *m, const struct sockaddr *from, unsigned how)
{
	struct sockaddr_storage to;
	struct hd_group_attr attr = { .addr = (struct sockaddr *)&to,
				      .how = how,
				      .from = from,
				      .not_own = qp->deaf_to_own,
				      .owner = m };
	int rc = -EADDRNOTAVAIL;

	for (int i = 0; i < FAMILIES; i++) {
		int one;

		if (from && from->sa_family != (i ? AF_INET6 : AF_INET))
			continue;
		if (!hv_addr_group(&m->gid, i ? AF_INET6 : AF_INET, &to, &attr.word))
			continue;
		one = hd_group_join(qp->ep, &attr, &m->groups[i]);
		if (rc)
			rc = one;
	}
	return rc;
}

static void verbs_mcast_leave(struct hv_mcast *m)
{
	for (int i = 0; i < FAMILIES; i++)
		if (m->groups[i])
			hd_group_leave(m->groups[i]);
	free(m);
}

static int mcast_make(struct hv_qp *qp, const struct hv_mcast *what, const struct sockaddr *from)
{
	struct hv_mcast *m = malloc(sizeof(*m));
	int rc;

	if (!m)
		return -ENOMEM;
	*m = *what;
	rc = verbs_mcast_join(qp, m, from, m->attached ? HD_GROUP_RECV : HD_GROUP_SEND);
	if (rc) {
		verbs_mcast_leave(m);
		return rc == -EMFILE || rc == -ENFILE ? -ENOMEM : rc;
	}
	m->next = qp->mcasts;
	qp->mcasts = m;
	return 0;
}

void hv_mcasts_leave(struct hv_qp *qp)
{
	struct hv_mcast *m;

	while ((m = qp->mcasts)) {
		qp->mcasts = m->next;
		verbs_mcast_leave(m);
	}
}

/* ---- attaching ------------------------------------------------------------------------------- */

static struct hv_mcast **mcast_find(struct hv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	struct hv_mcast **at = &qp->mcasts;

	while (*at && !((*at)->attached && (*at)->lid == lid && !memcmp(&(*at)->gid, gid, sizeof(*gid))))
		at = &(*at)->next;
	return at;
}

static int verbs_mcast_attach(struct hv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	const struct hv_mcast what = { .gid = *gid, .attached = true, .lid = lid };
	int rc;

	if (*mcast_find(qp, gid, lid))
		return 0;
	if (qp->ctx->attached == HV_MAX_ATTACHED)
		return ENOMEM;
	rc = mcast_make(qp, &what, NULL);
	if (rc)
		return -rc;
	qp->groups++;
	qp->ctx->attached++;
	return 0;
}

int hv_ibv_attach_mcast(struct ibv_qp *pub, const union ibv_gid *gid, uint16_t lid)
{
	struct hv_qp *qp = hv_qp_of(pub);
	int rc = HV_CHECK(pub);

	if (rc)
		return rc;
	if (qp->transport != HV_UD || !hv_gid_is_multicast(gid))
		return EINVAL;
	if (!hv_enter(qp->ctx))
		return EIO;
	rc = verbs_mcast_attach(qp, gid, lid);
	hv_leave(qp->ctx);
	return rc;
}

int hv_ibv_detach_mcast(struct ibv_qp *pub, const union ibv_gid *gid, uint16_t lid)
{
	struct hv_qp *qp = hv_qp_of(pub);
	struct hv_mcast **at, *m;
	int rc = HV_CHECK(pub);

	if (rc)
		return rc;
	if (!hv_enter(qp->ctx))
		return EIO;
	at = mcast_find(qp, gid, lid);
	m = *at;
	if (m) {
		*at = m->next;
		verbs_mcast_leave(m);
		qp->groups--;
		qp->ctx->attached--;
	}
	hv_leave(qp->ctx);
	return m ? 0 : EINVAL;
}

/* ---- sending --------------------------------------------------------------------------------- */

/* The address that what is sent from the handle's own GID leaves from. */
static void from_of(const struct hv_context *ctx, const struct ibv_ah_attr *ah, struct sockaddr_storage *out)
{
	const union ibv_gid *gid = &ctx->port.gids[ah->grh.sgid_index].gid;

	hv_addr_of_gid(gid, out);
}

static struct hv_mcast *sender(struct hv_qp *qp, const struct ibv_ah_attr *ah)
{
	struct hv_mcast *m = qp->mcasts;

	while (m && (m->attached || m->sgid_index != ah->grh.sgid_index ||
		     memcmp(&m->gid, &ah->grh.dgid, sizeof(m->gid)) != 0))
		m = m->next;
	return m;
}

/*
 * The kernel gives a loopback no route for groups of IPv6, so nothing can be sent from ::1,
 * or another address of it. All members are in the group of IPv4 as well: what names such a
 * GID leaves from 127.0.0.1.
 */
static int sender_make(struct hv_qp *qp, const struct hv_mcast *what, struct sockaddr_storage *from)
{
	struct sockaddr_in *in = (struct sockaddr_in *)from;
	int rc = mcast_make(qp, what, (struct sockaddr *)from);

	if (rc != -ENETUNREACH || from->ss_family != AF_INET6 ||
	    !qp->ctx->port.gids[what->sgid_index].is_loopback)
		return rc;
	*in = (struct sockaddr_in){ .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	return mcast_make(qp, what, (struct sockaddr *)from);
}

int hv_mcast_find(struct hv_qp *qp, const struct hv_ah *ah, struct hd_group **out)
{
	const struct ibv_ah_attr *av = &ah->attr;
	const struct hv_mcast what = { .gid = av->grh.dgid, .sgid_index = av->grh.sgid_index };
	struct hv_mcast *m;

	if (!av->is_global || !hv_gid_is_multicast(&av->grh.dgid))
		return -EINVAL;
	m = sender(qp, av);
	if (!m) {
		struct sockaddr_storage from;
		int rc;

		from_of(qp->ctx, av, &from);
		rc = sender_make(qp, &what, &from);
		if (rc)
			return rc;
		m = qp->mcasts;
	}
	*out = m->groups[m->groups[0] == NULL];
	return 0;
}
