/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* D8: connections that do not come about, or break: each with the event that says why. */
#include "dt.h"

#include <arpa/inet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

/* This process has a network of its own, where nothing but itself can be reached. */
static void alone(struct ct *ct)
{
	struct ifreq lo = { .ifr_name = "lo" };
	int fd;

	if (unshare(CLONE_NEWNET) && unshare(CLONE_NEWUSER | CLONE_NEWNET))
		ct_unsupported(
			ct,
			"run as root, or allow user namespaces (sysctl user.max_user_namespaces): it needs a network of its own");
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	CT_TRUE(ct, fd >= 0 && ioctl(fd, SIOCGIFFLAGS, &lo) == 0);
	lo.ifr_flags |= IFF_UP;
	CT_EQ(ct, ioctl(fd, SIOCSIFFLAGS, &lo), 0);
	close(fd);
}

static DAT_RETURN call(struct dt *d, DAT_EP_HANDLE ep, const void *addr, DAT_CONN_QUAL q, DAT_TIMEOUT us)
{
	return dat_ep_connect(ep, (DAT_IA_ADDRESS_PTR)addr, q, us, 0, NULL, DAT_QOS_BEST_EFFORT,
			      DAT_CONNECT_DEFAULT_FLAG);
}

/*
 * What becomes of an endpoint that does not get there: this event, the end of what was
 * posted, and a new try works.
 */
static void fails(struct dt *d, const void *addr, DAT_CONN_QUAL q, DAT_TIMEOUT us, DAT_EVENT_NUMBER number)
{
	DAT_CONNECTION_EVENT_DATA data;

	dt_recv(d, d->ep, 0, 8, 5);
	DT_OK(d->ct, call(d, d->ep, addr, q, us));
	data = dt_conn(d, d->ep, number).event_data.connect_event_data;
	CT_EQ(d->ct, data.private_data_size, 0);
	CT_EQ(d->ct, dt_state(d, d->ep), DAT_EP_STATE_DISCONNECTED);
	dt_dto(d, d->recv, d->ep, 5, DAT_DTO_ERR_FLUSHED);
	DT_OK(d->ct, dat_ep_reset(d->ep));
	dt_quiet(d, d->connect, 20, "each event comes once");
}

static void unreachable(struct ct *ct)
{
	struct sockaddr_in far = { .sin_family = AF_INET };
	struct sockaddr_in6 far6 = { .sin6_family = AF_INET6 };
	DAT_EP_HANDLE to;
	struct dt d;

	alone(ct);
	dt_open(ct, &d, NULL);
	CT_EQ(ct, inet_pton(AF_INET, "192.0.2.77", &far.sin_addr), 1);
	CT_EQ(ct, inet_pton(AF_INET6, "2001:db8::77", &far6.sin6_addr), 1);
	fails(&d, &far, 7, DT_FOREVER, DAT_CONNECTION_EVENT_UNREACHABLE);
	fails(&d, &far, 7, DAT_TIMEOUT_INFINITE, DAT_CONNECTION_EVENT_UNREACHABLE);
	fails(&d, &far6, 7, DT_FOREVER, DAT_CONNECTION_EVENT_UNREACHABLE);
	to = dt_ep(&d);
	dt_join(&d, d.ep, &d, to);
	DT_OK(ct, dat_ep_free(to));
	dt_conn(&d, d.ep, DAT_CONNECTION_EVENT_DISCONNECTED);
	dt_close(&d);
}

/* Nobody listens; the one who listened is gone; neither waits for a time-out. */
static void refused(struct ct *ct)
{
	DAT_CONN_QUAL q = dt_qualifier();
	DAT_PSP_HANDLE psp;
	struct dt d;

	dt_open(ct, &d, NULL);
	fails(&d, d.addr, q, DAT_TIMEOUT_INFINITE, DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
	DT_OK(ct, dat_psp_create(d.ia, q, d.cr, DAT_PSP_CONSUMER_FLAG, &psp));
	DT_OK(ct, dat_psp_free(psp));
	fails(&d, d.addr, q, DAT_TIMEOUT_INFINITE, DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
	dt_close(&d);
}

/* Addresses that are none. */
static void malformed(struct ct *ct)
{
	struct sockaddr_in in = { .sin_family = AF_INET };
	struct sockaddr odd = { .sa_family = AF_UNIX };
	struct dt d;

	dt_open(ct, &d, NULL);
	DT_TYPE(ct, call(&d, d.ep, NULL, 7, DT_FOREVER), DAT_INVALID_ADDRESS);
	DT_TYPE(ct, call(&d, d.ep, &odd, 7, DT_FOREVER), DAT_INVALID_ADDRESS);
	in.sin_addr.s_addr = htonl(0xe0000001); /* of a group */
	DT_TYPE(ct, call(&d, d.ep, &in, 7, DT_FOREVER), DAT_INVALID_ADDRESS);
	in.sin_addr.s_addr = htonl(INADDR_BROADCAST);
	DT_TYPE(ct, call(&d, d.ep, &in, 7, DT_FOREVER), DAT_INVALID_ADDRESS);
	CT_EQ(ct, dt_state(&d, d.ep), DAT_EP_STATE_UNCONNECTED);
	dt_close(&d);
}

/* One who listens, and does not answer. */
static void timed_out(struct ct *ct)
{
	DAT_CONN_QUAL q = dt_qualifier();
	DAT_PSP_HANDLE psp;
	DAT_CR_HANDLE cr;
	struct dt d;

	dt_open(ct, &d, NULL);
	DT_OK(ct, dat_psp_create(d.ia, q, d.cr, DAT_PSP_CONSUMER_FLAG, &psp));
	fails(&d, d.addr, q, 100000, DAT_CONNECTION_EVENT_TIMED_OUT);
	cr = dt_request(&d);
	DT_OK(ct, dat_cr_reject(cr, 0, NULL)); /* it comes too late, and hurts nobody */
	dt_quiet(&d, d.connect, 50, "it came too late");
	DT_OK(ct, dat_psp_free(psp));
	dt_close(&d);
}

/* ---- the other process dies ------------------------------------------------------------------ */

static DAT_CONN_QUAL meet(struct ct *ct, struct dt *d, const struct dt_want *want)
{
	DAT_CONN_QUAL q = dt_qualifier();
	DAT_PSP_HANDLE psp;

	dt_open(ct, d, want);
	if (ct->rank) {
		DT_OK(ct, dat_psp_create(d->ia, q, d->cr, DAT_PSP_CONSUMER_FLAG, &psp));
		ct_put(ct, 0, &q, sizeof(q));
	} else {
		ct_get(ct, NULL, 1, &q, sizeof(q));
	}
	return q;
}

/*
 * It says nothing more: BROKEN, and what was posted comes back in its order, requests and receives.
 */
static void dies(struct ct *ct)
{
	DAT_EVENT event;
	struct dt d;
	DAT_CONN_QUAL q = meet(ct, &d, NULL);

	if (ct->rank)
		DT_OK(ct, dat_cr_accept(dt_request(&d), d.ep, 0, NULL));
	else
		dt_call(&d, d.ep, &d, q);
	dt_conn(&d, d.ep, DAT_CONNECTION_EVENT_ESTABLISHED);
	ct_sync(ct, NULL);
	if (ct->rank) {
		ct_doomed(ct);
		ct_sync(ct, NULL);
		raise(SIGKILL);
	}
	for (uint64_t i = 0; i < 8; i++) {
		dt_recv(&d, d.ep, 0, 8, i);
		dt_send(&d, d.ep, 0, 8, 10 + i, DAT_COMPLETION_SUPPRESS_FLAG);
	}
	ct_sync(ct, NULL);
	dt_conn(&d, d.ep, DAT_CONNECTION_EVENT_BROKEN);
	CT_EQ(ct, dt_state(&d, d.ep), DAT_EP_STATE_DISCONNECTED);
	for (uint64_t i = 0; i < 8; i++) {
		dt_dto(&d, d.recv, d.ep, i, DAT_DTO_ERR_FLUSHED);
		event = dt_event(&d, d.request, DAT_DTO_COMPLETION_EVENT);
		CT_EQ(ct, event.event_data.dto_completion_event_data.user_cookie.as_64, 10 + i);
		CT_TRUE(ct, event.event_data.dto_completion_event_data.status != DAT_DTO_SUCCESS);
	}
	dt_close(&d);
}

/* It dies with our request, which it has seen and not answered. */
static void dies_unanswered(struct ct *ct)
{
	struct dt d;
	DAT_CONN_QUAL q = meet(ct, &d, NULL);

	if (ct->rank) {
		dt_request(&d);
		ct_doomed(ct);
		raise(SIGKILL);
	}
	fails(&d, d.addr, q, DAT_TIMEOUT_INFINITE, DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
	dt_close(&d);
}

/* It dies when it has called: the request is there and can be refused; or accepted, in vain. */
static void caller_dies(struct ct *ct)
{
	DAT_CR_HANDLE cr[2];
	struct dt d;
	DAT_CONN_QUAL q = meet(ct, &d, NULL);

	if (!ct->rank) {
		DAT_EP_HANDLE other = dt_ep(&d);

		dt_call(&d, d.ep, &d, q);
		dt_call(&d, other, &d, q);
		ct_doomed(ct);
		ct_sync(ct, NULL);
		raise(SIGKILL);
	}
	for (int i = 0; i < 2; i++)
		cr[i] = dt_request(&d);
	dt_recv(&d, d.ep, 0, 8, 3);
	ct_sync(ct, NULL);
	dt_sleep(50); /* nothing tells of a caller that has died but what comes of the answer */
	DT_OK(ct, dat_cr_reject(cr[0], 0, NULL));
	DT_OK(ct, dat_cr_accept(cr[1], d.ep, 0, NULL));
	dt_conn(&d, d.ep, DAT_CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR);
	CT_EQ(ct, dt_state(&d, d.ep), DAT_EP_STATE_DISCONNECTED);
	dt_dto(&d, d.recv, d.ep, 3, DAT_DTO_ERR_FLUSHED);
	DT_OK(ct, dat_ia_close(d.ia, DAT_CLOSE_ABRUPT_FLAG));
	free(d.buf);
}

const struct ct_case dt_reach[] = {
	{ "D8", "reach nobody", { unreachable } },
	{ "D8", "reach refused", { refused } },
	{ "D8", "reach by wrong address", { malformed } },
	{ "D8", "reach timed out", { timed_out } },
	{ "D8", "reach one who dies", { dies, dies } },
	{ "D8", "reach one who dies unanswered", { dies_unanswered, dies_unanswered } },
	{ "D8", "reached by one who dies", { caller_dies, caller_dies } },
	{ NULL },
};
