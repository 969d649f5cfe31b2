/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * dat_ep_disconnect(3) and dat_ia_close(3) while the process at the other end is stopped, by
 * SIGSTOP, when it is about to write to memory here: a part of a message of its, or an RDMA write.
 * The first does not wait for it, and its event does; the second does: what it gives back is the
 * program's.
 */
#include "front/dat/connect.h"

#include "base/clock.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "transport/stopped.h"

#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>

#define PATIENCE_S 30
#define LONG (64u << 20)

/* Both processes see it. */
struct shared {
	struct stopped stopped;
	bool writes; /* they write to our region, and send no messages */
	DAT_RMR_TRIPLET ours;
	atomic_ulong qualifier; /* published last */
};

struct party {
	DAT_IA_HANDLE ia;
	DAT_PZ_HANDLE pz;
	DAT_EVD_HANDLE async, requests, connections, dtos;
	DAT_EP_HANDLE ep;
	DAT_LMR_HANDLE lmr;
	DAT_LMR_TRIPLET all;
	DAT_RMR_CONTEXT remote;
	unsigned char *memory;
};

static struct shared *shared;
static pid_t they_are;

/* ---- both ------------------------------------------------------------------------------------ */

static void must(DAT_RETURN rc)
{
	if (rc)
		abort();
}

static void party_open(struct party *p)
{
	static const DAT_PROVIDER provider;
	const DAT_EVD_FLAGS flags[] = { DAT_EVD_CR_FLAG, DAT_EVD_CONNECTION_FLAG, DAT_EVD_DTO_FLAG };
	DAT_EVD_HANDLE *evds[] = { &p->requests, &p->connections, &p->dtos };
	DAT_REGION_DESCRIPTION region;
	DAT_LMR_CONTEXT local;
	DAT_VADDR at;
	DAT_VLEN len;

	must(hu_ia_open_by(&provider, true, "heddle", 8, &p->async, &p->ia));
	must(hu_pz_create(p->ia, &p->pz));
	for (int i = 0; i < 3; i++)
		must(hu_evd_create(p->ia, 64, DAT_HANDLE_NULL, flags[i], evds[i]));
	region.for_va = p->memory = calloc(1, LONG);
	must(hu_lmr_create(p->ia, DAT_MEM_TYPE_VIRTUAL, region, LONG, p->pz,
			   (DAT_MEM_PRIV_FLAGS)(DAT_MEM_PRIV_LOCAL_READ_FLAG | DAT_MEM_PRIV_LOCAL_WRITE_FLAG |
						DAT_MEM_PRIV_REMOTE_WRITE_FLAG),
			   DAT_VA_TYPE_VA, &p->lmr, &local, &p->remote, &len, &at));
	p->all = (DAT_LMR_TRIPLET){ .virtual_address = (uintptr_t)p->memory,
				    .segment_length = LONG,
				    .lmr_context = local };
	must(hu_ep_create(p->ia, p->pz, p->dtos, p->dtos, p->connections, NULL, &p->ep));
}

static DAT_EVENT event(DAT_EVD_HANDLE evd)
{
	DAT_EVENT e;

	while (hu_evd_dequeue(evd, &e))
		sched_yield();
	return e;
}

/* ---- they ------------------------------------------------------------------------------------ */

static void they_post(struct party *p)
{
	const DAT_DTO_COOKIE cookie = { 0 };

	must(shared->writes ? hu_ep_post_rdma_write(p->ep, 1, &p->all, cookie, &shared->ours,
						    DAT_COMPLETION_DEFAULT_FLAG)
			    : hu_ep_post_send(p->ep, 1, &p->all, cookie, DAT_COMPLETION_DEFAULT_FLAG));
}

/* They do it again and again, until they have been stopped. */
static void they(void)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct party p = { 0 };
	DAT_EVENT e;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	party_open(&p);
	memset(p.memory, THEIRS, LONG);
	while (!atomic_load(&shared->qualifier))
		usleep(100);
	must(hu_ep_connect(p.ep, (DAT_IA_ADDRESS_PTR)&to, atomic_load(&shared->qualifier),
			   DAT_TIMEOUT_INFINITE, 0, NULL, DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG));
	if (event(p.connections).event_number != DAT_CONNECTION_EVENT_ESTABLISHED)
		_exit(1);
	stopped_wait(&shared->stopped);
	they_post(&p);
	while (!atomic_load(&shared->stopped.over))
		if (!hu_evd_dequeue(p.dtos, &e) && !shared->stopped.len)
			they_post(&p);
	_exit(0);
}

/* ---- we -------------------------------------------------------------------------------------- */

static void post(struct party *p)
{
	must(hu_ep_post_recv(p->ep, 1, &p->all, (DAT_DTO_COOKIE){ 0 }, DAT_COMPLETION_DEFAULT_FLAG));
}

static void meet(struct party *p)
{
	DAT_CONN_QUAL qualifier;
	DAT_PSP_HANDLE psp;
	DAT_EVENT e;

	must(hu_psp_create_any(p->ia, &qualifier, p->requests, DAT_PSP_CONSUMER_FLAG, &psp));
	post(p);
	shared->ours = (DAT_RMR_TRIPLET){ .virtual_address = (uintptr_t)p->memory,
					  .segment_length = LONG,
					  .rmr_context = p->remote };
	atomic_store(&shared->qualifier, qualifier);
	e = event(p->requests);
	must(hu_cr_accept(e.event_data.cr_arrival_event_data.cr_handle, p->ep, 0, NULL));
	assert_int_equal(event(p->connections).event_number, DAT_CONNECTION_EVENT_ESTABLISHED);
	must(hu_psp_free(psp));
}

/* Until they are stopped; what has ended before that is done anew. */
static void get_stopped(struct party *p)
{
	DAT_EVENT e;

	while (!stopped_is(&shared->stopped, they_are, p->memory, LONG))
		if (!hu_evd_dequeue(p->dtos, &e)) {
			assert_int_equal(e.event_data.dto_completion_event_data.status, DAT_DTO_SUCCESS);
			post(p);
		}
}

static DAT_EP_STATE ep_state(const struct party *p)
{
	DAT_EP_STATE state;

	must(hu_ep_get_status(p->ep, &state, NULL, NULL));
	return state;
}

static void scene_open(struct party *p, bool writes)
{
	setenv("HEDDLE_TRANSPORT", "shm", 1);
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(shared, MAP_FAILED);
	shared->writes = writes;
	shared->stopped.writes = true;
	they_are = fork();
	assert_true(they_are >= 0);
	if (!they_are)
		they();
	*p = (struct party){ 0 };
	party_open(p);
	meet(p);
	get_stopped(p);
	rescue_after(they_are, PATIENCE_S);
}

static void scene_close(struct party *p)
{
	stopped_end(&shared->stopped, they_are);
	if (p->ia)
		must(hu_ia_close(p->ia, DAT_CLOSE_ABRUPT_FLAG));
	munmap(shared, sizeof(*shared));
	free(p->memory);
	unsetenv("HEDDLE_TRANSPORT");
}

static void parting_waits_for_who_copies(void **state)
{
	struct party p;
	DAT_EVENT e;

	scene_open(&p, false);
	assert_int_equal(hu_ep_disconnect(p.ep, DAT_CLOSE_ABRUPT_FLAG), DAT_SUCCESS);
	assert_false(rescued);
	for (int i = 0; i < 1000; i++) { /* once is enough, and all else goes on */
		assert_int_equal(hu_ep_disconnect(p.ep, DAT_CLOSE_ABRUPT_FLAG), DAT_SUCCESS);
		assert_int_equal(ep_state(&p), DAT_EP_STATE_DISCONNECT_PENDING);
		assert_true(hu_evd_dequeue(p.connections, &e));
		assert_true(hu_evd_dequeue(p.dtos, &e));
	}
	assert_false(rescued);
	kill(they_are, SIGCONT);
	assert_int_equal(event(p.connections).event_number, DAT_CONNECTION_EVENT_DISCONNECTED);
	assert_int_equal(ep_state(&p), DAT_EP_STATE_DISCONNECTED);
	assert_false(hu_evd_dequeue(p.dtos, &e));
	assert_int_equal(e.event_data.dto_completion_event_data.status, DAT_DTO_ERR_FLUSHED);
	assert_true(stopped_has_written(&shared->stopped));
	memset(p.memory, OURS, LONG);
	must(hu_ep_reset(p.ep));
	assert_int_equal(ep_state(&p), DAT_EP_STATE_UNCONNECTED);
	atomic_store(&shared->stopped.over, true);
	assert_int_equal(waitid(P_PID, (id_t)they_are, &(siginfo_t){ 0 }, WEXITED | WNOWAIT), 0);
	assert_true(is_all(p.memory, LONG, OURS));
	scene_close(&p);
}

/* It may be freed before that, which waits, and others go on. */
static void *frees(void *arg)
{
	struct party *p = arg;

	must(hu_ep_free(p->ep));
	return stopped_has_written(&shared->stopped) ? p : NULL;
}

static void freeing_waits_for_who_copies(void **state)
{
	pthread_t thread;
	struct party p;
	void *written;
	DAT_EVENT e;

	scene_open(&p, false);
	assert_int_equal(hu_ep_disconnect(p.ep, DAT_CLOSE_ABRUPT_FLAG), DAT_SUCCESS);
	assert_int_equal(pthread_create(&thread, NULL, frees, &p), 0);
	for (int i = 0; i < 1000; i++)
		assert_true(hu_evd_dequeue(p.connections, &e));
	assert_false(rescued);
	kill(they_are, SIGCONT);
	pthread_join(thread, &written);
	assert_non_null(written);
	scene_close(&p);
}

static atomic_bool closed;
static void *closes(void *arg)
{
	struct party *p = arg;
	bool written;

	must(hu_ia_close(p->ia, DAT_CLOSE_ABRUPT_FLAG));
	written = stopped_has_written(&shared->stopped);
	memset(p->memory, OURS, LONG);
	atomic_store(&closed, true);
	return written ? p : NULL;
}

/* It gives regions back, whose closing alone answers that it cannot after a second. */
static void closing_waits_for_who_copies(void **state)
{
	for (int writes = 0; writes < 2; writes++) {
		pthread_t thread;
		struct party p;
		void *written;

		scene_open(&p, writes);
		closed = false;
		assert_int_equal(pthread_create(&thread, NULL, closes, &p), 0);
		for (uint64_t end = hd_now_ns() + 1200 * HD_NS_PER_MS; hd_now_ns() < end && !closed;)
			usleep(1000);
		assert_false(closed || rescued);
		kill(they_are, SIGCONT);
		pthread_join(thread, &written);
		assert_non_null(written);
		atomic_store(&shared->stopped.over, true);
		assert_int_equal(waitid(P_PID, (id_t)they_are, &(siginfo_t){ 0 }, WEXITED | WNOWAIT), 0);
		assert_true(is_all(p.memory, LONG, OURS));
		p.ia = NULL;
		scene_close(&p);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(parting_waits_for_who_copies),
		cmocka_unit_test(freeing_waits_for_who_copies),
		cmocka_unit_test(closing_waits_for_who_copies),
	};

	return cmocka_run_group_tests_name("parting", tests, NULL, NULL);
}
