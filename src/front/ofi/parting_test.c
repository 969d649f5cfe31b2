/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * fi_close(3) of what receives while the process at the other end is stopped, by SIGSTOP, when it
 * is about to write its part of a message to memory here: it waits for that process, other threads
 * of the program do not, and the memory is the program's when it has come back.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/clock.h"
#include "front/ofi/ofi.h"
#include "transport/stopped.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>

#define PATIENCE_S 30
#define LONG (64u << 20)
#define BITS 1 /* of receive contexts */
#define TAG 7

/* Both processes see it. */
struct shared {
	struct stopped stopped;
	char name[64];	   /* of ours */
	atomic_bool named; /* published last */
};

enum kind {
	ENDPOINT,
	SHARED,	 /* a shared receive context, with its endpoint */
	SCALABLE /* a receive context */
};

struct party {
	enum kind kind;
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_av *av;
	struct fid_cq *cq;
	struct fid_ep *ep;   /* has the name */
	struct fid_ep *from; /* is received from */
	unsigned char *memory;
};

static struct shared *shared;
static pid_t they_are;

/* ---- both ------------------------------------------------------------------------------------ */

static void must(int rc)
{
	if (rc)
		abort();
}

static void party_open(struct party *p)
{
	struct fi_av_attr av = { .type = FI_AV_TABLE, .rx_ctx_bits = BITS };
	struct fi_cq_attr cq = { .format = FI_CQ_FORMAT_TAGGED };
	struct fi_info *hints = fi_allocinfo();

	hints->caps = FI_TAGGED;
	hints->domain_attr->threading = FI_THREAD_SAFE;
	hints->ep_attr->rx_ctx_cnt = p->kind == SHARED ? FI_SHARED_CONTEXT : 1;
	must(hd_fi_getinfo(HD_FI_OLDEST, "127.0.0.1", NULL, FI_SOURCE, hints, &p->info));
	fi_freeinfo(hints);
	must(hd_fi_fabric_open(p->info->fabric_attr, &p->fabric, NULL));
	must(fi_domain(p->fabric, p->info, &p->domain, NULL));
	must(fi_av_open(p->domain, &av, &p->av, NULL));
	must(fi_cq_open(p->domain, &cq, &p->cq, NULL));
	p->memory = calloc(1, LONG);
}

/*
 * True: a completion. What is under way when an endpoint is closed ends in error at the other end.
 */
static bool completed(struct party *p)
{
	struct fi_cq_err_entry bad = { 0 };
	struct fi_cq_tagged_entry e;
	ssize_t n = fi_cq_read(p->cq, &e, 1);

	if (n == -FI_EAVAIL)
		n = fi_cq_readerr(p->cq, &bad, 0);
	if (n != 1 && n != -FI_EAGAIN)
		abort();
	return n == 1;
}

/* ---- they ------------------------------------------------------------------------------------ */

/* They send again and again, until they have been stopped. */
static void they(void)
{
	struct party p = { .kind = ENDPOINT };
	fi_addr_t to;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	party_open(&p);
	memset(p.memory, THEIRS, LONG);
	must(fi_endpoint(p.domain, p.info, &p.ep, NULL));
	must(fi_ep_bind(p.ep, &p.av->fid, 0));
	must(fi_ep_bind(p.ep, &p.cq->fid, FI_TRANSMIT | FI_RECV));
	must(fi_enable(p.ep));
	while (!atomic_load(&shared->named))
		usleep(100);
	if (fi_av_insert(p.av, shared->name, 1, &to, 0, NULL) != 1)
		_exit(1);
	to = fi_rx_addr(to, 0, BITS);
	stopped_wait(&shared->stopped);
	for (bool due = true; !atomic_load(&shared->stopped.over);
	     due |= completed(&p) && !shared->stopped.len)
		if (due)
			due = fi_tsend(p.ep, p.memory, LONG, NULL, to, TAG, NULL) != 0;
	_exit(0);
}

/* ---- we -------------------------------------------------------------------------------------- */

static void post(struct party *p)
{
	must((int)fi_trecv(p->from, p->memory, LONG, NULL, FI_ADDR_UNSPEC, TAG, 0, p));
}

static void open_scalable(struct party *p)
{
	must(fi_scalable_ep(p->domain, p->info, &p->ep, NULL));
	must(fi_scalable_ep_bind(p->ep, &p->av->fid, 0));
	must(fi_enable(p->ep));
	must(fi_rx_context(p->ep, 0, NULL, &p->from, NULL));
	must(fi_ep_bind(p->from, &p->cq->fid, FI_RECV));
	must(fi_enable(p->from));
}

static void open_usual(struct party *p)
{
	must(fi_endpoint(p->domain, p->info, &p->ep, NULL));
	if (p->kind == SHARED)
		must(fi_srx_context(p->domain, p->info->rx_attr, &p->from, NULL));
	else
		p->from = p->ep;
	if (p->kind == SHARED)
		must(fi_ep_bind(p->ep, &p->from->fid, 0));
	must(fi_ep_bind(p->ep, &p->av->fid, 0));
	must(fi_ep_bind(p->ep, &p->cq->fid, FI_TRANSMIT | FI_RECV));
	must(fi_enable(p->ep));
}

static void scene_open(struct party *p, enum kind kind)
{
	size_t len = sizeof(shared->name);

	setenv("HEDDLE_TRANSPORT", "shm", 1);
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(shared, MAP_FAILED);
	shared->stopped.writes = true;
	they_are = fork();
	assert_true(they_are >= 0);
	if (!they_are)
		they();
	*p = (struct party){ .kind = kind };
	party_open(p);
	if (kind == SCALABLE)
		open_scalable(p);
	else
		open_usual(p);
	post(p);
	must(fi_getname(&p->ep->fid, shared->name, &len));
	atomic_store(&shared->named, true);
	while (!stopped_is(&shared->stopped, they_are, p->memory, LONG))
		if (completed(p))
			post(p);
	rescue_after(they_are, PATIENCE_S);
}

static atomic_bool closed;
static void *closes(void *arg)
{
	struct party *p = arg;
	bool written;

	if (p->kind == SHARED)
		must(fi_close(&p->ep->fid));
	must(fi_close(&p->from->fid));
	written = stopped_has_written(&shared->stopped);
	memset(p->memory, OURS, LONG);
	atomic_store(&closed, true);
	return written ? p : NULL;
}

static void scene_close(struct party *p)
{
	stopped_end(&shared->stopped, they_are);
	assert_true(is_all(p->memory, LONG, OURS));
	if (p->kind == SCALABLE)
		must(fi_close(&p->ep->fid));
	must(fi_close(&p->cq->fid));
	must(fi_close(&p->av->fid));
	must(fi_close(&p->domain->fid));
	must(fi_close(&p->fabric->fid));
	fi_freeinfo(p->info);
	free(p->memory);
	munmap(shared, sizeof(*shared));
	unsetenv("HEDDLE_TRANSPORT");
}

static void closing(enum kind kind)
{
	pthread_t thread;
	struct party p;
	void *written;

	scene_open(&p, kind);
	closed = false;
	assert_int_equal(pthread_create(&thread, NULL, closes, &p), 0);
	for (uint64_t end = hd_now_ns() + 100 * HD_NS_PER_MS; hd_now_ns() < end;)
		completed(&p); /* the lock is not theirs, nor whoever closes' */
	assert_false(closed || rescued);
	kill(they_are, SIGCONT);
	pthread_join(thread, &written);
	assert_non_null(written);
	scene_close(&p);
}

static void an_endpoint_waits(void **state)
{
	closing(ENDPOINT);
}

static void an_endpoint_of_a_shared_context_waits(void **state)
{
	closing(SHARED);
}

static void a_receive_context_waits(void **state)
{
	closing(SCALABLE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_endpoint_waits),
		cmocka_unit_test(an_endpoint_of_a_shared_context_waits),
		cmocka_unit_test(a_receive_context_waits),
	};

	return cmocka_run_group_tests_name("ofi_parting", tests, NULL, NULL);
}
