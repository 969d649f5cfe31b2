/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* D8: event dispatchers and notification objects. */
#include "dt.h"

#include <poll.h>
#include <sys/resource.h>

static void post_se(struct dt *d, DAT_EVD_HANDLE evd, uintptr_t n)
{
	DAT_EVENT event = { .event_number = DAT_SOFTWARE_EVENT };

	event.event_data.software_event_data.pointer = (void *)n;
	DT_OK(d->ct, dat_evd_post_se(evd, &event));
}

static uintptr_t next_se(struct dt *d, DAT_EVD_HANDLE evd)
{
	return (uintptr_t)dt_event(d, evd, DAT_SOFTWARE_EVENT).event_data.software_event_data.pointer;
}

static void queue(struct ct *ct)
{
	DAT_EVENT event = { .event_number = DAT_DTO_COMPLETION_EVENT };
	DAT_EVD_PARAM param;
	DAT_EVD_HANDLE evd;
	DAT_COUNT more;
	DAT_RETURN rc;
	uintptr_t n, seen;
	struct dt d;

	evd = dt_open_software(ct, &d);
	DT_TYPE(ct, dat_evd_post_se(evd, &event), DAT_INVALID_PARAMETER);
	DT_TYPE(ct, dat_evd_dequeue(evd, &event), DAT_QUEUE_EMPTY);
	DT_OK(ct, dat_evd_query(evd, DAT_EVD_FIELD_ALL, &param));
	CT_TRUE(ct, param.evd_qlen >= 8 && param.evd_flags == DAT_EVD_SOFTWARE_FLAG);
	CT_EQ(ct, param.evd_state & 0xf, DAT_EVD_STATE_ENABLED | DAT_EVD_STATE_WAITABLE);
	event.event_number = DAT_SOFTWARE_EVENT;
	for (n = 0; !(rc = dat_evd_post_se(evd, &event)); n++)
		CT_TRUE(ct, n < 100);
	DT_TYPE(ct, rc, DAT_QUEUE_FULL);
	CT_EQ(ct, n, param.evd_qlen);
	rc = dat_evd_resize(evd, 2); /* may stay as it is, and may say so */
	CT_TRUE(ct, !rc || DAT_GET_TYPE(rc) == DAT_INVALID_STATE);
	DT_TYPE(ct, dat_evd_resize(evd, 0), DAT_INVALID_PARAMETER);
	DT_OK(ct, dat_evd_resize(evd, 100));
	post_se(&d, evd, 55);
	for (seen = 0; seen < n; seen++)
		CT_EQ(ct, next_se(&d, evd), 0);
	CT_EQ(ct, next_se(&d, evd), 55);
	DT_TYPE(ct, dat_evd_wait(evd, 1000, 0, &event, &more), DAT_INVALID_PARAMETER);
	DT_TYPE(ct, dat_evd_wait(evd, 1000, 100000, &event, &more), DAT_INVALID_PARAMETER);
	post_se(&d, evd, 1);
	more = 77;
	DT_TYPE(ct, dat_evd_wait(evd, 1000, 2, &event, &more), DAT_TIMEOUT_EXPIRED);
	CT_EQ(ct, more, 1);
	DT_OK(ct, dat_evd_free(evd));
	dt_close(&d);
}

static void waiters(struct ct *ct)
{
	DAT_EVD_HANDLE evd;
	struct dt_waiter w;
	DAT_EVENT event;
	DAT_COUNT more;
	struct dt d;

	evd = dt_open_software(ct, &d);
	dt_waiter_start(&d, &w, evd, 1);
	DT_TYPE(ct, dat_evd_wait(evd, 1000, 1, &event, &more), DAT_INVALID_STATE);
	DT_TYPE(ct, dat_evd_free(evd), DAT_INVALID_STATE);
	post_se(&d, evd, 3);
	dt_waiter_ok(&d, &w);
	dt_waiter_start(&d, &w, evd, 1);
	DT_OK(ct, dat_evd_set_unwaitable(evd));
	dt_waiter_join(&d, &w);
	DT_TYPE(ct, w.rc, DAT_INVALID_STATE);
	DT_ERR(ct, dat_evd_wait(evd, 1000, 1, &event, &more), DAT_INVALID_STATE,
	       DAT_INVALID_STATE_EVD_UNWAITABLE);
	post_se(&d, evd, 4);
	DT_OK(ct, dat_evd_dequeue(evd, &event));
	DT_OK(ct, dat_evd_clear_unwaitable(evd));
	post_se(&d, evd, 5);
	CT_EQ(ct, next_se(&d, evd), 5);
	DT_OK(ct, dat_evd_free(evd));
	dt_close(&d);
}

/*
 * Two dispatchers of one notification object: which of them has something; none while it
 * is disabled or waited for.
 */
static void notification(struct ct *ct)
{
	DAT_EVD_HANDLE evd[2], who;
	DAT_CNO_HANDLE cno;
	DAT_CNO_PARAM param;
	DAT_FD fd;
	struct pollfd pfd = { .events = POLLIN };
	struct dt d;

	dt_open(ct, &d, NULL);
	DT_OK(ct, DT_VIA(d.pz)->cno_fd_create_func(dt_own(&d), &fd, &cno));
	pfd.fd = fd;
	DT_OK(ct, dat_cno_query(cno, DAT_CNO_FIELD_ALL, &param));
	CT_TRUE(ct, param.proxy_type == DAT_PROXY_TYPE_FD && param.proxy.fd == fd);
	for (int i = 0; i < 2; i++)
		evd[i] = dt_evd(&d, 8, i ? DAT_HANDLE_NULL : cno, DAT_EVD_SOFTWARE_FLAG);
	DT_OK(ct, dat_evd_modify_cno(evd[1], cno));
	DT_TYPE(ct, dat_cno_free(cno), DAT_INVALID_STATE);
	DT_TYPE(ct, DT_VIA(cno)->cno_trigger_func(cno, &who), DAT_QUEUE_EMPTY);
	CT_EQ(ct, poll(&pfd, 1, 0), 0);
	for (int i = 0; i < 2; i++) {
		post_se(&d, evd[i], 1);
		CT_EQ(ct, poll(&pfd, 1, 5000), 1);
		DT_OK(ct, DT_VIA(cno)->cno_trigger_func(cno, &who));
		CT_TRUE(ct, who == evd[i]);
		CT_EQ(ct, next_se(&d, evd[i]), 1);
	}
	DT_OK(ct, dat_evd_disable(evd[0]));
	DT_OK(ct, dat_evd_disable(evd[0]));
	post_se(&d, evd[0], 2);
	who = evd[0];
	CT_TRUE(ct, dat_cno_wait(cno, 20000, &who) != DAT_SUCCESS);
	CT_TRUE(ct, who == DAT_HANDLE_NULL);
	CT_EQ(ct, next_se(&d, evd[0]), 2);
	DT_OK(ct, dat_evd_enable(evd[0]));
	post_se(&d, evd[0], 3);
	DT_OK(ct, dat_cno_wait(cno, DT_FOREVER, &who));
	CT_TRUE(ct, who == evd[0]);
	DT_OK(ct, dat_evd_free(evd[0]));
	DT_OK(ct, dat_evd_modify_cno(evd[1], DAT_HANDLE_NULL));
	DT_OK(ct, dat_cno_free(cno));
	DT_OK(ct, dat_evd_free(evd[1]));
	dt_close(&d);
}

/*
 * That there is nothing is said of completions by the bare type, without the class of
 * errors, as OFA's providers do: dtest -p compares with that. Of other events it is said
 * with the class, as there.
 */
static void bare_types(struct ct *ct)
{
	DAT_EVD_HANDLE which;
	DAT_CNO_HANDLE cno;
	DAT_EVENT event;
	DAT_COUNT more;
	struct dt d;

	dt_open(ct, &d, NULL);
	CT_EQ(ct, dat_evd_dequeue(d.recv, &event), DAT_QUEUE_EMPTY);
	CT_EQ(ct, dat_evd_dequeue(d.request, &event), DAT_QUEUE_EMPTY);
	CT_EQ(ct, dat_evd_wait(d.recv, 1000, 1, &event, &more), DAT_TIMEOUT_EXPIRED);
	CT_EQ(ct, dat_evd_dequeue(d.connect, &event), DAT_CLASS_ERROR | DAT_QUEUE_EMPTY);
	CT_EQ(ct, dat_evd_dequeue(d.async, &event), DAT_CLASS_ERROR | DAT_QUEUE_EMPTY);
	CT_EQ(ct, dat_evd_wait(d.cr, 1000, 1, &event, &more), DAT_CLASS_ERROR | DAT_TIMEOUT_EXPIRED);
	DT_OK(ct, dat_cno_create(d.ia, DAT_OS_WAIT_PROXY_AGENT_NULL, &cno));
	CT_EQ(ct, dat_cno_wait(cno, 1000, &which), DAT_QUEUE_EMPTY);
	DT_OK(ct, dat_cno_free(cno));
	dt_close(&d);
}

/*
 * dapltest makes more than 500 in one adapter with ten threads of fourteen endpoints; the last can
 * be waited for as the first.
 */
static void many(struct ct *ct)
{
	enum {
		MANY = 600
	};
	DAT_EVD_HANDLE evd[MANY];
	struct rlimit was, now;
	DAT_EVENT event;
	DAT_COUNT more;
	struct dt d;

	CT_TRUE(ct, getrlimit(RLIMIT_NOFILE, &was) == 0);
	now = (struct rlimit){ .rlim_cur = was.rlim_max, .rlim_max = was.rlim_max };
	CT_TRUE(ct, setrlimit(RLIMIT_NOFILE, &now) == 0);
	evd[0] = dt_open_software(ct, &d);
	for (int i = 1; i < MANY; i++)
		DT_OK(ct, dat_evd_create(d.ia, 8, DAT_HANDLE_NULL, DAT_EVD_SOFTWARE_FLAG, &evd[i]));
	for (int i = 0; i < MANY; i += MANY - 1) {
		DT_TYPE(ct, dat_evd_wait(evd[i], 1000, 1, &event, &more), DAT_TIMEOUT_EXPIRED);
		post_se(&d, evd[i], 7);
		CT_EQ(ct, next_se(&d, evd[i]), 7);
	}
	for (int i = 0; i < MANY; i++)
		DT_OK(ct, dat_evd_free(evd[i]));
	dt_close(&d);
	CT_TRUE(ct, setrlimit(RLIMIT_NOFILE, &was) == 0);
}

const struct ct_case dt_events[] = {
	{ "D8", "event queue", { queue } },
	{ "D8", "event queue without a class", { bare_types } },
	{ "D8", "event waiters", { waiters } },
	{ "D8", "event notification", { notification } },
	{ "D8", "event queues by the hundred", { many } },
	{ NULL },
};
