/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* Registered memory that other ranks reach, whatever mr_mode the domain has. */
#ifndef CT_REGION_H
#define CT_REGION_H

#include "ct.h"

#include <rdma/fi_rma.h>

/* What an initiator needs to know of a region. */
struct ct_place {
	uint64_t addr, key;
};

struct ct_region {
	struct fid_mr *mr;
	struct ct_place at;
	char *mem; /* zeroed */
};

/*
 * ct_region_open allocates and registers len bytes; key counts where programs choose.
 * ct_region_close undoes both.
 */
void ct_region_open(struct ct_ep *e, struct ct_region *r, size_t len, uint64_t access, uint64_t key);
void ct_region_close(struct ct_ep *e, struct ct_region *r);

/*
 * ct_region_ready binds and enables a region as the domain's mr_mode wants it, and
 * returns where others find it.
 */
struct ct_place ct_region_ready(struct ct_ep *e, struct fid_mr *mr, const void *base);

/*
 * ct_offer: rank 1 opens a region, and all others get to know *at; ct_take_back:
 * closed, and the case is over.
 */
void ct_offer(struct ct_ep *e, struct ct_region *r, size_t len, uint64_t access, struct ct_place *at);
void ct_take_back(struct ct_ep *e, struct ct_region *r);

/* What most cases of one-sided operations stand on: ct_start, then ct_offer. */
struct ct_rig {
	struct ct_dom dom;
	struct ct_ep e;
	struct ct_region r; /* of rank 1 */
	struct ct_place at;
	/* ct_rig_open_counted: of what this rank does, rank 1: of what is done to it */
	struct fid_cntr *read, *write;
};
void ct_rig_open(struct ct_rig *x, struct ct *ct, const struct ct_want *want, size_t len, uint64_t access);
void ct_rig_open_counted(struct ct_rig *x, struct ct *ct, const struct ct_want *want, size_t len,
			 uint64_t access);

/*
 * ct_cntr_bind opens a counter and binds it to an endpoint. ct_reaches waits until it has this
 * value, no more and no error.
 */
struct fid_cntr *ct_cntr_bind(struct ct_ep *e, uint64_t what);
void ct_reaches(struct ct_ep *e, struct fid_cntr *cntr, uint64_t value);

/*
 * ct_wrote, ct_have_read: the completion of this context is one of a write, a read. ct_rma_to: one
 * segment here, one there, at rank 1.
 */
void ct_wrote(struct ct_ep *e, void *ctx);
void ct_have_read(struct ct_ep *e, void *ctx);
struct fi_msg_rma ct_rma_to(const struct ct_ep *e, const struct iovec *iov, const struct fi_rma_iov *there,
			    void *ctx);

#endif
