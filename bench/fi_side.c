/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "fi_side.h"
#include "sample.h"

#define CQ_SIZE 1024

void hd_side_failed(const char *what, ssize_t ret)
{
	hd_give_up("%s: %s", what, fi_strerror((int)-ret));
}

static void check(int ret, const char *what)
{
	if (ret)
		hd_side_failed(what, ret);
}

void hd_side_cq_failed(struct hd_side *s, ssize_t ret)
{
	struct fi_cq_err_entry err;
	char text[128] = "";

	if (ret != -FI_EAVAIL)
		hd_side_failed("fi_cq_read", ret);
	memset(&err, 0, sizeof(err));
	if (fi_cq_readerr(s->cq, &err, 0) < 0)
		hd_give_up("fi_cq_readerr gave no entry");
	hd_give_up("%s completed in error: %s %s", err.flags & FI_RECV ? "a receive" : "a send",
		   fi_strerror(err.err),
		   fi_cq_strerror(s->cq, err.prov_errno, err.err_data, text, sizeof(text)));
}

void hd_side_turn(void *arg)
{
	hd_side_reap(arg);
}

static void *pages(size_t n)
{
	void *p = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (p == MAP_FAILED)
		hd_give_up("no memory for %zu bytes", n);
	return p;
}

static struct fi_info *get_info(const struct hd_side_opts *o)
{
	struct fi_info *hints = fi_allocinfo(), *info = NULL;
	int ret;

	if (!hints)
		hd_give_up("no memory for hints");
	hints->ep_attr->type = FI_EP_RDM;
	hints->caps = o->tagged ? FI_TAGGED : FI_MSG;
	if (o->rma)
		hints->caps |= FI_RMA;
	if (o->atomic)
		hints->caps |= FI_ATOMIC;
	hints->mode = FI_CONTEXT | FI_CONTEXT2;
	hints->tx_attr->msg_order = FI_ORDER_SAS;
	hints->rx_attr->msg_order = FI_ORDER_SAS;
	hints->rx_attr->size = o->rx_attr;
	hints->domain_attr->threading = FI_THREAD_DOMAIN;
	hints->domain_attr->control_progress = FI_PROGRESS_MANUAL;
	hints->domain_attr->data_progress = FI_PROGRESS_MANUAL;
	hints->domain_attr->resource_mgmt = FI_RM_ENABLED;
	hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
	hints->fabric_attr->prov_name = strdup(o->prov); /* freed with the hints */
	ret = fi_getinfo(FI_VERSION(1, 14), o->addr, NULL, o->addr ? FI_SOURCE : 0, hints, &info);
	fi_freeinfo(hints);
	if (ret == -FI_ENODATA)
		hd_give_up("provider %s is not there, or has no reliable datagram endpoint for this test",
			   o->prov);
	check(ret, "fi_getinfo");
	return info;
}

static void open_av(struct hd_side *s)
{
	struct fi_av_attr attr = { .type = s->info->domain_attr->av_type, .count = 256 };

	if (attr.type == FI_AV_UNSPEC)
		attr.type = FI_AV_TABLE;
	check(fi_av_open(s->domain, &attr, &s->av, NULL), "fi_av_open");
}

static void open_cq(struct hd_side *s, bool blocking)
{
	struct fi_cq_attr attr = {
		.size = CQ_SIZE,
		.format = FI_CQ_FORMAT_TAGGED,
		.wait_obj = blocking ? FI_WAIT_UNSPEC : FI_WAIT_NONE,
	};

	check(fi_cq_open(s->domain, &attr, &s->cq, NULL), "fi_cq_open");
}

static void open_buffers(struct hd_side *s)
{
	s->tx_buf = pages(s->buf_size);
	s->rx_buf = pages(s->buf_size);
	memset(s->tx_buf, 1, s->buf_size);
	memset(s->rx_buf, 2, s->buf_size);
	s->rx_ctx = pages(s->rx_depth * sizeof(*s->rx_ctx));
	s->tx_ctx = pages(HD_SIDE_TX * sizeof(*s->tx_ctx));
	for (s->tx_nfree = 0; s->tx_nfree < HD_SIDE_TX; s->tx_nfree++)
		s->tx_free[s->tx_nfree] = &s->tx_ctx[s->tx_nfree];
	if (!(s->info->domain_attr->mr_mode & FI_MR_LOCAL))
		return;
	check(fi_mr_reg(s->domain, s->tx_buf, s->buf_size, FI_SEND, 0, 1, 0, &s->tx_mr, NULL), "fi_mr_reg");
	check(fi_mr_reg(s->domain, s->rx_buf, s->buf_size, FI_RECV, 0, 2, 0, &s->rx_mr, NULL), "fi_mr_reg");
	s->tx_desc = fi_mr_desc(s->tx_mr);
	s->rx_desc = fi_mr_desc(s->rx_mr);
}

void hd_side_open(struct hd_side *s, const struct hd_side_opts *o)
{
	memset(s, 0, sizeof(*s));
	s->tagged = o->tagged;
	s->buf_size = o->buf_size;
	s->rx_depth = o->rx_depth;
	s->info = get_info(o);
	if (o->inject)
		s->inject_max = s->info->tx_attr->inject_size;
	check(fi_fabric(s->info->fabric_attr, &s->fabric, NULL), "fi_fabric");
	check(fi_domain(s->fabric, s->info, &s->domain, NULL), "fi_domain");
	open_buffers(s);
	open_av(s);
	open_cq(s, o->blocking);
	check(fi_endpoint(s->domain, s->info, &s->ep, NULL), "fi_endpoint");
	check(fi_ep_bind(s->ep, &s->av->fid, 0), "fi_ep_bind to the address vector");
	check(fi_ep_bind(s->ep, &s->cq->fid, FI_TRANSMIT | FI_RECV), "fi_ep_bind to the completion queue");
	check(fi_enable(s->ep), "fi_enable");
}

void hd_side_close(struct hd_side *s)
{
	fi_close(&s->ep->fid);
	fi_close(&s->cq->fid);
	fi_close(&s->av->fid);
	if (s->tx_mr)
		fi_close(&s->tx_mr->fid);
	if (s->rx_mr)
		fi_close(&s->rx_mr->fid);
	fi_close(&s->domain->fid);
	fi_close(&s->fabric->fid);
	fi_freeinfo(s->info);
	munmap(s->tx_buf, s->buf_size);
	munmap(s->rx_buf, s->buf_size);
	munmap(s->rx_ctx, s->rx_depth * sizeof(*s->rx_ctx));
	munmap(s->tx_ctx, HD_SIDE_TX * sizeof(*s->tx_ctx));
}

void hd_side_name(struct hd_side *s, struct hd_side_name *name)
{
	memset(name, 0, sizeof(*name));
	name->len = sizeof(name->bytes);
	check(fi_getname(&s->ep->fid, name->bytes, &name->len), "fi_getname");
}

fi_addr_t hd_side_insert(struct hd_side *s, const struct hd_side_name *name)
{
	fi_addr_t addr = FI_ADDR_UNSPEC;

	if (fi_av_insert(s->av, name->bytes, 1, &addr, 0, NULL) != 1)
		hd_give_up("fi_av_insert refused the peer's name");
	return addr;
}
