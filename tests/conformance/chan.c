/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * The channel between the ranks of a case: streams over socketpairs, outside
 * the fabric that is tested.
 */
#include "case.h"

#include "../asleep.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static void lost(struct ct *ct, int rank)
{
	struct ct_verdict v = { .kind = CT_LOST };

	/* The other rank ended and has told why; this is no reason of its own. */
	snprintf(v.text, sizeof(v.text), "rank %d lost rank %d", ct->rank, rank);
	if (write(ct->verdict_fd, &v, sizeof(v)) != sizeof(v))
		_exit(3);
	_exit(2);
}

void ct_put(struct ct *ct, int rank, const void *data, size_t len)
{
	const char *p = data;

	while (len) {
		ssize_t n = send(ct->chan[rank], p, len, MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			lost(ct, rank);
		p += n;
		len -= (size_t)n;
	}
}

void ct_get(struct ct *ct, struct ct_ep *e, int rank, void *data, size_t len)
{
	struct pollfd pfd = { .fd = ct->chan[rank], .events = POLLIN };
	char *p = data;

	while (len) {
		ssize_t n = recv(ct->chan[rank], p, len, MSG_DONTWAIT);

		if (n > 0) {
			p += n;
			len -= (size_t)n;
			continue;
		}
		if (n == 0 || (errno != EAGAIN && errno != EINTR))
			lost(ct, rank);
		if (!e)
			poll(&pfd, 1, -1);
		else if (!ct_progress(e))
			ct_pause();
	}
}

void ct_sync(struct ct *ct, struct ct_ep *e)
{
	char c = 'S';
	int r;

	for (r = 0; r < ct->procs; r++)
		if (r != ct->rank)
			ct_put(ct, r, &c, 1);
	for (r = 0; r < ct->procs; r++) {
		if (r == ct->rank)
			continue;
		ct_get(ct, e, r, &c, 1);
		if (c != 'S')
			ct_fail(ct, "the ranks are out of step");
	}
}

static char state_in(const char *path)
{
	char line[512], *p;
	FILE *f = fopen(path, "r");
	char state = 0;

	if (!f)
		return 0;
	if (fgets(line, sizeof(line), f) && (p = strrchr(line, ')')) && p[1] == ' ')
		state = p[2];
	fclose(f);
	return state;
}

static char state_of(pid_t pid)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	return state_in(path);
}

char ct_thread_state(pid_t tid)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", (int)tid);
	return state_in(path);
}

bool ct_let_sleep(pid_t tid)
{
	return let_sleep(tid);
}

void ct_let_others_sleep(void)
{
	let_others_sleep();
}

void ct_stop_rank(struct ct *ct, int rank)
{
	double end = ct_deadline(ct);

	if (kill(ct->pid[rank], SIGSTOP))
		ct_fail(ct, "cannot stop rank %d: %s", rank, strerror(errno));
	while (state_of(ct->pid[rank]) != 'T') {
		ct_late(ct, end, "a rank to stop");
		usleep(1000);
	}
}

void ct_cont_rank(struct ct *ct, int rank)
{
	if (kill(ct->pid[rank], SIGCONT))
		ct_fail(ct, "cannot continue rank %d: %s", rank, strerror(errno));
}
