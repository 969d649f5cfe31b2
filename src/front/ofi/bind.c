/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* fi_ep_bind(3): what an endpoint uses. Whatever is bound cannot be closed before the endpoint. */
#include "front/ofi/ctx.h"

#define REMOTE (FI_REMOTE_READ | FI_REMOTE_WRITE)
#define CNTR_FLAGS (FI_SEND | FI_RECV | FI_READ | FI_WRITE | REMOTE)

static void bind_dir(struct hd_fi_dir *dir, struct hd_fi_cq *cq, uint64_t flags)
{
	dir->cq = cq;
	dir->selective = flags & FI_SELECTIVE_COMPLETION;
	atomic_fetch_add(&cq->users, 1);
}

static int bind_cq(struct hd_fi_ep *ep, struct hd_fi_cq *cq, uint64_t flags)
{
	if (flags & ~(FI_TRANSMIT | FI_RECV | FI_SELECTIVE_COMPLETION))
		return hd_fi_no(FI_EBADFLAGS,
				"fi_ep_bind of a completion queue with flags that it does not take");
	if (!(flags & (FI_TRANSMIT | FI_RECV)))
		return hd_fi_no(FI_EINVAL,
				"fi_ep_bind of a completion queue with neither FI_TRANSMIT nor FI_RECV");
	if (cq->domain != ep->domain)
		return hd_fi_no(FI_EDOMAIN, "fi_ep_bind of a completion queue of another domain");
	if ((flags & FI_TRANSMIT && ep->bound.tx.cq) || (flags & FI_RECV && ep->bound.rx.cq))
		return hd_fi_no(FI_EINVAL, "fi_ep_bind where there is a completion queue for that direction");
	if (flags & FI_TRANSMIT)
		bind_dir(&ep->bound.tx, cq, flags);
	if (flags & FI_RECV)
		bind_dir(&ep->bound.rx, cq, flags);
	if (ep->attr.prefix || ep->bound.rx.caps & FI_SOURCE_ERR)
		hd_fi_cq_look(cq);
	return 0;
}

static const uint64_t cntr_flag[] = {
	[HD_FI_CNTR_SEND] = FI_SEND,
	[HD_FI_CNTR_RECV] = FI_RECV,
	[HD_FI_CNTR_READ] = FI_READ,
	[HD_FI_CNTR_WRITE] = FI_WRITE,
	[HD_FI_CNTR_REMOTE_READ] = FI_REMOTE_READ,
	[HD_FI_CNTR_REMOTE_WRITE] = FI_REMOTE_WRITE,
};

static int ofi_bind_cntr(struct hd_fi_ep *ep, struct hd_fi_cntr *cntr, uint64_t flags)
{
	/*
	 * FI_REMOTE_READ and FI_REMOTE_WRITE want FI_RMA_EVENT in the page, and nothing here does
	 */
	if (!flags)
		return hd_fi_no(FI_EINVAL, "fi_ep_bind of a counter without flags that say what it counts");
	if (flags & ~CNTR_FLAGS)
		return hd_fi_no(FI_EBADFLAGS, "fi_ep_bind of a counter with flags that it does not take");
	if (cntr->domain != ep->domain)
		return hd_fi_no(FI_EDOMAIN, "fi_ep_bind of a counter of another domain");
	for (int i = 0; i < HD_FI_CNTR_KINDS; i++)
		if (flags & cntr_flag[i] && ep->bound.cntrs[i])
			return hd_fi_no(FI_EINVAL, "fi_ep_bind where there is a counter for that");
	for (int i = 0; i < HD_FI_CNTR_KINDS; i++)
		if (flags & cntr_flag[i]) {
			ep->bound.cntrs[i] = cntr;
			atomic_fetch_add(&cntr->users, 1);
		}
	if (ep->ep)
		hd_fi_ep_recount(ep);
	return 0;
}

static int bind_av(struct hd_fi_ep *ep, struct hd_fi_av *av, uint64_t flags)
{
	if (flags)
		return hd_fi_no(FI_EBADFLAGS, "fi_ep_bind of an address vector takes no flags");
	if (av->domain != ep->domain)
		return hd_fi_no(FI_EDOMAIN, "fi_ep_bind of an address vector of another domain");
	/* the other end of a connection needs no address */
	if (ep->av || ep->sep || hd_fi_ep_connects(ep))
		return hd_fi_no(
			FI_EINVAL,
			"fi_ep_bind where there is an address vector, or none is wanted: connected endpoints, and contexts of a scalable one");
	ep->av = av;
	atomic_fetch_add(&av->users, 1);
	return 0;
}

static int bind_eq(struct hd_fi_ep *ep, struct fid *fid, uint64_t flags)
{
	struct hd_fi_eq *eq = hd_fi_eq_as(fid, ep->domain->fabric);

	if (flags)
		return hd_fi_no(FI_EBADFLAGS, "fi_ep_bind of an event queue takes no flags");
	if (!eq || ep->bound.eq)
		return hd_fi_no(FI_EINVAL,
				"fi_ep_bind of an event queue of another fabric, or where there is one");
	hd_fi_eq_use(eq, 1);
	ep->bound.eq = eq;
	return 0;
}

void hd_fi_ep_default_eq(struct hd_fi_ep *ep)
{
	if (ep->bound.eq || !ep->domain->eq)
		return;
	hd_fi_eq_use(ep->domain->eq, 1);
	ep->bound.eq = ep->domain->eq;
}

/*
 * fi_endpoint(3) has programs bind before fi_enable; some bind these after it, before their first
 * operation, and nothing is lost.
 */
static bool may_be_late(const struct fid *bfid)
{
	return bfid->fclass == FI_CLASS_CNTR || bfid->fclass == FI_CLASS_STX_CTX;
}

int hd_fi_ep_bind(struct fid *fid, struct fid *bfid, uint64_t flags)
{
	struct hd_fi_ep *ep = hd_fi_ep_whole((struct hd_fi_ep *)fid);
	struct hd_fi_cntr *cntr = hd_fi_as(hd_fi_cntr, HD_FI_CNTR, FI_CLASS_CNTR, bfid);
	struct hd_fi_cq *cq = hd_fi_as(hd_fi_cq, HD_FI_CQ, FI_CLASS_CQ, bfid);
	struct hd_fi_av *av = hd_fi_as(hd_fi_av, HD_FI_AV, FI_CLASS_AV, bfid);

	if (!bfid || fid->fclass == FI_CLASS_SRX_CTX)
		return hd_fi_no(
			FI_EINVAL,
			"fi_ep_bind of nothing, or to a shared receive context, which is bound to endpoints itself");
	if (ep->ep && !may_be_late(bfid))
		return hd_fi_no(FI_EOPBADSTATE, "fi_ep_bind after fi_enable of what has to be there before");
	if (cq)
		return bind_cq(ep, cq, flags);
	if (cntr)
		return ofi_bind_cntr(ep, cntr, flags);
	if (av)
		return bind_av(ep, av, flags);
	switch (bfid->fclass) {
	case FI_CLASS_EQ:
		return bind_eq(ep, bfid, flags);
	case FI_CLASS_SRX_CTX:
		return hd_fi_as(hd_fi_ep, HD_FI_EP, FI_CLASS_SRX_CTX, bfid)
			       ? hd_fi_ep_bind_srx(ep, (struct hd_fi_ep *)bfid, flags)
			       : hd_fi_no(FI_EINVAL, "fi_ep_bind of a shared receive context that is none");
	case FI_CLASS_STX_CTX:
		return hd_fi_as(hd_fi_stx, HD_FI_STX, FI_CLASS_STX_CTX, bfid)
			       ? hd_fi_ep_bind_stx(ep, (struct hd_fi_stx *)bfid, flags)
			       : hd_fi_no(FI_EINVAL, "fi_ep_bind of a shared transmit context that is none");
	case FI_CLASS_MR:
		return hd_fi_no(FI_ENOSYS, "fi_ep_bind of a memory region: fi_mr_bind does that");
	default:
		return hd_fi_no(FI_EINVAL, "fi_ep_bind of something that endpoints do not use");
	}
}

void hd_fi_ep_unbind(struct hd_fi_ep *ep)
{
	if (ep->bound.tx.cq)
		atomic_fetch_sub(&ep->bound.tx.cq->users, 1);
	if (ep->bound.rx.cq)
		atomic_fetch_sub(&ep->bound.rx.cq->users, 1);
	for (int i = 0; i < HD_FI_CNTR_KINDS; i++)
		if (ep->bound.cntrs[i])
			atomic_fetch_sub(&ep->bound.cntrs[i]->users, 1);
	if (ep->av)
		atomic_fetch_sub(&hd_fi_av_whole(ep->av)->users, 1);
	if (ep->bound.eq)
		hd_fi_eq_use(ep->bound.eq, -1);
}
