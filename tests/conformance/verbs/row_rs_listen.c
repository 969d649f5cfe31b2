/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* Row RS: listeners, and who calls them before he is accepted: listen(2), accept(2), connect(2). */
#include "rst.h"

#include <fcntl.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define CALLERS 3

static struct sockaddr *name_of(struct sockaddr_storage *name)
{
	return (struct sockaddr *)name;
}

/*
 * Who calls a listener is connected before anybody accepts him, and may send and go; the first one
 * is accepted first, and has a name.
 */
static void connects_unaccepted(struct ct *ct)
{
	struct sockaddr_storage name;
	struct rst r = { 0 };
	char c;

	rst_open(ct, &r);
	for (char i = 'a'; ct->rank && i < 'a' + CALLERS; i++) {
		r.s = rst_call(&r, true);
		if (rconnect(r.s, name_of(&r.at), rst_size(&r)))
			CT_EQ(ct, errno, EINPROGRESS);
		rst_await(&r, r.s, POLLOUT);
		CT_EQ(ct, rsend(r.s, &i, 1, 0), 1);
		CMT_OK(ct, rclose(r.s));
	}
	ct_sync(ct, NULL);
	for (char i = 'a'; !ct->rank && i < 'a' + CALLERS; i++) {
		socklen_t len = sizeof(name);

		rst_await(&r, r.listener, POLLIN);
		memset(&name, 0, sizeof(name));
		r.s = raccept(r.listener, name_of(&name), &len);
		CT_TRUE(ct, r.s >= 0);
		CT_EQ(ct, len, rst_size(&r));
		CT_TRUE(ct, name.ss_family == r.family && cmt_port(&name));
		CT_EQ(ct, rrecv(r.s, &c, 1, 0), 1);
		CT_EQ(ct, c, i);
		CT_EQ(ct, rrecv(r.s, &c, 1, 0), 0);
		CMT_OK(ct, rclose(r.s));
	}
	r.s = -1;
	rst_close(&r);
}

/*
 * One thread calls its own listener, more than once, and accepts afterwards. A number that accept
 * gives is above one that was taken just before it, and is one for a set of select, though a lower
 * one is free again: librspreload depends on that.
 */
static void calls_itself(struct ct *ct)
{
	struct rst r = { 0 };
	int s[CALLERS], lower, before;
	char c;

	rst_open(ct, &r);
	for (int i = 0; i < CALLERS; i++) {
		s[i] = rst_call(&r, false);
		CT_EQ(ct, rsend(s[i], &(char){ (char)('a' + i) }, 1, 0), 1);
	}
	for (int i = 0; i < CALLERS; i++) {
		lower = open("/dev/null", O_RDONLY);
		before = open("/dev/null", O_RDONLY);
		CMT_OK(ct, close(lower));
		r.s = raccept(r.listener, NULL, NULL);
		CT_TRUE(ct, before >= 0 && r.s > before && r.s < FD_SETSIZE);
		CT_EQ(ct, rrecv(r.s, &c, 1, 0), 1);
		CT_EQ(ct, c, 'a' + i);
		CMT_OK(ct, rclose(r.s));
		CMT_OK(ct, rclose(s[i]));
		CMT_OK(ct, close(before));
	}
	r.s = -1;
	rst_close(&r);
}

/* Whom a listener has not accepted when it is closed, or shut (arg), is reset. */
static void unaccepted_reset(struct ct *ct)
{
	struct rst r = { 0 };
	char c;

	rst_open(ct, &r);
	if (ct->rank)
		r.s = rst_call(&r, false);
	ct_sync(ct, NULL);
	if (!ct->rank) {
		rst_await(&r, r.listener, POLLIN);
		if (ct->cs->arg) {
			CMT_OK(ct, rshutdown(r.listener, SHUT_RD));
			CMT_ERR(ct, raccept(r.listener, NULL, NULL), EINVAL);
		} else {
			CMT_OK(ct, rclose(r.listener));
			r.listener = -1;
		}
	} else {
		CMT_ERR(ct, (int)rrecv(r.s, &c, 1, 0), ECONNRESET);
	}
	ct_sync(ct, NULL);
	rst_close(&r);
}

static void listen_again(struct rst *r)
{
	r->listener = rsocket(r->family, SOCK_STREAM, 0);
	CMT_OK(r->ct, rbind(r->listener, name_of(&r->at), rst_size(r)));
	CMT_OK(r->ct, rlisten(r->listener, 8));
}

/*
 * A port is free when rclose has returned, whoever was there, is about to be,
 * or waits: again and again.
 */
static void listens_anew(struct ct *ct)
{
	struct rst r = { 0 };
	int s[CALLERS], accepted;

	rst_open(ct, &r);
	for (int turn = 0; turn < 20; turn++) {
		for (int i = 0; ct->rank && i < CALLERS; i++)
			s[i] = rst_call(&r, i > 1);
		ct_sync(ct, NULL);
		if (!ct->rank) {
			accepted = turn % 2 ? raccept(r.listener, NULL, NULL) : -1;
			CMT_OK(ct, rclose(r.listener));
			listen_again(&r);
			if (accepted >= 0)
				CMT_OK(ct, rclose(accepted));
		}
		ct_sync(ct, NULL);
		for (int i = 0; ct->rank && i < CALLERS; i++)
			CMT_OK(ct, rclose(s[i]));
	}
	if (ct->rank)
		r.s = rst_call(&r, false);
	else
		r.s = raccept(r.listener, NULL, NULL);
	CT_TRUE(ct, r.s >= 0);
	ct_sync(ct, NULL);
	rst_close(&r);
}

/*
 * As many wait as the backlog says, and one; who comes then waits until one
 * of them has been accepted.
 */
static void backlogs(struct ct *ct)
{
	struct rst r = { 0 };
	struct pollfd p;
	int s[CALLERS];

	rst_open(ct, &r);
	if (!ct->rank)
		CMT_OK(ct, rlisten(r.listener, CALLERS - 2));
	ct_sync(ct, NULL);
	if (ct->rank) {
		for (int i = 0; i < CALLERS; i++)
			s[i] = rst_call(&r, i == CALLERS - 1);
		CMT_ERR(ct, rconnect(s[CALLERS - 1], name_of(&r.at), rst_size(&r)), EINPROGRESS);
		p = (struct pollfd){ .fd = s[CALLERS - 1], .events = POLLOUT };
		CT_EQ(ct, rpoll(&p, 1, 100), 0);
	}
	ct_sync(ct, NULL);
	for (int i = 0; i < CALLERS; i++) {
		if (!ct->rank) {
			s[i] = raccept(r.listener, NULL, NULL);
			CT_TRUE(ct, s[i] >= 0);
		} else if (i == CALLERS - 1) {
			rst_await(&r, s[i], POLLOUT);
		}
	}
	ct_sync(ct, NULL);
	for (int i = 0; i < CALLERS; i++)
		CMT_OK(ct, rclose(s[i]));
	rst_close(&r);
}

/* A negative backlog is no limit but the host's; a greater one lets in who waits. */
static void backlog_changes(struct ct *ct)
{
	struct rst r = { 0 };
	int s[CALLERS];

	rst_open(ct, &r);
	if (!ct->rank)
		CMT_OK(ct, rlisten(r.listener, 0));
	ct_sync(ct, NULL);
	for (int i = 0; ct->rank && i < CALLERS; i++) {
		s[i] = rst_call(&r, true);
		if (rconnect(s[i], name_of(&r.at), rst_size(&r)))
			CT_EQ(ct, errno, EINPROGRESS);
	}
	if (ct->rank)
		rst_await(&r, s[0], POLLOUT);
	ct_sync(ct, NULL);
	if (!ct->rank)
		CMT_OK(ct, rlisten(r.listener, -1));
	for (int i = 0; ct->rank && i < CALLERS; i++) {
		rst_await(&r, s[i], POLLOUT);
		CMT_OK(ct, rclose(s[i]));
	}
	ct_sync(ct, NULL);
	rst_close(&r);
}

/* accept(2): whom there is no descriptor for is not lost. */
static void descriptors_short(struct ct *ct)
{
	struct rst r = { 0 };
	struct rlimit usual, none;

	rst_open(ct, &r);
	if (ct->rank)
		r.s = rst_call(&r, false);
	ct_sync(ct, NULL);
	if (!ct->rank) {
		rst_await(&r, r.listener, POLLIN);
		CMT_OK(ct, getrlimit(RLIMIT_NOFILE, &usual));
		none = (struct rlimit){ 3, usual.rlim_max };
		CMT_OK(ct, setrlimit(RLIMIT_NOFILE, &none));
		CMT_ERR(ct, raccept(r.listener, NULL, NULL), EMFILE);
		CMT_OK(ct, setrlimit(RLIMIT_NOFILE, &usual));
		r.s = raccept(r.listener, NULL, NULL);
		CT_TRUE(ct, r.s >= 0);
	}
	ct_sync(ct, NULL);
	rst_close(&r);
}

const struct ct_case vt_rs_listen[] = {
	{ "RS", "connects-unaccepted", CT_TWO(connects_unaccepted) },
	{ "RS", "connects-unaccepted-6", CT_TWO(connects_unaccepted), .arg = 6 },
	{ "RS", "calls-itself", { calls_itself } },
	{ "RS", "unaccepted-are-reset", CT_TWO(unaccepted_reset) },
	{ "RS", "unaccepted-are-reset-by-shutdown", CT_TWO(unaccepted_reset), .arg = 1 },
	{ "RS", "listens-anew", CT_TWO(listens_anew) },
	{ "RS", "backlog", CT_TWO(backlogs) },
	{ "RS", "backlog-changes", CT_TWO(backlog_changes) },
	{ "RS", "descriptors-short", CT_TWO(descriptors_short) },
	{ 0 },
};
