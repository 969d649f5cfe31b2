/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * hd-buffered: what a receive of 64 bytes costs the receiver, posted against handed
 * over (FI_BUFFERED_RECV).
 *
 * One process, two domains, no thread: a batch is sent, which is not timed, and then received,
 * which is: posting (before the batch) and reading completions, against reading completions and
 * discarding. Batches of the two kinds alternate, so a slow minute of the machine hits both;
 * medians are printed.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>

#undef FI_BUFFERED_RECV /* newer headers have it no more; its bit is that of 1.x */
#define FI_BUFFERED_RECV (UINT64_C(1) << 51)

#define SIZE 64
#define BATCH 32
#define ROUNDS 20000

struct end {
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_av *av;
	struct fid_cq *cq;
	struct fid_ep *ep;
};

#define DO(call) must(call, #call)
static void must(long rc, const char *what)
{
	if (rc >= 0)
		return;
	fprintf(stderr, "hd-buffered: %s: %s\n", what, fi_strerror((int)-rc));
	exit(1);
}

/* beside: an end whose domain is used too; NULL: one of its own. */
static void end_open(struct end *e, const struct end *beside, uint64_t mode)
{
	struct fi_av_attr av = { .type = FI_AV_TABLE };
	struct fi_cq_attr cq = { .format = FI_CQ_FORMAT_DATA, .size = 4 * BATCH };
	struct fi_info *hints = fi_allocinfo();

	hints->caps = FI_MSG;
	hints->mode = mode;
	hints->ep_attr->type = FI_EP_RDM;
	hints->domain_attr->threading = FI_THREAD_DOMAIN;
	hints->domain_attr->data_progress = FI_PROGRESS_MANUAL;
	hints->fabric_attr->prov_name = strdup("heddle");
	DO(fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, &e->info));
	fi_freeinfo(hints);
	while (e->info && (e->info->mode & mode) != mode)
		e->info = e->info->next;
	must(e->info ? 0 : -FI_ENODATA, "an info with the mode");
	if (beside) {
		e->domain = beside->domain;
	} else {
		DO(fi_fabric(e->info->fabric_attr, &e->fabric, NULL));
		DO(fi_domain(e->fabric, e->info, &e->domain, NULL));
	}
	DO(fi_av_open(e->domain, &av, &e->av, NULL));
	DO(fi_cq_open(e->domain, &cq, &e->cq, NULL));
	DO(fi_endpoint(e->domain, e->info, &e->ep, NULL));
	DO(fi_ep_bind(e->ep, &e->av->fid, 0));
	DO(fi_ep_bind(e->ep, &e->cq->fid, FI_TRANSMIT | FI_RECV));
	DO(fi_enable(e->ep));
}

static fi_addr_t name_of(struct end *from, struct end *to)
{
	char name[128];
	size_t len = sizeof(name);
	fi_addr_t addr;

	DO(fi_getname(&to->ep->fid, name, &len));
	must(fi_av_insert(from->av, name, 1, &addr, 0, NULL) == 1 ? 0 : -FI_EINVAL, "fi_av_insert");
	return addr;
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void send_batch(struct end *a, struct end *b, fi_addr_t to)
{
	struct fi_cq_data_entry c;
	char buf[SIZE] = "";

	for (int i = 0; i < BATCH; i++)
		while (fi_inject(a->ep, buf, SIZE, to) == -FI_EAGAIN) {
			fi_cq_read(a->cq, &c, 1);
			fi_cq_read(b->cq, &c, 0);
		}
}

/* What has been sent is here already, but for the first, for which the sender has to connect. */
static void wait_one(struct end *from, struct end *e, struct fi_cq_data_entry *c)
{
	struct fi_cq_data_entry ignored;
	ssize_t n;

	while ((n = fi_cq_read(e->cq, c, 1)) == -FI_EAGAIN)
		fi_cq_read(from->cq, &ignored, 1);
	must(n, "fi_cq_read");
}

static double posted(struct end *a, struct end *b, fi_addr_t to)
{
	static char buf[BATCH][SIZE];
	struct fi_cq_data_entry c;
	double start = now(), cost;

	for (int i = 0; i < BATCH; i++)
		DO(fi_recv(b->ep, buf[i], SIZE, NULL, FI_ADDR_UNSPEC, buf[i]));
	cost = now() - start;
	send_batch(a, b, to);
	start = now();
	for (int i = 0; i < BATCH; i++)
		wait_one(a, b, &c);
	return cost + now() - start;
}

static double handed(struct end *a, struct end *b, fi_addr_t to)
{
	struct fi_cq_data_entry c;
	struct fi_msg m = { .addr = FI_ADDR_UNSPEC };
	double start;

	send_batch(a, b, to);
	start = now();
	for (int i = 0; i < BATCH; i++) {
		wait_one(a, b, &c);
		m.context = c.op_context;
		DO(fi_recvmsg(b->ep, &m, FI_DISCARD));
	}
	return now() - start;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(double *v)
{
	qsort(v, ROUNDS, sizeof(*v), by_value);
	return v[ROUNDS / 2] / BATCH;
}

int main(void)
{
	static double p[ROUNDS], h[ROUNDS];
	struct end a, plain, buffering;
	fi_addr_t to_plain, to_buffering;
	double mp, mh;

	end_open(&a, NULL, 0);
	end_open(&plain, NULL, 0);
	end_open(&buffering, &plain, FI_BUFFERED_RECV);
	to_plain = name_of(&a, &plain);
	to_buffering = name_of(&a, &buffering);
	for (int i = -1000; i < ROUNDS; i++) {
		double x = posted(&a, &plain, to_plain), y = handed(&a, &buffering, to_buffering);

		if (i >= 0) {
			p[i] = x;
			h[i] = y;
		}
	}
	mp = median(p);
	mh = median(h);
	printf("receive of %d bytes: posted %.1f ns, handed over and discarded %.1f ns, ratio %.3f\n", SIZE,
	       mp, mh, mh / mp);
	return 0;
}
