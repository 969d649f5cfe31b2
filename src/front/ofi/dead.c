/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* What is left of an object in a forked child. */
#include "base/log.h"
#include "front/ofi/stub_tables.h"

static int dead(void)
{
	static atomic_flag said = ATOMIC_FLAG_INIT;

	if (!atomic_flag_test_and_set(&said))
		hd_error("a forked child cannot use its parent's domain: open one here");
	return -FI_EOPBADSTATE;
}

static int dead_atomic_valid(struct fid_ep *ep, enum fi_datatype datatype, enum fi_op op, size_t *count)
{
	return dead();
}

MSG_STUBS(dead)
TAGGED_STUBS(dead)
RMA_STUBS(dead)
ATOMIC_STUBS(dead)
COLLECTIVE_STUBS(dead)

static struct fi_ops_msg dead_msg_ops = MSG_TABLE(dead);
static struct fi_ops_tagged dead_tagged_ops = TAGGED_TABLE(dead);
static struct fi_ops_rma dead_rma_ops = RMA_TABLE(dead);
static struct fi_ops_atomic dead_atomic_ops = ATOMIC_TABLE(dead);
static struct fi_ops_collective dead_collective_ops = COLLECTIVE_TABLE(dead);

static int ofi_dead_close(struct fid *fid)
{
	return dead();
}

static int dead_bind(struct fid *fid, struct fid *bfid, uint64_t flags)
{
	return dead();
}

static int dead_control(struct fid *fid, int command, void *arg)
{
	return dead();
}

static struct fi_ops dead_fid_ops = HD_FI_FID_OPS(ofi_dead_close, dead_bind, dead_control);

static ssize_t dead_cancel(fid_t fid, void *context)
{
	return dead();
}

static int dead_getopt(fid_t fid, int level, int optname, void *optval, size_t *optlen)
{
	return dead();
}

static int dead_setopt(fid_t fid, int level, int optname, const void *optval, size_t optlen)
{
	return dead();
}

static struct fi_ops_ep dead_ep_ops = {
	.size = sizeof(struct fi_ops_ep),
	.cancel = dead_cancel,
	.getopt = dead_getopt,
	.setopt = dead_setopt,
	.tx_ctx = hd_fi_no_tx_ctx,
	.rx_ctx = hd_fi_no_rx_ctx,
	.rx_size_left = hd_fi_no_rx_size_left,
	.tx_size_left = hd_fi_no_tx_size_left,
};

static int dead_setname(fid_t fid, void *addr, size_t addrlen)
{
	return dead();
}

static int dead_getname(fid_t fid, void *addr, size_t *addrlen)
{
	return dead();
}

static int dead_getpeer(struct fid_ep *ep, void *addr, size_t *addrlen)
{
	return dead();
}

static int dead_connect(struct fid_ep *ep, const void *addr, const void *param, size_t paramlen)
{
	return dead();
}

static int dead_listen(struct fid_pep *pep)
{
	return dead();
}

static int dead_accept(struct fid_ep *ep, const void *param, size_t paramlen)
{
	return dead();
}

static int dead_reject(struct fid_pep *pep, fid_t handle, const void *param, size_t paramlen)
{
	return dead();
}

static int dead_shutdown(struct fid_ep *ep, uint64_t flags)
{
	return dead();
}

static struct fi_ops_cm dead_cm_ops = {
	.size = sizeof(struct fi_ops_cm),
	.setname = dead_setname,
	.getname = dead_getname,
	.getpeer = dead_getpeer,
	.connect = dead_connect,
	.listen = dead_listen,
	.accept = dead_accept,
	.reject = dead_reject,
	.shutdown = dead_shutdown,
	.join = hd_fi_no_join,
};

static ssize_t dead_cq_read(struct fid_cq *cq, void *buf, size_t count)
{
	return dead();
}

static ssize_t dead_cq_readfrom(struct fid_cq *cq, void *buf, size_t count, fi_addr_t *src)
{
	return dead();
}

static ssize_t dead_cq_readerr(struct fid_cq *cq, struct fi_cq_err_entry *buf, uint64_t flags)
{
	return dead();
}

static ssize_t dead_cq_sread(struct fid_cq *cq, void *buf, size_t count, const void *cond, int timeout)
{
	return dead();
}

static ssize_t dead_cq_sreadfrom(struct fid_cq *cq, void *buf, size_t count, fi_addr_t *src, const void *cond,
				 int timeout)
{
	return dead();
}

static int dead_cq_signal(struct fid_cq *cq)
{
	return dead();
}

static const char *dead_cq_strerror(struct fid_cq *cq, int prov_errno, const void *err_data, char *buf,
				    size_t len)
{
	return hd_fi_strerror(prov_errno, buf, len);
}

static struct fi_ops_cq dead_cq_ops = {
	.size = sizeof(struct fi_ops_cq),
	.read = dead_cq_read,
	.readfrom = dead_cq_readfrom,
	.readerr = dead_cq_readerr,
	.sread = dead_cq_sread,
	.sreadfrom = dead_cq_sreadfrom,
	.signal = dead_cq_signal,
	.strerror = dead_cq_strerror,
};

/* A counter's value has no room for an errno: it stands still, and waiting for it fails. */
static uint64_t dead_cntr_read(struct fid_cntr *cntr)
{
	dead();
	return 0;
}

static int dead_cntr_change(struct fid_cntr *cntr, uint64_t value)
{
	return dead();
}

static int dead_cntr_wait(struct fid_cntr *cntr, uint64_t threshold, int timeout)
{
	return dead();
}

static struct fi_ops_cntr dead_cntr_ops = {
	.size = sizeof(struct fi_ops_cntr),
	.read = dead_cntr_read,
	.readerr = dead_cntr_read,
	.add = dead_cntr_change,
	.set = dead_cntr_change,
	.wait = dead_cntr_wait,
	.adderr = dead_cntr_change,
	.seterr = dead_cntr_change,
};

static int dead_av_insert(struct fid_av *av, const void *addr, size_t count, fi_addr_t *fi_addr,
			  uint64_t flags, void *context)
{
	return dead();
}

static int dead_av_insertsvc(struct fid_av *av, const char *node, const char *service, fi_addr_t *fi_addr,
			     uint64_t flags, void *context)
{
	return dead();
}

static int dead_av_insertsym(struct fid_av *av, const char *node, size_t nodecnt, const char *service,
			     size_t svccnt, fi_addr_t *fi_addr, uint64_t flags, void *context)
{
	return dead();
}

static int dead_av_remove(struct fid_av *av, fi_addr_t *fi_addr, size_t count, uint64_t flags)
{
	return dead();
}

static int dead_av_lookup(struct fid_av *av, fi_addr_t fi_addr, void *addr, size_t *addrlen)
{
	return dead();
}

static const char *dead_av_straddr(struct fid_av *av, const void *addr, char *buf, size_t *len)
{
	*len = hd_fi_addr_text(addr, buf, *len);
	return buf;
}

static struct fi_ops_av dead_av_ops = {
	.size = sizeof(struct fi_ops_av),
	.insert = dead_av_insert,
	.insertsvc = dead_av_insertsvc,
	.insertsym = dead_av_insertsym,
	.remove = dead_av_remove,
	.lookup = dead_av_lookup,
	.straddr = dead_av_straddr,
	.av_set = hd_fi_no_av_set,
};

static int dead_set_with(struct fid_av_set *dst, const struct fid_av_set *src)
{
	return dead();
}

static int dead_set_change(struct fid_av_set *set, fi_addr_t addr)
{
	return dead();
}

static int dead_set_addr(struct fid_av_set *set, fi_addr_t *addr)
{
	return dead();
}

static struct fi_ops_av_set dead_av_set_ops = {
	.size = sizeof(struct fi_ops_av_set),
	.set_union = dead_set_with,
	.intersect = dead_set_with,
	.diff = dead_set_with,
	.insert = dead_set_change,
	.remove = dead_set_change,
	.addr = dead_set_addr,
};

static int dead_av_open(struct fid_domain *domain, struct fi_av_attr *attr, struct fid_av **av, void *context)
{
	return dead();
}

static int dead_cq_open(struct fid_domain *domain, struct fi_cq_attr *attr, struct fid_cq **cq, void *context)
{
	return dead();
}

static int dead_endpoint(struct fid_domain *domain, struct fi_info *info, struct fid_ep **ep, void *context)
{
	return dead();
}

static int dead_cntr_open(struct fid_domain *domain, struct fi_cntr_attr *attr, struct fid_cntr **cntr,
			  void *context)
{
	return dead();
}

static int dead_poll_open(struct fid_domain *domain, struct fi_poll_attr *attr, struct fid_poll **pollset)
{
	return dead();
}

static int dead_poll(struct fid_poll *pollset, void **context, int count)
{
	return dead();
}

static int dead_poll_change(struct fid_poll *pollset, struct fid *event_fid, uint64_t flags)
{
	return dead();
}

static struct fi_ops_poll dead_poll_ops = {
	.size = sizeof(struct fi_ops_poll),
	.poll = dead_poll,
	.poll_add = dead_poll_change,
	.poll_del = dead_poll_change,
};

static struct fi_ops_domain dead_domain_ops = {
	.size = sizeof(struct fi_ops_domain),
	.av_open = dead_av_open,
	.cq_open = dead_cq_open,
	.endpoint = dead_endpoint,
	.scalable_ep = hd_fi_no_scalable_ep,
	.cntr_open = dead_cntr_open,
	.poll_open = dead_poll_open,
	.stx_ctx = hd_fi_no_stx_ctx,
	.srx_ctx = hd_fi_no_srx_ctx,
	.query_atomic = hd_fi_no_query_atomic,
	.query_collective = hd_fi_no_query_collective,
	.endpoint2 = hd_fi_no_endpoint2,
};

static int dead_mr_reg(struct fid *fid, const void *buf, size_t len, uint64_t access, uint64_t offset,
		       uint64_t requested_key, uint64_t flags, struct fid_mr **mr, void *context)
{
	return dead();
}

static int dead_mr_regv(struct fid *fid, const struct iovec *iov, size_t count, uint64_t access,
			uint64_t offset, uint64_t requested_key, uint64_t flags, struct fid_mr **mr,
			void *context)
{
	return dead();
}

static int dead_mr_regattr(struct fid *fid, const struct fi_mr_attr *attr, uint64_t flags, struct fid_mr **mr)
{
	return dead();
}

static struct fi_ops_mr dead_mr_ops = {
	.size = sizeof(struct fi_ops_mr),
	.reg = dead_mr_reg,
	.regv = dead_mr_regv,
	.regattr = dead_mr_regattr,
};

static void die_ep(struct fid_ep *ep)
{
	ep->ops = &dead_ep_ops;
	ep->cm = &dead_cm_ops;
	ep->msg = &dead_msg_ops;
	ep->tagged = &dead_tagged_ops;
	ep->rma = &dead_rma_ops;
	ep->atomic = &dead_atomic_ops;
	ep->collective = &dead_collective_ops;
}

static void die_domain(struct fid_domain *domain)
{
	domain->ops = &dead_domain_ops;
	domain->mr = &dead_mr_ops;
}

void hd_fi_die(struct fid *fid)
{
	fid->ops = &dead_fid_ops;
	switch (fid->fclass) {
	case FI_CLASS_EP:
	case FI_CLASS_SEP:
	case FI_CLASS_SRX_CTX:
	case FI_CLASS_RX_CTX:
	case FI_CLASS_TX_CTX:
		die_ep((struct fid_ep *)fid);
		break;
	case FI_CLASS_PEP:
		((struct fid_pep *)fid)->ops = &dead_ep_ops;
		((struct fid_pep *)fid)->cm = &dead_cm_ops;
		break;
	case FI_CLASS_DOMAIN:
		die_domain((struct fid_domain *)fid);
		break;
	case FI_CLASS_AV:
		((struct fid_av *)fid)->ops = &dead_av_ops;
		break;
	case FI_CLASS_AV_SET:
		((struct fid_av_set *)fid)->ops = &dead_av_set_ops;
		break;
	case FI_CLASS_CQ:
		((struct fid_cq *)fid)->ops = &dead_cq_ops;
		break;
	case FI_CLASS_POLL:
		((struct fid_poll *)fid)->ops = &dead_poll_ops;
		break;
	case FI_CLASS_CNTR:
		((struct fid_cntr *)fid)->ops = &dead_cntr_ops;
		break;
	default:
		break;
	}
}
