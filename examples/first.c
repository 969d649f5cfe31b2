/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* first PORT waits for a message and prints it; first PORT HOST sends one there. */
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <stdio.h>
#include <stdlib.h>

static void must(ssize_t rc, const char *what)
{
	if (rc >= 0)
		return;
	fprintf(stderr, "first: %s: %s\n", what, fi_strerror((int)-rc));
	exit(1);
}

int main(int argc, char **argv)
{
	const char *port = argc > 1 ? argv[1] : "4242", *host = argc > 2 ? argv[2] : NULL;
	struct fi_cq_attr cq_attr = { .format = FI_CQ_FORMAT_MSG, .wait_obj = FI_WAIT_UNSPEC };
	struct fi_av_attr av_attr = { .type = FI_AV_TABLE };
	struct fi_info *hints = fi_allocinfo(), *info;
	struct fi_cq_err_entry error = { 0 };
	struct fi_cq_msg_entry done;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_ep *ep;
	struct fid_cq *cq;
	struct fid_av *av;
	char text[64] = "hello over a fabric";
	fi_addr_t to = FI_ADDR_UNSPEC;
	ssize_t rc;

	hints->caps = FI_MSG;
	hints->ep_attr->type = FI_EP_RDM;
	hints->tx_attr->op_flags = FI_DELIVERY_COMPLETE; /* a send is complete when it has arrived */
	must(fi_getinfo(FI_VERSION(1, 17), host, port, host ? 0 : FI_SOURCE, hints, &info), "fi_getinfo");
	must(fi_fabric(info->fabric_attr, &fabric, NULL), "fi_fabric");
	must(fi_domain(fabric, info, &domain, NULL), "fi_domain");
	must(fi_cq_open(domain, &cq_attr, &cq, NULL), "fi_cq_open");
	must(fi_av_open(domain, &av_attr, &av, NULL), "fi_av_open");
	must(fi_endpoint(domain, info, &ep, NULL), "fi_endpoint");
	must(fi_ep_bind(ep, &cq->fid, FI_TRANSMIT | FI_RECV), "fi_ep_bind");
	must(fi_ep_bind(ep, &av->fid, 0), "fi_ep_bind");
	must(fi_enable(ep), "fi_enable");
	if (host)
		must(fi_av_insert(av, info->dest_addr, 1, &to, 0, NULL) - 1, "fi_av_insert");
	do {
		fi_cq_read(cq, NULL, 0); /* makes progress, for which some providers wait */
		rc = host ? fi_send(ep, text, sizeof(text), NULL, to, NULL)
			  : fi_recv(ep, text, sizeof(text), NULL, FI_ADDR_UNSPEC, NULL);
	} while (rc == -FI_EAGAIN);
	must(rc, host ? "fi_send" : "fi_recv");
	rc = fi_cq_sread(cq, &done, 1, NULL, -1);
	if (rc == -FI_EAVAIL && fi_cq_readerr(cq, &error, 0) == 1)
		rc = -error.err;
	must(rc, host ? "sending" : "receiving");
	printf("%s: %.*s\n", host ? "sent" : "received", (int)sizeof(text), text);
	return 0;
}
