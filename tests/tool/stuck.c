/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * stuck WAY: a program that hangs in one of the ways in which programs do, with both ends in it, or
 * with a child as the other one (two.h). It goes on to ask for completions, prints "ready" when it
 * hangs, and ends with its standard input.
 */
#include "two.h"

#include <errno.h>
#include <infiniband/verbs.h>
#include <poll.h>
#include <pthread.h>
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_tagged.h>
#include <rdma/fi_trigger.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

struct side {
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_ep *ep;
	struct fid_cq *cq, *sent; /* of what it receives, and of what it sends */
	struct fid_av *av;
	struct fid_cntr *cntr; /* of its receives */
};

static struct side from, to;
static fi_addr_t there;
static char data[4096], much[1 << 20];

static void must(ssize_t rc, const char *what)
{
	if (rc >= 0)
		return;
	fprintf(stderr, "stuck: %s: %s\n", what, fi_strerror((int)-rc));
	exit(1);
}

static void side_open(struct side *s, size_t completions)
{
	struct fi_cq_attr cq_attr = { .format = FI_CQ_FORMAT_TAGGED,
				      .size = completions,
				      .wait_obj = FI_WAIT_UNSPEC };
	struct fi_av_attr av_attr = { .type = FI_AV_TABLE };
	struct fi_cntr_attr cntr_attr = { .events = FI_CNTR_EVENTS_COMP, .wait_obj = FI_WAIT_UNSPEC };
	struct fi_info *hints = fi_allocinfo(), *info;

	hints->caps = FI_TAGGED | FI_TRIGGER;
	hints->ep_attr->type = FI_EP_RDM;
	must(fi_getinfo(FI_VERSION(1, 17), "127.0.0.1", NULL, FI_SOURCE, hints, &info), "fi_getinfo");
	must(fi_fabric(info->fabric_attr, &s->fabric, NULL), "fi_fabric");
	must(fi_domain(s->fabric, info, &s->domain, NULL), "fi_domain");
	must(fi_cq_open(s->domain, &cq_attr, &s->cq, NULL), "fi_cq_open");
	must(fi_cq_open(s->domain, &cq_attr, &s->sent, NULL), "fi_cq_open");
	must(fi_av_open(s->domain, &av_attr, &s->av, NULL), "fi_av_open");
	must(fi_endpoint(s->domain, info, &s->ep, NULL), "fi_endpoint");
	must(fi_ep_bind(s->ep, &s->cq->fid, FI_RECV), "fi_ep_bind");
	must(fi_ep_bind(s->ep, &s->sent->fid, FI_TRANSMIT), "fi_ep_bind");
	must(fi_ep_bind(s->ep, &s->av->fid, 0), "fi_ep_bind");
	must(fi_cntr_open(s->domain, &cntr_attr, &s->cntr, NULL), "fi_cntr_open");
	must(fi_ep_bind(s->ep, &s->cntr->fid, FI_RECV), "fi_ep_bind");
	must(fi_enable(s->ep), "fi_enable");
	fi_freeinfo(info);
	fi_freeinfo(hints);
}

static void know(void)
{
	char name[128];
	size_t len = sizeof(name);

	must(fi_getname(&to.ep->fid, name, &len), "fi_getname");
	must(fi_av_insert(from.av, name, 1, &there, 0, NULL) - 1, "fi_av_insert");
}

static bool sender_reads = true;

/*
 * What a program does that waits for something: it asks for completions. Those of either end are
 * read only where it does.
 */
static void ask(bool receiver_reads)
{
	struct fi_cq_tagged_entry e;

	fi_cq_read(from.sent, &e, sender_reads);
	fi_cq_read(to.cq, &e, receiver_reads);
}

static ssize_t send_one(size_t len)
{
	return fi_tsend(from.ep, data, len, NULL, there, 7, NULL);
}

/*
 * The first has left when the link is up: while it is made, what is refused
 * does not want for credit.
 */
static void send_first(size_t len, bool receiver_reads)
{
	struct fi_cq_tagged_entry e;

	must(send_one(len), "fi_tsend");
	while (fi_cq_read(from.sent, &e, 1) == -FI_EAGAIN)
		fi_cq_read(to.cq, &e, receiver_reads);
}

/* Until the provider has refused for so long that it will not take more. */
static void send_all(size_t len, bool receiver_reads)
{
	send_first(len, receiver_reads);
	for (int refused = 0; refused < 3000;) {
		ssize_t rc = send_one(len);

		if (rc != -FI_EAGAIN)
			must(rc, "fi_tsend");
		refused = rc ? refused + 1 : 0;
		ask(receiver_reads);
	}
}

static void hang_asking(struct fid_cq *cq)
{
	struct pollfd in = { .events = POLLIN };
	struct fi_cq_tagged_entry e;

	puts("ready");
	fflush(stdout);
	while (poll(&in, 1, 1) == 0)
		fi_cq_read(cq, &e, 1);
}

static void hang(bool receiver_reads)
{
	struct pollfd in = { .events = POLLIN };

	puts("ready");
	fflush(stdout);
	while (poll(&in, 1, 1) == 0)
		ask(receiver_reads);
}

/* ---- the other end calls nothing any more ------------------------------------------------------ */

/* Until one message has come, which it is told the way to. Then it stops itself, or just sleeps. */
static void child_goes_away(const struct two *t, bool stops)
{
	struct fi_cq_tagged_entry e;
	char name[128] = "";
	size_t len = sizeof(name);

	side_open(&to, 16);
	must(fi_trecv(to.ep, data, sizeof(data), NULL, FI_ADDR_UNSPEC, 7, 0, NULL), "fi_trecv");
	must(fi_getname(&to.ep->fid, name, &len), "fi_getname");
	must(write(t->fd, name, sizeof(name)), "the name");
	while (fi_cq_read(to.cq, &e, 1) == -FI_EAGAIN)
		continue;
	two_tell(t, 0);
	if (stops)
		raise(SIGSTOP);
	else
		two_hang(t);
}

/* A short message arrives, a long one is never asked for. */
static void hang_at_child(bool stops)
{
	struct two t = two_begin();
	struct fi_cq_tagged_entry e;
	char name[128];
	ssize_t rc;

	if (t.is_child) {
		child_goes_away(&t, stops);
		return;
	}
	side_open(&from, 16);
	must(read(t.fd, name, sizeof(name)) - (ssize_t)sizeof(name), "the name");
	must(fi_av_insert(from.av, name, 1, &there, 0, NULL) - 1, "fi_av_insert");
	while ((rc = fi_tsend(from.ep, data, 8, NULL, there, 7, NULL)) == -FI_EAGAIN)
		fi_cq_read(from.sent, &e, 1);
	must(rc, "fi_tsend");
	while (fi_cq_read(from.sent, &e, 1) == -FI_EAGAIN)
		continue;
	two_hear(&t);
	if (stops)
		waitpid(t.pid, NULL, WUNTRACED);
	must(fi_tsend(from.ep, much, sizeof(much), NULL, there, 7, NULL), "fi_tsend");
	hang_asking(from.sent);
	kill(t.pid, SIGKILL);
}

static void hang_away(void)
{
	hang_at_child(false);
}

static void hang_stopped(void)
{
	hang_at_child(true);
}

/* ---- what the program itself has not done ---------------------------------------------------- */

static void *wait_counter(void *arg)
{
	fi_cntr_wait(to.cntr, 6, -1);
	return arg;
}

static void post_many(void)
{
	for (int i = 0; i < 500; i++)
		must(fi_trecv(to.ep, data, sizeof(data), NULL, FI_ADDR_UNSPEC, 7, 0, NULL), "fi_trecv");
}

/* Nobody reads what has been sent, so that no more is taken. */
static void hang_sent_unread(void)
{
	post_many();
	sender_reads = false;
	send_all(8, true);
	hang(true);
}

/* A thread waits for six messages, of which one comes. */
static void hang_counter(void)
{
	pthread_t thread;

	must(fi_trecv(to.ep, data, sizeof(data), NULL, FI_ADDR_UNSPEC, 7, 0, NULL), "fi_trecv");
	send_first(8, true);
	must(-pthread_create(&thread, NULL, wait_counter, NULL), "a thread");
	for (int i = 0; i < 1000; i++)
		ask(true);
	hang(true);
}

/* A send waits for the ninth message. */
static void hang_triggered(void)
{
	static struct iovec iov = { data, 8 };
	static struct fi_op_tagged op = { .msg = { .msg_iov = &iov, .iov_count = 1, .tag = 7 } };
	static struct fi_deferred_work work = { .threshold = 9, .op_type = FI_OP_TSEND };

	op.ep = from.ep;
	op.msg.addr = there;
	work.triggering_cntr = from.cntr;
	work.op.tagged = &op;
	must(fi_control(&from.domain->fid, FI_QUEUE_WORK, &work), "FI_QUEUE_WORK");
	hang(true);
}

/* ---- a queue pair that finds no receive ------------------------------------------------------ */

struct pair {
	struct ibv_context *context[2];
	struct ibv_pd *pd[2];
	struct ibv_cq *cq[2];
	struct ibv_qp *qp[2];
	struct ibv_mr *mr;
	struct ibv_srq *srq; /* of the second, or NULL */
	bool paused;	     /* the first is in SQD */
	bool unready;	     /* the second stays in INIT */
	uint16_t lid;
};

static void *must_be(void *object, const char *what)
{
	if (object)
		return object;
	fprintf(stderr, "stuck: %s: %s\n", what, strerror(errno));
	exit(1);
}

static struct pair pair_open(void)
{
	struct ibv_device **devices = must_be(ibv_get_device_list(NULL), "ibv_get_device_list");
	struct pair p = { 0 };
	struct ibv_port_attr port;

	for (int i = 0; i < 2; i++) {
		p.context[i] = must_be(ibv_open_device(must_be(devices[0], "a device")), "ibv_open_device");
		p.pd[i] = must_be(ibv_alloc_pd(p.context[i]), "ibv_alloc_pd");
		p.cq[i] = must_be(ibv_create_cq(p.context[i], 16, NULL, NULL, 0), "ibv_create_cq");
	}
	p.mr = must_be(ibv_reg_mr(p.pd[0], data, sizeof(data), 0), "ibv_reg_mr");
	must(-ibv_query_port(p.context[0], 1, &port), "ibv_query_port");
	p.lid = port.lid;
	ibv_free_device_list(devices);
	return p;
}

/* The sender tries six times, 655 ms apart. */
static void qp_connect(struct ibv_qp *qp, uint32_t other, uint16_t lid, bool no_further)
{
	struct ibv_qp_attr init = { .qp_state = IBV_QPS_INIT, .port_num = 1 };
	struct ibv_qp_attr rtr = { .qp_state = IBV_QPS_RTR,
				   .path_mtu = IBV_MTU_1024,
				   .dest_qp_num = other,
				   .min_rnr_timer = 0,
				   .ah_attr = { .dlid = lid, .port_num = 1 } };
	struct ibv_qp_attr rts = { .qp_state = IBV_QPS_RTS, .timeout = 14, .retry_cnt = 7, .rnr_retry = 6 };

	must(-ibv_modify_qp(qp, &init, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS),
	     "to INIT");
	if (no_further)
		return;
	must(-ibv_modify_qp(qp, &rtr,
			    IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
				    IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER),
	     "to RTR");
	must(-ibv_modify_qp(qp, &rts,
			    IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
				    IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC),
	     "to RTS");
}

static void pair_post(struct pair *p)
{
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND }, *bad;

	must(-ibv_post_send(p->qp[0], &wr, &bad), "ibv_post_send");
}

static void pair_make(struct pair *p, int i)
{
	struct ibv_qp_init_attr attr = { .send_cq = p->cq[i],
					 .recv_cq = p->cq[i],
					 .cap = { 4, 4, 1, 1, 0 },
					 .qp_type = IBV_QPT_RC,
					 .srq = i ? p->srq : NULL,
					 .sq_sig_all = 1 };

	p->qp[i] = must_be(ibv_create_qp(p->pd[i], &attr), "ibv_create_qp");
}

static void pair_send(struct pair *p)
{
	for (int i = 0; i < 2; i++)
		pair_make(p, i);
	for (int i = 0; i < 2; i++)
		qp_connect(p->qp[i], p->qp[!i]->qp_num, p->lid, i && p->unready);
	if (p->paused)
		must(-ibv_modify_qp(p->qp[0], &(struct ibv_qp_attr){ .qp_state = IBV_QPS_SQD }, IBV_QP_STATE),
		     "to SQD");
	pair_post(p);
}

/* When the sender has given up it begins again, so that whoever looks sees it wait. */
static void hang_pair(struct pair p)
{
	struct pollfd in = { .events = POLLIN };
	struct ibv_wc wc;

	pair_send(&p);
	for (int i = 0; i < 2000; i++) {
		ibv_poll_cq(p.cq[0], 1, &wc);
		ibv_poll_cq(p.cq[1], 1, &wc);
	}
	puts("ready");
	fflush(stdout);
	while (poll(&in, 1, 1) == 0) {
		ibv_poll_cq(p.cq[1], 1, &wc);
		if (ibv_poll_cq(p.cq[0], 1, &wc) > 0) {
			ibv_destroy_qp(p.qp[0]);
			ibv_destroy_qp(p.qp[1]);
			pair_send(&p);
		}
	}
}

static void hang_rnr(void)
{
	hang_pair(pair_open());
}

static void hang_shared(void)
{
	struct ibv_srq_init_attr attr = { .attr = { .max_wr = 4, .max_sge = 1 } };
	struct pair p = pair_open();

	p.srq = must_be(ibv_create_srq(p.pd[1], &attr), "ibv_create_srq");
	hang_pair(p);
}

static void hang_paused(void)
{
	struct pair p = pair_open();

	p.paused = true;
	hang_pair(p);
}

/*
 * The child has taken one message, and stops itself: one that merely calls nothing has a thread that
 * takes the next.
 */
static void hang_stopped_verbs(void)
{
	struct two t = two_begin();
	struct pollfd in = { .events = POLLIN };
	struct pair p = pair_open();
	struct ibv_recv_wr *bad;
	struct ibv_wc wc;
	int i = t.is_child;

	pair_make(&p, i);
	two_tell(&t, p.qp[i]->qp_num);
	qp_connect(p.qp[i], (uint32_t)two_hear(&t), p.lid, false);
	if (i)
		must(-ibv_post_recv(p.qp[i], &(struct ibv_recv_wr){ 0 }, &bad), "ibv_post_recv");
	else
		pair_post(&p);
	while (!ibv_poll_cq(p.cq[i], 1, &wc))
		continue;
	if (i) {
		two_tell(&t, 0);
		raise(SIGSTOP);
		return;
	}
	two_hear(&t);
	waitpid(t.pid, NULL, WUNTRACED);
	pair_post(&p);
	puts("ready");
	fflush(stdout);
	while (poll(&in, 1, 1) == 0)
		ibv_poll_cq(p.cq[0], 1, &wc);
	kill(t.pid, SIGKILL);
}

static void hang_unready(void)
{
	struct pair p = pair_open();

	p.unready = true;
	hang_pair(p);
}

/* ---- a connection that nobody answers -------------------------------------------------------- */

static void hang_unanswered(void)
{
	struct fi_info *hints = fi_allocinfo(), *info;
	struct fi_eq_attr attr = { .wait_obj = FI_WAIT_NONE };
	struct pollfd in = { .events = POLLIN };
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_pep *pep;
	struct fid_ep *ep;
	struct fid_eq *eq;
	char name[128];
	size_t len = sizeof(name);
	bool told = false;

	hints->caps = FI_MSG;
	hints->ep_attr->type = FI_EP_MSG;
	must(fi_getinfo(FI_VERSION(1, 17), "127.0.0.1", NULL, FI_SOURCE, hints, &info), "fi_getinfo");
	must(fi_fabric(info->fabric_attr, &fabric, NULL), "fi_fabric");
	must(fi_eq_open(fabric, &attr, &eq, NULL), "fi_eq_open");
	must(fi_passive_ep(fabric, info, &pep, NULL), "fi_passive_ep");
	must(fi_pep_bind(pep, &eq->fid, 0), "fi_pep_bind");
	must(fi_listen(pep), "fi_listen");
	must(fi_getname(&pep->fid, name, &len), "fi_getname");
	must(fi_domain(fabric, info, &domain, NULL), "fi_domain");
	must(fi_endpoint(domain, info, &ep, NULL), "fi_endpoint");
	must(fi_ep_bind(ep, &eq->fid, 0), "fi_ep_bind");
	from.domain = domain;
	must(fi_cq_open(domain, &(struct fi_cq_attr){ .size = 16 }, &from.cq, NULL), "fi_cq_open");
	must(fi_ep_bind(ep, &from.cq->fid, FI_TRANSMIT | FI_RECV), "fi_ep_bind");
	must(fi_enable(ep), "fi_enable");
	must(fi_connect(ep, name, NULL, 0), "fi_connect");
	while (poll(&in, 1, 1) == 0) {
		struct fi_cq_tagged_entry completion;
		struct fi_eq_cm_entry entry;
		uint32_t event;

		fi_cq_read(from.cq, &completion, 1);
		if (!told && fi_eq_read(eq, &event, &entry, sizeof(entry), 0) > 0 && event == FI_CONNREQ) {
			told = true;
			puts("ready");
			fflush(stdout);
		}
	}
	fi_freeinfo(info);
	fi_freeinfo(hints);
}

/* ---- a thread that waits for what does not come ----------------------------------------------- */

static void thread_begin(void *(*run)(void *arg), void *arg)
{
	pthread_t thread;

	must(-pthread_create(&thread, NULL, run, arg), "a thread");
}

/* Until the thread has been asleep for a while, which is all that the program does. */
static void hang_asleep(void)
{
	struct pollfd in = { .events = POLLIN };

	poll(NULL, 0, 300);
	puts("ready");
	fflush(stdout);
	poll(&in, 1, -1);
	fflush(stdout);
	_exit(0);
}

static void *wait_completion(void *arg)
{
	struct fi_cq_tagged_entry e;

	fi_cq_sread(arg, &e, 1, NULL, -1);
	return arg;
}

static void hang_asleep_cq(void)
{
	must(fi_trecv(to.ep, data, sizeof(data), NULL, FI_ADDR_UNSPEC, 7, 0, NULL), "fi_trecv");
	thread_begin(wait_completion, to.cq);
	hang_asleep();
}

static void *wait_event(void *arg)
{
	struct fi_eq_cm_entry entry;
	uint32_t event;

	fi_eq_sread(arg, &event, &entry, sizeof(entry), -1, 0);
	return arg;
}

/* A listener that nobody calls. */
static void hang_asleep_eq(void)
{
	struct fi_eq_attr attr = { .wait_obj = FI_WAIT_UNSPEC };
	struct fi_info *hints = fi_allocinfo(), *info;
	struct fid_fabric *fabric;
	struct fid_pep *pep;
	struct fid_eq *eq;

	hints->caps = FI_MSG;
	hints->ep_attr->type = FI_EP_MSG;
	must(fi_getinfo(FI_VERSION(1, 17), "127.0.0.1", NULL, FI_SOURCE, hints, &info), "fi_getinfo");
	must(fi_fabric(info->fabric_attr, &fabric, NULL), "fi_fabric");
	must(fi_eq_open(fabric, &attr, &eq, NULL), "fi_eq_open");
	must(fi_passive_ep(fabric, info, &pep, NULL), "fi_passive_ep");
	must(fi_pep_bind(pep, &eq->fid, 0), "fi_pep_bind");
	must(fi_listen(pep), "fi_listen");
	thread_begin(wait_event, eq);
	hang_asleep();
}

static void *wait_cq_event(void *arg)
{
	struct ibv_cq *cq;

	ibv_get_cq_event(arg, &cq, &arg);
	return arg;
}

/* Whether the queue was armed before, as ibv_get_cq_event(3) has it, or that was forgotten. */
static void hang_asleep_verbs(bool armed)
{
	struct pair p = pair_open();
	struct ibv_comp_channel *channel =
		must_be(ibv_create_comp_channel(p.context[0]), "ibv_create_comp_channel");

	p.cq[0] = must_be(ibv_create_cq(p.context[0], 16, NULL, channel, 0), "ibv_create_cq");
	pair_make(&p, 0);
	if (armed)
		must(-ibv_req_notify_cq(p.cq[0], 0), "ibv_req_notify_cq");
	thread_begin(wait_cq_event, channel);
	hang_asleep();
}

static void hang_asleep_armed(void)
{
	hang_asleep_verbs(true);
}

static void hang_asleep_unarmed(void)
{
	hang_asleep_verbs(false);
}

/* ---- messages without receives, and a queue that is not read ---------------------------------- */

static void hang_no_receive(void)
{
	ssize_t rc;

	while ((rc = send_one(8)) == -FI_EAGAIN)
		ask(true);
	must(rc, "fi_tsend");
	for (int i = 0; i < 1000; i++)
		ask(true);
	hang(true);
}

static void hang_no_credit(void)
{
	send_all(sizeof(data), true);
	hang(true);
}

static void hang_unread(void)
{
	post_many();
	send_all(sizeof(data), false);
	hang(false);
}

/* What hangs, and how many completions the queues of both ends hold; 0: it opens its own. */
static const struct way {
	const char *name;
	void (*hang)(void);
	size_t sent, received;
} ways[] = {
	{ "no-receive", hang_no_receive, 4096, 4096 },
	{ "no-credit", hang_no_credit, 4096, 4096 },
	{ "unread", hang_unread, 4096, 2 },
	{ "sent-unread", hang_sent_unread, 2, 4096 },
	{ "counter", hang_counter, 4096, 4096 },
	{ "triggered", hang_triggered, 4096, 4096 },
	{ "rnr", hang_rnr, 0, 0 },
	{ "shared", hang_shared, 0, 0 },
	{ "paused", hang_paused, 0, 0 },
	{ "unready", hang_unready, 0, 0 },
	{ "unanswered", hang_unanswered, 0, 0 },
	{ "asleep-cq", hang_asleep_cq, 16, 16 },
	{ "asleep-eq", hang_asleep_eq, 0, 0 },
	{ "asleep-armed", hang_asleep_armed, 0, 0 },
	{ "asleep-unarmed", hang_asleep_unarmed, 0, 0 },
	{ "away", hang_away, 0, 0 },
	{ "stopped", hang_stopped, 0, 0 },
	{ "stopped-verbs", hang_stopped_verbs, 0, 0 },
};

int main(int argc, char **argv)
{
	for (size_t i = 0; argc > 1 && i < sizeof(ways) / sizeof(ways[0]); i++) {
		if (strcmp(argv[1], ways[i].name))
			continue;
		if (ways[i].sent) {
			side_open(&from, ways[i].sent);
			side_open(&to, ways[i].received);
			know();
		}
		ways[i].hang();
		return 0;
	}
	fputs("usage: stuck WAY, which is one of\n", stderr);
	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++)
		fprintf(stderr, "  %s\n", ways[i].name);
	return 2;
}
