/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * What triggered operations (trigger.c, trigger_take.c) and deferred work
 * (work.c) share; nobody else.
 */
#ifndef HEDDLE_FRONT_OFI_TRIGGERED_H
#define HEDDLE_FRONT_OFI_TRIGGERED_H

#include "front/ofi/trigger.h"

/* A call that waits for its counter, and as deferred work until its operation has ended. */
struct hd_fi_triggered {
	struct hd_trigger trigger;
	struct hd_work work;
	struct hd_fi_domain *domain;
	struct hd_fi_ep *ep;		/* NULL: an operation on a counter */
	struct hd_fi_cntr *cntr;	/* that it waits for; NULL once it has been started */
	struct hd_fi_cntr *completion;	/* deferred work, may be NULL */
	struct fi_deferred_work *asked; /* NULL: no deferred work, but a call with FI_TRIGGER */
	void *context;
	bool reports;		   /* deferred work that completes at its endpoint as well */
	enum hd_fi_cntr_kind kind; /* what it is to its endpoint */
	uint32_t what;		   /* enum hd_cqe_flag */
	uint64_t tag;
	int (*start)(struct hd_fi_triggered *t); /* tell the engine; caller holds the node's lock */
	LIST_ENTRY(hd_fi_triggered) of_ep, of_domain;
	union {
		struct hd_fi_send send;
		struct hd_fi_recv recv;
		struct {
			enum hd_rma_op op;
			uint32_t flags;
			struct fi_msg_rma msg;
			struct fi_rma_iov segs[HD_RMA_SEGS];
		} rma;
		struct {
			struct hd_fi_atomic call; /* its own lists are not looked at any more */
			struct hd_fi_atomic_lists lists;
		} atomic;
		struct {
			struct hd_fi_cntr *cntr;
			uint64_t value;
		} count;
	};
	size_t iov_count;
	struct iovec iov[HD_MAX_IOV];
	void *copy; /* of the data, with FI_INJECT */
};

/* hd_fi_trigger_cntr: the counter that a program names; -FI_EINVAL, -FI_EDOMAIN. */
int hd_fi_trigger_cntr(const struct hd_fi_domain *domain, struct fid_cntr *fid, struct hd_fi_cntr **out);

/*
 * hd_fi_take_send and the others check a call and take its arguments over into t, whose ep they
 * find filled in: 0, or what the call answers. flags: the program's.
 */
int hd_fi_take_send(struct hd_fi_triggered *t, const struct hd_fi_send *s, const struct iovec *iov,
		    size_t count, uint64_t flags);
int hd_fi_take_recv(struct hd_fi_triggered *t, const struct hd_fi_recv *r, uint64_t flags);
int hd_fi_take_rma(struct hd_fi_triggered *t, const struct fi_msg_rma *msg, enum hd_rma_op op,
		   uint64_t flags);
int hd_fi_take_atomic(struct hd_fi_triggered *t, const struct hd_fi_atomic *c);

/*
 * hd_fi_triggered_finish: submit t, which may be over before this returns; or, where rc says that
 * it was refused, free it. Returns rc.
 */
int hd_fi_triggered_finish(struct hd_fi_triggered *t, int rc);

/*
 * hd_fi_triggered_forget: end what waits or is under way without a completion.
 * Caller holds the node's lock.
 */
void hd_fi_triggered_forget(struct hd_fi_triggered *t);

#endif
