/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * hd-verbs: what perftest does not measure of a verbs device. Many RC queue pairs of one process
 * that share a receive queue: do all get on, and what does an idle one cost in memory? And how
 * often is a process woken, by a write to an eventfd, that polls all the time, and one that sleeps?
 *
 * It knows nothing of how the device sleeps: write() is this program's own, and counts. That a
 * sleeper is woken shows that it would be seen. It forks its second process before it touches
 * verbs. The first one sends, the second receives.
 */
#include <errno.h>
#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "ctl.h"
#include "sample.h"
#include "verbs_open.h"

#define BUFFER 4096
#define RECEIVES 512 /* posted to the shared queue at all times */
#define SENDS 64     /* that a queue pair has room for */
#define QPS_MAX 16384
#define PAUSE_US 2000

struct name {
	uint64_t addr;
	uint32_t rkey;
	uint16_t lid;
};

struct side {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_srq *srq;
	struct ibv_mr *mr;
	struct ibv_qp *qp[QPS_MAX];
	struct name other;
	long qps, lacking; /* receives that are to be posted again */
	int ctl;
	char *buf;
	bool seen[QPS_MAX]; /* something has come by this queue pair */
};

/* What one process answers the other. */
struct answer {
	double kib;
	uint64_t seen, woken;
};

/* ---- counting wakes -------------------------------------------------------------------------- */

static _Atomic uint64_t woken; /* numbers written to eventfds by this process */

static bool is_eventfd(int fd)
{
	char path[64], to[64];
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	n = readlink(path, to, sizeof(to) - 1);
	to[n > 0 ? n : 0] = 0;
	return strstr(to, "[eventfd]") != NULL;
}

/* Also for the libraries of this process. */
ssize_t write(int fd, const void *from, size_t len)
{
	if (len == sizeof(uint64_t) && is_eventfd(fd))
		woken++;
	return syscall(SYS_write, fd, from, len);
}

/* ---- objects --------------------------------------------------------------------------------- */

static void receives_post(struct side *s)
{
	struct ibv_sge sge = { (uintptr_t)s->buf, 8, s->mr->lkey };
	struct ibv_recv_wr wr = { .sg_list = &sge, .num_sge = 1 }, *bad;

	for (; s->lacking; s->lacking--)
		must_be_0("ibv_post_srq_recv", ibv_post_srq_recv(s->srq, &wr, &bad));
}

static void side_open(struct side *s, const char *device, long qps)
{
	struct ibv_srq_init_attr srq = { .attr = { RECEIVES, 1, 0 } };
	struct ibv_port_attr port;
	struct name own;

	s->context = device_open(device);
	s->pd = must("ibv_alloc_pd", ibv_alloc_pd(s->context));
	s->channel = must("ibv_create_comp_channel", ibv_create_comp_channel(s->context));
	s->cq = must("ibv_create_cq", ibv_create_cq(s->context, (int)qps + RECEIVES, NULL, s->channel, 0));
	s->srq = must("ibv_create_srq", ibv_create_srq(s->pd, &srq));
	s->buf = must("aligned_alloc", aligned_alloc(BUFFER, BUFFER));
	memset(s->buf, 0, BUFFER);
	s->mr = must("ibv_reg_mr",
		     ibv_reg_mr(s->pd, s->buf, BUFFER,
				IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE));
	s->lacking = RECEIVES;
	receives_post(s);
	must_be_0("ibv_query_port", ibv_query_port(s->context, 1, &port));
	own = (struct name){ (uintptr_t)s->buf, s->mr->rkey, port.lid };
	hd_ctl_put(s->ctl, &own, sizeof(own));
	hd_ctl_get(s->ctl, &s->other, sizeof(s->other), NULL, NULL);
}

/* So many more, each connected to its like. */
static void qps_add(struct side *s, long count)
{
	struct ibv_qp_init_attr attr = { .send_cq = s->cq,
					 .recv_cq = s->cq,
					 .srq = s->srq,
					 .qp_type = IBV_QPT_RC,
					 .sq_sig_all = 1,
					 .cap = { SENDS, 0, 1, 0, 0 } };

	for (; count > 0; count--) {
		struct ibv_qp *qp = must("ibv_create_qp", ibv_create_qp(s->pd, &attr));
		uint32_t number = qp->qp_num;

		hd_ctl_put(s->ctl, &number, sizeof(number));
		hd_ctl_get(s->ctl, &number, sizeof(number), NULL, NULL);
		rc_connect(qp, number, s->other.lid);
		qp->qp_context = &s->seen[s->qps];
		s->qp[s->qps++] = qp;
	}
}

/* ---- work ------------------------------------------------------------------------------------ */

static void saw(struct side *s, uint32_t number)
{
	for (long i = 0; i < s->qps; i++)
		if (s->qp[i]->qp_num == number)
			s->seen[i] = true;
}

/* Returns how many messages and how many ends of our own were read. */
static int reap(struct side *s, uint64_t *received)
{
	struct ibv_wc wc[16];
	int n = ibv_poll_cq(s->cq, 16, wc), ours = 0;

	if (n < 0)
		hd_give_up("ibv_poll_cq failed");
	for (int i = 0; i < n; i++) {
		if (wc[i].status)
			hd_give_up("a completion: %s", ibv_wc_status_str(wc[i].status));
		if (!(wc[i].opcode & IBV_WC_RECV)) {
			ours++;
			continue;
		}
		++*received;
		s->lacking++;
		saw(s, wc[i].qp_num);
	}
	receives_post(s);
	return ours;
}

static void post(struct side *s, long qp, enum ibv_wr_opcode opcode)
{
	struct ibv_sge sge = { (uintptr_t)s->buf, 8, s->mr->lkey };
	struct ibv_send_wr wr = { .opcode = opcode,
				  .sg_list = &sge,
				  .num_sge = 1,
				  .wr.rdma = { s->other.addr + 64, s->other.rkey } };
	struct ibv_send_wr *bad;

	must_be_0("ibv_post_send", ibv_post_send(s->qp[qp], &wr, &bad));
}

static void finish(struct side *s, long count)
{
	uint64_t received = 0;

	while (count > 0)
		count -= reap(s, &received);
}

static void do_one(struct side *s, enum ibv_wr_opcode opcode)
{
	post(s, 0, opcode);
	finish(s, 1);
}

/* ---- the two processes ----------------------------------------------------------------------- */

struct plan {
	const char *device, *transport;
	long qps, rounds, wakes;
	int cpus[2];
};

static void turn(void *arg)
{
	uint64_t received = 0;

	reap(arg, &received);
}

static void poll_for(struct side *s, uint64_t messages)
{
	uint64_t received = 0;

	while (received < messages)
		reap(s, &received);
}

static void sleep_for(struct side *s, uint64_t messages)
{
	uint64_t received = 0;
	struct ibv_cq *cq;
	void *context;

	while (received < messages) {
		must_be_0("ibv_req_notify_cq", ibv_req_notify_cq(s->cq, 0));
		reap(s, &received);
		if (received >= messages)
			break;
		must_be_0("ibv_get_cq_event", ibv_get_cq_event(s->channel, &cq, &context));
		ibv_ack_cq_events(cq, 1);
		reap(s, &received);
	}
}

static void serve(struct side *s, const struct plan *p)
{
	struct answer a = { 0 };
	char word;

	hd_pin(p->cpus[1]);
	side_open(s, p->device, p->qps);
	qps_add(s, 1);
	poll_for(s, 1);
	a.kib = hd_resident_kib();
	qps_add(s, p->qps);
	hd_ctl_get(s->ctl, &word, 1, NULL, NULL); /* idle */
	a.kib = hd_resident_kib() - a.kib;
	memset(s->seen, 0, sizeof(s->seen));
	hd_ctl_put(s->ctl, &word, 1);
	poll_for(s, (uint64_t)p->qps + 1);
	for (long i = 0; i < s->qps; i++)
		a.seen += s->seen[i];
	hd_ctl_put(s->ctl, &a, sizeof(a));
	poll_for(s, (uint64_t)p->rounds);
	a.woken = woken;
	hd_ctl_put(s->ctl, &word, 1);
	poll_for(s, (uint64_t)p->rounds);
	hd_ctl_get(s->ctl, &word, 1, turn, s);
	a.woken = woken - a.woken;
	hd_ctl_put(s->ctl, &a, sizeof(a));
	sleep_for(s, (uint64_t)p->wakes);
	hd_ctl_get(s->ctl, &word, 1, NULL, NULL);
}

static void many(struct side *s, const struct plan *p)
{
	double kib = hd_resident_kib();
	struct answer a;
	char word = 0;

	qps_add(s, p->qps);
	hd_ctl_put(s->ctl, &word, 1);
	hd_ctl_get(s->ctl, &word, 1, NULL, NULL);
	kib = hd_resident_kib() - kib;
	for (long i = 0; i < s->qps; i++)
		post(s, i, IBV_WR_SEND);
	finish(s, s->qps);
	hd_ctl_get(s->ctl, &a, sizeof(a), turn, s);
	if (a.seen != (uint64_t)s->qps)
		hd_give_up("only %llu of %ld queue pairs got on", (unsigned long long)a.seen, s->qps);
	printf("test=qp transport=%s n=%ld kib=%.3f other_kib=%.3f\n", p->transport, p->qps,
	       kib / (double)p->qps, a.kib / (double)p->qps);
}

static void rounds(struct side *s, long n)
{
	for (; n > 0; n--) {
		do_one(s, IBV_WR_RDMA_WRITE);
		do_one(s, IBV_WR_RDMA_READ);
		do_one(s, IBV_WR_SEND);
	}
}

static void count_wakes(struct side *s, const struct plan *p)
{
	uint64_t before;
	struct answer a;
	char word = 0;

	rounds(s, p->rounds); /* until both are known to poll */
	hd_ctl_get(s->ctl, &word, 1, turn, s);
	before = woken;
	rounds(s, p->rounds);
	before = woken - before;
	hd_ctl_put(s->ctl, &word, 1);
	hd_ctl_get(s->ctl, &a, sizeof(a), turn, s);
	printf("test=wakes transport=%s target=polling operations=%ld wakes=%llu\n", p->transport,
	       3 * p->rounds, (unsigned long long)(before + a.woken));
	before = woken;
	for (long i = 0; i < p->wakes; i++) {
		usleep(PAUSE_US);
		do_one(s, IBV_WR_SEND);
	}
	printf("test=wakes transport=%s target=asleep operations=%ld wakes=%llu\n", p->transport, p->wakes,
	       (unsigned long long)(woken - before));
	hd_ctl_put(s->ctl, &word, 1);
}

/* ---- what the n-th costs --------------------------------------------------------------------- */

static const char *const kinds[] = { "qp", "srq", "window" };
static const long at[] = { 10, 1000, 100000 };

static void *make(const struct side *s, struct ibv_cq *cq, int kind)
{
	struct ibv_qp_init_attr qp = {
		.send_cq = cq, .recv_cq = cq, .cap = { 1, 1, 1, 1 }, .qp_type = IBV_QPT_RC
	};
	struct ibv_srq_init_attr srq = { .attr = { 1, 1, 0 } };

	if (kind == 0)
		return must("ibv_create_qp", ibv_create_qp(s->pd, &qp));
	if (kind == 1)
		return must("ibv_create_srq", ibv_create_srq(s->pd, &srq));
	return must("ibv_alloc_mw", ibv_alloc_mw(s->pd, IBV_MW_TYPE_2));
}

/* Of this process, in all its threads: others on the machine do not count. */
static uint64_t cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Half of those that there are then are timed; all of them end with the process. */
static void count_costs(struct side *s, const struct plan *p)
{
	struct ibv_cq *cq = must("ibv_create_cq", ibv_create_cq(s->context, 16, NULL, NULL, 0));

	for (int kind = 0; kind < 3; kind++) {
		long n = 0;

		for (int i = 0; i < 3; i++) {
			uint64_t since;

			for (; n < at[i] / 2; n++)
				make(s, cq, kind);
			since = cpu_ns();
			for (; n < at[i]; n++)
				make(s, cq, kind);
			printf("test=cost transport=%s what=%s n=%ld us=%.3f\n", p->transport, kinds[kind], n,
			       (double)(cpu_ns() - since) / 1e3 / (double)(at[i] - at[i] / 2));
		}
	}
}

static void measure(struct side *s, const struct plan *p)
{
	hd_pin(p->cpus[0]);
	side_open(s, p->device, p->qps);
	qps_add(s, 1);
	do_one(s, IBV_WR_SEND);
	many(s, p);
	count_wakes(s, p);
	count_costs(s, p);
}

static void parse(struct plan *p, int argc, char **argv)
{
	int opt;

	while ((opt = getopt(argc, argv, "c:d:n:r:w:")) != -1)
		switch (opt) {
		case 'c':
			hd_parse_pair(optarg, p->cpus);
			break;
		case 'd':
			p->device = optarg;
			break;
		case 'n':
			p->qps = hd_parse_long(optarg, 1, QPS_MAX - 1, "queue pairs");
			break;
		case 'r':
			p->rounds = hd_parse_long(optarg, 1, 100000000, "rounds");
			break;
		case 'w':
			p->wakes = hd_parse_long(optarg, 1, 100000, "wakes");
			break;
		default:
			hd_give_up(
				"usage: hd-verbs [-d DEVICE] [-c CPU,CPU] [-n QUEUE_PAIRS] [-r ROUNDS] [-w WAKES]");
		}
}

int main(int argc, char **argv)
{
	struct plan p = { .device = "heddle0", .qps = 1000, .rounds = 5000, .wakes = 50, .cpus = { 0, 1 } };
	static struct side s;
	pid_t child;
	int fd[2];

	parse(&p, argc, argv);
	p.transport = getenv("HEDDLE_TRANSPORT") ? getenv("HEDDLE_TRANSPORT") : "auto";
	hd_ctl_pair(fd);
	child = hd_ctl_fork();
	s.ctl = fd[child == 0];
	close(fd[child != 0]);
	if (child == 0) {
		serve(&s, &p);
		return 0;
	}
	measure(&s, &p);
	hd_ctl_reap(child, "receiving");
	return 0;
}
