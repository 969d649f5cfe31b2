/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * XRC: ibv_open_xrcd(3), shared receive queues with numbers, queue pairs that only receive, and of
 * which there may be several handles:
 *
 *	hv_qp (handle) ─┐
 *	hv_qp (handle) ─┴─ hv_qp (real): the endpoint; no program has its address
 *	hv_qp (handle, `far`) ┈┈┈┘ of another context, or of another process
 *
 * A handle is a struct hv_qp whose `real` or `far` is not NULL; of the rest it has what is in the
 * public part, the context and the transport.
 *
 * What the contexts of one host that have the domain of an inode open say to each
 * other are questions of the engine. They trust each other as far as they know the
 * number of the domain: xrc.c.
 */
#ifndef HEDDLE_FRONT_VERBS_XRC_H
#define HEDDLE_FRONT_VERBS_XRC_H

#include "base/shared.h"
#include "front/verbs/qp.h"

struct hv_domain {
	struct hv_domain *next; /* hv_context.domains */
	struct hv_context *ctx;
	uint64_t number;
	bool is_inode;
	dev_t dev;
	ino_t ino;
	struct hd_shared secret; /* of an inode's: what its number is from */
	int file;		 /* the inode, whose number no other gets so; or -1 */
	int users;		 /* struct hv_xrcd, and queue pairs that receive */
	struct hd_ep *voice;	 /* by which others are asked; NULL: nobody has been */
	LIST_HEAD(, hv_via) vias;
	LIST_HEAD(, hv_guest) guests;
};

struct hv_xrcd {
	struct ibv_xrcd pub;
	struct hv_context *ctx;
	struct hv_domain *domain;
	int users; /* queues and queue pairs: under the lock */
};

static inline struct hv_xrcd *hv_xrcd_of(struct ibv_xrcd *xrcd)
{
	return hv_container(xrcd, struct hv_xrcd, pub);
}

/* hv_xrcd_number: what the engine knows the domain by, hd_ep_attr.domain: never 0. */
uint64_t hv_xrcd_number(const struct hv_xrcd *xrcd);

/*
 * hv_domain_put: one user less. hv_domain_voice: its voice: 0 or -errno. hv_domain_dest: what has
 * this number on this host: 0 or -errno. With the lock.
 */
void hv_domain_put(struct hv_domain *d);
int hv_domain_voice(struct hv_domain *d);
int hv_domain_dest(const struct hv_domain *d, uint32_t number, struct hd_dest **out);

/*
 * hv_xrc_handle: a handle of a queue pair that receives, with one user of the domain more; NULL: no
 * memory. real NULL: it is to be that of a far one. hv_xrc_unhandle: it is gone, and true when
 * nobody else has one. hv_xrc_is_held: has anybody? With the lock.
 */
struct hv_qp *hv_xrc_handle(struct hv_qp *real, struct hv_xrcd *xrcd, void *qp_context);
bool hv_xrc_unhandle(struct hv_qp *handle);
bool hv_xrc_is_held(const struct hv_qp *real);

/* hv_xrc_drop: what queues with numbers have completed for this endpoint is gone. With the lock. */
void hv_xrc_drop(struct hv_context *ctx, uint32_t index);

/* hv_xrc_has: has it completed something there that nobody has polled? With the lock. */
bool hv_xrc_has(const struct hv_context *ctx, uint32_t index);

/* ---- what is asked --------------------------------------------------------------------------- */

enum hv_ask {
	HV_ASK_LEND = 1, /* a queue: xrc/lend.c */
	HV_ASK_OPEN,	 /* a queue pair, and the rest: xrc/far.c */
	HV_ASK_MODIFY,
	HV_ASK_QUERY,
	HV_ASK_CLOSE,
	HV_ASK_EVENT, /* the other way round: something has happened to it */
};

/* Begins each question. */
struct hv_ask_head {
	uint32_t what;
	uint32_t number;
	uint64_t domain;
};

/* hv_ask_is_right: is it of this kind and length, and from somebody of the domain? */
bool hv_ask_is_right(const struct hv_domain *d, const struct hd_question *q, enum hv_ask what, size_t len);

/* ---- queues that are lent: xrc/lend.c -------------------------------------------------------- */

/*
 * hv_lend_stray: hd_ep_attr.stray of a queue pair that receives. hv_lend_asked: hd_ep_attr.asked
 * of a queue. hv_lend_forget: this queue pair sends nothing on any more. hv_lend_close: the
 * domain goes. With the lock.
 */
void hv_lend_stray(void *owner, uint32_t number);
int hv_lend_asked(void *owner, const struct hd_question *q);
void hv_lend_forget(struct hv_qp *real);
void hv_lend_close(struct hv_domain *d);

/* ---- queue pairs of others: xrc/far.c -------------------------------------------------------- */

struct hv_far;

/*
 * hv_far_open, hv_far_modify, hv_far_query, hv_far_close: ibv_open_qp(3) and what can be done to
 * what it returns, where the queue pair is in another context of the host. They wait for its
 * answer. NULL or a positive errno.
 */
struct ibv_qp *hv_far_open(struct hv_xrcd *xrcd, uint32_t number, void *qp_context);
int hv_far_modify(struct hv_qp *handle, const struct ibv_qp_attr *attr, int mask);
int hv_far_query(struct hv_qp *handle, struct ibv_qp_attr *attr, int mask, struct ibv_qp_init_attr *init);
void hv_far_close(struct hv_qp *handle);

/*
 * hv_far_asked: hd_ep_attr.asked of a queue pair that receives. hv_far_told: that of a domain's
 * voice. hv_far_event: whoever has the queue pair elsewhere is told. With the lock.
 */
int hv_far_asked(void *owner, const struct hd_question *q);
int hv_far_told(void *owner, const struct hd_question *q);
void hv_far_event(struct hv_qp *real, enum ibv_event_type type);

#endif
