/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * ofi_leaver exit|alarm: a libfabric program that closes nothing. Its domains make progress by
 * themselves, and the endpoint of the last one has talked to itself; then it ends by exit(3), from
 * its main function or from a signal's handler that interrupts it somewhere in a call.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>

#define DOMAINS 8

static struct fid_ep *ep;
static struct fid_cq *cq;
static fi_addr_t self;
static char out[64], in[64];

static void must(long rc, const char *what)
{
	if (rc >= 0)
		return;
	fprintf(stderr, "ofi_leaver: %s: %s\n", what, fi_strerror((int)-rc));
	_exit(2);
}

static struct fi_info *choose(void)
{
	struct fi_info *hints = fi_allocinfo(), *info;

	hints->caps = FI_MSG;
	hints->ep_attr->type = FI_EP_RDM;
	hints->domain_attr->data_progress = hints->domain_attr->control_progress = FI_PROGRESS_AUTO;
	must(fi_getinfo(FI_VERSION(1, 17), "127.0.0.1", NULL, FI_SOURCE, hints, &info), "fi_getinfo");
	fi_freeinfo(hints);
	return info;
}

static void open_all(void)
{
	struct fi_info *info = choose();
	struct fi_cq_attr cq_attr = { .format = FI_CQ_FORMAT_CONTEXT };
	struct fi_av_attr av_attr = { .type = FI_AV_TABLE };
	struct fid_fabric *fabric;
	struct fid_domain *domain = NULL;
	struct fid_av *av;
	char name[64];
	size_t len = sizeof(name);

	must(fi_fabric(info->fabric_attr, &fabric, NULL), "fi_fabric");
	for (int i = 0; i < DOMAINS; i++)
		must(fi_domain(fabric, info, &domain, NULL), "fi_domain");
	must(fi_cq_open(domain, &cq_attr, &cq, NULL), "fi_cq_open");
	must(fi_av_open(domain, &av_attr, &av, NULL), "fi_av_open");
	must(fi_endpoint(domain, info, &ep, NULL), "fi_endpoint");
	must(fi_ep_bind(ep, &av->fid, 0), "fi_ep_bind");
	must(fi_ep_bind(ep, &cq->fid, FI_SEND | FI_RECV), "fi_ep_bind");
	must(fi_enable(ep), "fi_enable");
	must(fi_getname(&ep->fid, name, &len), "fi_getname");
	must(fi_av_insert(av, name, 1, &self, 0, NULL) - 1, "fi_av_insert");
	fi_freeinfo(info);
}

static void talk(void)
{
	struct fi_cq_entry entry;
	long rc;

	must(fi_recv(ep, in, sizeof(in), NULL, FI_ADDR_UNSPEC, NULL), "fi_recv");
	while ((rc = fi_send(ep, out, sizeof(out), NULL, self, NULL)) == -FI_EAGAIN)
		fi_cq_read(cq, NULL, 0);
	must(rc, "fi_send");
	for (int n = 0; n < 2;) {
		rc = fi_cq_read(cq, &entry, 1);
		must(rc == -FI_EAGAIN ? 0 : rc, "fi_cq_read");
		n += rc == 1;
	}
}

static void leave(int sig)
{
	(void)sig;
	exit(0);
}

int main(int argc, char **argv)
{
	struct itimerval soon = { .it_value = { .tv_usec = 3000 + getpid() % 2000 } };

	if (argc != 2)
		return 2;
	open_all();
	talk();
	if (!strcmp(argv[1], "exit")) {
		usleep((unsigned)getpid() % 4 * 1000);
		return 0;
	}
	signal(SIGALRM, leave);
	setitimer(ITIMER_REAL, &soon, NULL);
	for (;;)
		talk();
}
