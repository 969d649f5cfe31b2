/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Answers for what is not offered, so that no slot of a table is NULL and nothing has to be tested
 * before a call. Four families of typed stubs:
 *
 *	no    -FI_ENOSYS: this provider does not do it
 *	idle  -FI_EOPBADSTATE: data calls of an endpoint before fi_enable
 *	queueless  -FI_ENOCQ: receives of an endpoint to which nothing is bound for them
 *	dead  -FI_EOPBADSTATE, with one line in the log: this process was forked from the one that
 *	      opened the node
 */
#ifndef HEDDLE_FRONT_OFI_STUBS_H
#define HEDDLE_FRONT_OFI_STUBS_H

#include "front/ofi/ofi.h"

extern struct fi_ops_msg hd_fi_no_msg_ops, hd_fi_idle_msg_ops;
extern struct fi_ops_tagged hd_fi_no_tagged_ops, hd_fi_idle_tagged_ops;
extern struct fi_ops_msg hd_fi_queueless_msg_ops;
extern struct fi_ops_tagged hd_fi_queueless_tagged_ops;
extern struct fi_ops_rma hd_fi_no_rma_ops, hd_fi_idle_rma_ops;
extern struct fi_ops_atomic hd_fi_no_atomic_ops;
extern struct fi_ops_collective hd_fi_no_collective_ops;
extern struct fi_ops_ep hd_fi_no_ep_ops;

/*
 * hd_fi_die gives an object of a domain the dead family's tables. Async-signal-safe:
 * it runs in a forked child.
 */
void hd_fi_die(struct fid *fid);

/* Single slots, for tables that offer the rest. */
int hd_fi_no_bind(struct fid *fid, struct fid *bfid, uint64_t flags);
int hd_fi_no_control(struct fid *fid, int command, void *arg);
int hd_fi_no_ops_open(struct fid *fid, const char *name, uint64_t flags, void **ops, void *context);
int hd_fi_no_tostr(const struct fid *fid, char *buf, size_t len);
int hd_fi_no_ops_set(struct fid *fid, const char *name, uint64_t flags, void *ops, void *context);

/* HD_FI_FID_OPS: a table of operations of every object: these three of its own, and no more. */
#define HD_FI_FID_OPS(close_fn, bind_fn, control_fn) \
	{ \
		.size = sizeof(struct fi_ops), .close = close_fn, .bind = bind_fn, .control = control_fn, \
		.ops_open = hd_fi_no_ops_open, .tostr = hd_fi_no_tostr, .ops_set = hd_fi_no_ops_set, \
	}

int hd_fi_no_domain2(struct fid_fabric *fabric, struct fi_info *info, struct fid_domain **dom, uint64_t flags,
		     void *context);

int hd_fi_no_scalable_ep(struct fid_domain *domain, struct fi_info *info, struct fid_ep **sep, void *context);
int hd_fi_no_stx_ctx(struct fid_domain *domain, struct fi_tx_attr *attr, struct fid_stx **stx, void *context);
int hd_fi_no_srx_ctx(struct fid_domain *domain, struct fi_rx_attr *attr, struct fid_ep **rx_ep,
		     void *context);
int hd_fi_no_query_atomic(struct fid_domain *domain, enum fi_datatype datatype, enum fi_op op,
			  struct fi_atomic_attr *attr, uint64_t flags);
int hd_fi_no_query_collective(struct fid_domain *domain, enum fi_collective_op coll,
			      struct fi_collective_attr *attr, uint64_t flags);
int hd_fi_no_endpoint2(struct fid_domain *domain, struct fi_info *info, struct fid_ep **ep, uint64_t flags,
		       void *context);

int hd_fi_no_av_set(struct fid_av *av, struct fi_av_set_attr *attr, struct fid_av_set **av_set,
		    void *context);

ssize_t hd_fi_no_cancel(fid_t fid, void *context);
int hd_fi_no_getopt(fid_t fid, int level, int optname, void *optval, size_t *optlen);
int hd_fi_no_setopt(fid_t fid, int level, int optname, const void *optval, size_t optlen);
int hd_fi_no_tx_ctx(struct fid_ep *sep, int index, struct fi_tx_attr *attr, struct fid_ep **tx_ep,
		    void *context);
int hd_fi_no_rx_ctx(struct fid_ep *sep, int index, struct fi_rx_attr *attr, struct fid_ep **rx_ep,
		    void *context);
ssize_t hd_fi_no_rx_size_left(struct fid_ep *ep);
ssize_t hd_fi_no_tx_size_left(struct fid_ep *ep);

int hd_fi_no_getpeer(struct fid_ep *ep, void *addr, size_t *addrlen);
int hd_fi_no_connect(struct fid_ep *ep, const void *addr, const void *param, size_t paramlen);
int hd_fi_no_listen(struct fid_pep *pep);
int hd_fi_no_accept(struct fid_ep *ep, const void *param, size_t paramlen);
int hd_fi_no_reject(struct fid_pep *pep, fid_t handle, const void *param, size_t paramlen);
int hd_fi_no_shutdown(struct fid_ep *ep, uint64_t flags);
int hd_fi_no_join(struct fid_ep *ep, const void *addr, uint64_t flags, struct fid_mc **mc, void *context);

#endif
