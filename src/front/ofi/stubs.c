/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* What is not offered, and what an endpoint cannot do before it is enabled. */
#include "front/ofi/stub_tables.h"

/* What the tables' stubs answer; each says by its own name who was called. */
#define no() hd_fi_no(FI_ENOSYS, "the endpoint was not opened with the capability that this call needs")
#define idle() hd_fi_no(FI_EOPBADSTATE, "the endpoint is not enabled")
#define queueless() hd_fi_no(FI_ENOCQ, "the endpoint has nothing bound that would tell of its receives")

/* ---- no: single slots ------------------------------------------------------------------------ */

int hd_fi_no_bind(struct fid *fid, struct fid *bfid, uint64_t flags)
{
	return hd_fi_no(FI_ENOSYS, "nothing can be bound to this object");
}

int hd_fi_no_control(struct fid *fid, int command, void *arg)
{
	return hd_fi_no(FI_ENOSYS, "this object has no commands");
}

int hd_fi_no_ops_open(struct fid *fid, const char *name, uint64_t flags, void **ops, void *context)
{
	return hd_fi_no(FI_ENOSYS, "there are no further operations to be opened");
}

int hd_fi_no_tostr(const struct fid *fid, char *buf, size_t len)
{
	return hd_fi_no(FI_ENOSYS, "this object has no text");
}

int hd_fi_no_ops_set(struct fid *fid, const char *name, uint64_t flags, void *ops, void *context)
{
	return hd_fi_no(FI_ENOSYS, "operations cannot be replaced");
}

int hd_fi_no_domain2(struct fid_fabric *fabric, struct fi_info *info, struct fid_domain **dom, uint64_t flags,
		     void *context)
{
	return flags & FI_PEER
		       ? hd_fi_no(FI_EINVAL, "fi_domain2 with FI_PEER: peer providers are not offered")
		       : hd_fi_no(FI_ENOSYS, "fi_domain2 with flags is not offered");
}

int hd_fi_no_scalable_ep(struct fid_domain *domain, struct fi_info *info, struct fid_ep **sep, void *context)
{
	return hd_fi_no(FI_ENOSYS, "this object opens no scalable endpoints");
}

int hd_fi_no_stx_ctx(struct fid_domain *domain, struct fi_tx_attr *attr, struct fid_stx **stx, void *context)
{
	return hd_fi_no(FI_ENOSYS, "this object opens no shared transmit contexts");
}

int hd_fi_no_srx_ctx(struct fid_domain *domain, struct fi_rx_attr *attr, struct fid_ep **rx_ep, void *context)
{
	return hd_fi_no(FI_ENOSYS, "this object opens no shared receive contexts");
}

/* fi_atomic(3) wants this errno where an operation is not supported. */
int hd_fi_no_query_atomic(struct fid_domain *domain, enum fi_datatype datatype, enum fi_op op,
			  struct fi_atomic_attr *attr, uint64_t flags)
{
	return hd_fi_no(FI_EOPNOTSUPP, "this object has no atomic operations");
}

int hd_fi_no_query_collective(struct fid_domain *domain, enum fi_collective_op coll,
			      struct fi_collective_attr *attr, uint64_t flags)
{
	return hd_fi_no(FI_ENOSYS, "collective operations are not offered");
}

int hd_fi_no_endpoint2(struct fid_domain *domain, struct fi_info *info, struct fid_ep **ep, uint64_t flags,
		       void *context)
{
	return hd_fi_no(FI_ENOSYS, "fi_endpoint2 with flags is not offered");
}

int hd_fi_no_av_set(struct fid_av *av, struct fi_av_set_attr *attr, struct fid_av_set **av_set, void *context)
{
	return hd_fi_no(FI_ENOSYS, "collective operations are not offered: there are no sets of addresses");
}

ssize_t hd_fi_no_cancel(fid_t fid, void *context)
{
	return hd_fi_no(FI_ENOSYS, "fi_cancel of an endpoint that posts nothing");
}

int hd_fi_no_getopt(fid_t fid, int level, int optname, void *optval, size_t *optlen)
{
	return hd_fi_no(FI_ENOPROTOOPT, "this endpoint has no options");
}

int hd_fi_no_setopt(fid_t fid, int level, int optname, const void *optval, size_t optlen)
{
	return hd_fi_no(FI_ENOPROTOOPT, "this endpoint has no options that can be set");
}

int hd_fi_no_tx_ctx(struct fid_ep *sep, int index, struct fi_tx_attr *attr, struct fid_ep **tx_ep,
		    void *context)
{
	return hd_fi_no(FI_ENOSYS, "contexts are those of scalable endpoints");
}

int hd_fi_no_rx_ctx(struct fid_ep *sep, int index, struct fi_rx_attr *attr, struct fid_ep **rx_ep,
		    void *context)
{
	return hd_fi_no(FI_ENOSYS, "contexts are those of scalable endpoints");
}

ssize_t hd_fi_no_rx_size_left(struct fid_ep *ep)
{
	return hd_fi_no(FI_ENOSYS, "this endpoint posts no receives");
}

ssize_t hd_fi_no_tx_size_left(struct fid_ep *ep)
{
	return hd_fi_no(FI_ENOSYS, "this endpoint posts no sends");
}

int hd_fi_no_getpeer(struct fid_ep *ep, void *addr, size_t *addrlen)
{
	return hd_fi_no(FI_ENOSYS, "fi_getpeer of an endpoint that is not for connections");
}

int hd_fi_no_connect(struct fid_ep *ep, const void *addr, const void *param, size_t paramlen)
{
	return hd_fi_no(FI_ENOSYS,
			"fi_connect of an endpoint that is not for connections, or only accepts them");
}

int hd_fi_no_listen(struct fid_pep *pep)
{
	return hd_fi_no(FI_ENOSYS, "fi_listen of an endpoint that is not passive");
}

int hd_fi_no_accept(struct fid_ep *ep, const void *param, size_t paramlen)
{
	return hd_fi_no(FI_ENOSYS, "fi_accept of an endpoint that is not for connections, or passive");
}

int hd_fi_no_reject(struct fid_pep *pep, fid_t handle, const void *param, size_t paramlen)
{
	return hd_fi_no(FI_ENOSYS, "fi_reject of an endpoint that is not passive");
}

int hd_fi_no_shutdown(struct fid_ep *ep, uint64_t flags)
{
	return hd_fi_no(FI_ENOSYS, "fi_shutdown of an endpoint that is not for connections, or passive");
}

int hd_fi_no_join(struct fid_ep *ep, const void *addr, uint64_t flags, struct fid_mc **mc, void *context)
{
	return hd_fi_no(FI_ENOSYS, "fi_join of an endpoint that joins no groups");
}

/* ---- tables: no, idle ------------------------------------------------------------------------ */

static int no_atomic_valid(struct fid_ep *ep, enum fi_datatype datatype, enum fi_op op, size_t *count)
{
	return hd_fi_no(FI_EOPNOTSUPP, "the endpoint was not opened with FI_ATOMIC");
}

MSG_STUBS(no)
MSG_STUBS(idle)
MSG_STUBS(queueless)
TAGGED_STUBS(no)
TAGGED_STUBS(idle)
TAGGED_STUBS(queueless)
RMA_STUBS(no)
RMA_STUBS(idle)
ATOMIC_STUBS(no)
COLLECTIVE_STUBS(no)

struct fi_ops_msg hd_fi_no_msg_ops = MSG_TABLE(no);
struct fi_ops_msg hd_fi_idle_msg_ops = MSG_TABLE(idle);
struct fi_ops_msg hd_fi_queueless_msg_ops = MSG_TABLE(queueless);
struct fi_ops_tagged hd_fi_no_tagged_ops = TAGGED_TABLE(no);
struct fi_ops_tagged hd_fi_idle_tagged_ops = TAGGED_TABLE(idle);
struct fi_ops_tagged hd_fi_queueless_tagged_ops = TAGGED_TABLE(queueless);
struct fi_ops_rma hd_fi_no_rma_ops = RMA_TABLE(no);
struct fi_ops_rma hd_fi_idle_rma_ops = RMA_TABLE(idle);
struct fi_ops_atomic hd_fi_no_atomic_ops = ATOMIC_TABLE(no);
struct fi_ops_collective hd_fi_no_collective_ops = COLLECTIVE_TABLE(no);

struct fi_ops_ep hd_fi_no_ep_ops = {
	.size = sizeof(struct fi_ops_ep),
	.cancel = hd_fi_no_cancel,
	.getopt = hd_fi_no_getopt,
	.setopt = hd_fi_no_setopt,
	.tx_ctx = hd_fi_no_tx_ctx,
	.rx_ctx = hd_fi_no_rx_ctx,
	.rx_size_left = hd_fi_no_rx_size_left,
	.tx_size_left = hd_fi_no_tx_size_left,
};
