/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* hd-memory: what endpoints, posted buffers and idle peers cost in memory. Resident pages of this
 * process (Rss of /proc/self/smaps_rollup), those that it shares with a peer counted in full; the
 * kernel's own are not seen. */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ctl.h"
#include "fi_peer.h"
#include "sample.h"

/* Endpoints of one domain that share a receive context, an AV and a CQ. */
struct shared {
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_av *av;
	struct fid_cq *cq;
	struct fid_ep *srx, **ep;
	long count;
};

static long descriptors(void)
{
	DIR *d = opendir("/proc/self/fd");
	long n = 0;

	if (!d)
		hd_give_up("no /proc/self/fd");
	while (readdir(d))
		n++;
	closedir(d);
	return n - 3; /* itself, and two names for directories */
}

static void must(const char *what, ssize_t rc)
{
	if (rc)
		hd_side_failed(what, rc);
}

static void shared_open(struct shared *s, const struct hd_side_opts *o, long most)
{
	struct fi_cq_attr cq = { .format = FI_CQ_FORMAT_TAGGED, .size = 1024 };
	struct fi_av_attr av = { .count = 16 };
	struct fi_info *hints = fi_allocinfo();

	memset(s, 0, sizeof(*s));
	hints->caps = FI_MSG | FI_TAGGED;
	hints->ep_attr->type = FI_EP_RDM;
	hints->ep_attr->rx_ctx_cnt = FI_SHARED_CONTEXT;
	hints->domain_attr->threading = FI_THREAD_DOMAIN;
	hints->fabric_attr->prov_name = strdup(o->prov);
	must("fi_getinfo",
	     fi_getinfo(FI_VERSION(1, 17), o->addr, NULL, o->addr ? FI_SOURCE : 0, hints, &s->info));
	fi_freeinfo(hints);
	must("fi_fabric", fi_fabric(s->info->fabric_attr, &s->fabric, NULL));
	must("fi_domain", fi_domain(s->fabric, s->info, &s->domain, NULL));
	must("fi_av_open", fi_av_open(s->domain, &av, &s->av, NULL));
	must("fi_cq_open", fi_cq_open(s->domain, &cq, &s->cq, NULL));
	must("fi_srx_context", fi_srx_context(s->domain, s->info->rx_attr, &s->srx, NULL));
	s->ep = calloc((size_t)most, sizeof(struct fid_ep *));
}

static void shared_add(struct shared *s, long count)
{
	for (; count > 0; count--) {
		struct fid_ep **ep = &s->ep[s->count++];

		must("fi_endpoint", fi_endpoint(s->domain, s->info, ep, NULL));
		must("fi_ep_bind", fi_ep_bind(*ep, &s->av->fid, 0));
		must("fi_ep_bind", fi_ep_bind(*ep, &s->cq->fid, FI_TRANSMIT | FI_RECV));
		must("fi_ep_bind", fi_ep_bind(*ep, &s->srx->fid, 0));
		must("fi_enable", fi_enable(*ep));
	}
}

static void shared_post(struct shared *s, char *buf, long count)
{
	for (long i = 0; i < count; i++)
		must("fi_trecv", fi_trecv(s->srx, buf, 1, NULL, FI_ADDR_UNSPEC, (uint64_t)i, 0, buf));
}

static void shared_close(struct shared *s)
{
	while (s->count > 0)
		must("fi_close", fi_close(&s->ep[--s->count]->fid));
	must("fi_close", fi_close(&s->srx->fid));
	must("fi_close", fi_close(&s->cq->fid));
	must("fi_close", fi_close(&s->av->fid));
	must("fi_close", fi_close(&s->domain->fid));
	must("fi_close", fi_close(&s->fabric->fid));
	fi_freeinfo(s->info);
	free(s->ep);
}

/* n endpoints beyond the first; then n buffers, which cost the same whoever shares them. */
static void endpoints(const struct hd_side_opts *o, long n)
{
	static char buf[1];
	struct shared s;
	double begin, posted;
	long fds;

	shared_open(&s, o, n + 1);
	shared_add(&s, 1);
	begin = hd_resident_kib();
	fds = descriptors();
	shared_add(&s, n);
	printf("test=endpoint provider=%s n=%ld kib=%.3f descriptors=%ld\n", o->prov, n,
	       (hd_resident_kib() - begin) / (double)n, descriptors() - fds);
	posted = hd_resident_kib();
	shared_post(&s, buf, n);
	printf("test=buffer provider=%s n=%ld kib=%.3f\n", o->prov, n,
	       (hd_resident_kib() - posted) / (double)n);
	shared_close(&s);
}

/* n peers beyond the first. */
static void peers(const struct hd_side_opts *o, long n)
{
	int *fd = calloc((size_t)n + 1, sizeof(*fd));
	pid_t *pid = calloc((size_t)n + 1, sizeof(*pid));
	double begin = 0;
	struct hd_side s;
	char done = 0;

	for (long i = 0; i <= n; i++) {
		int pair[2];

		hd_ctl_pair(pair);
		pid[i] = hd_ctl_fork();
		if (!pid[i]) {
			hd_peer_main(o, pair[1]);
			exit(0);
		}
		close(pair[1]);
		fd[i] = pair[0];
	}
	hd_side_open(&s, o);
	for (long i = 0; i <= n; i++) {
		if (i == 1)
			begin = hd_resident_kib();
		hd_peer_meet(&s, fd[i]);
	}
	printf("test=peer provider=%s n=%ld kib=%.1f\n", o->prov, n, (hd_resident_kib() - begin) / (double)n);
	for (long i = 0; i <= n; i++) {
		hd_ctl_put(fd[i], &done, 1);
		hd_ctl_reap(pid[i], "a peer");
	}
	hd_side_close(&s);
	free(fd);
	free(pid);
}

int main(int argc, char **argv)
{
	struct hd_side_opts o = { .tagged = true, .buf_size = 4096, .rx_depth = 2 };
	long eps = 1000, idle = 16;
	int opt;

	while ((opt = getopt(argc, argv, "p:a:e:i:")) != -1)
		switch (opt) {
		case 'p':
			o.prov = optarg;
			break;
		case 'a':
			o.addr = optarg;
			break;
		case 'e':
			eps = atol(optarg);
			break;
		case 'i':
			idle = atol(optarg);
			break;
		default:
			o.prov = NULL;
			optind = argc;
		}
	if (!o.prov || optind < argc || eps < 0 || idle < 0) {
		fprintf(stderr, "usage: hd-memory -p PROVIDER [-a ADDRESS] [-e ENDPOINTS] [-i IDLE_PEERS]\n");
		return 2;
	}
	if (idle)
		peers(&o, idle);
	if (eps)
		endpoints(&o, eps);
	return 0;
}
