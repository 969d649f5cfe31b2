/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * For tests: another process that is really stopped, by SIGSTOP, when it is about to copy from or
 * to memory of ours, and copies when it goes on. The test is linked with the seam of vm_seam.h.
 * Included after cmocka.h.
 */
#ifndef HD_TESTS_STOPPED_H
#define HD_TESTS_STOPPED_H

#include "transport/vm_seam.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define THEIRS 0xa5 /* what they write */
#define OURS 0x5a   /* what is there when it is the program's again */

/* Both processes see it. */
struct stopped {
	bool writes;	  /* it is a copy to us that they are stopped in, and not one from us */
	atomic_bool over; /* they may end */
	uint64_t at, len; /* that copy, here; published by the stop, 0 before */
};

/* they: from now on, in the first such copy. */
static inline void stopped_wait(struct stopped *s);
static inline void stopped_now(void *arg)
{
	const struct vm_call *c = &vm_seam.last;
	struct stopped *s = arg;

	if (c->out != s->writes || c->far[0].iov_len < 4096) {
		stopped_wait(s); /* that was a look at who is there */
		return;
	}
	s->at = (uintptr_t)c->far[0].iov_base;
	s->len = c->far[0].iov_len;
	raise(SIGSTOP);
}
static inline void stopped_wait(struct stopped *s)
{
	vm_seam.before = stopped_now;
	vm_seam.arg = s;
}

/* we: have they been, in a copy of this memory? */
static inline bool stopped_is(const struct stopped *s, pid_t pid, const void *memory, size_t len)
{
	int status;

	if (waitpid(pid, &status, WNOHANG | WUNTRACED) != pid)
		return false;
	assert_true(WIFSTOPPED(status));
	assert_in_range(s->at, (uintptr_t)memory, (uintptr_t)memory + len - s->len);
	return true;
}

static inline bool is_all(const unsigned char *at, size_t len, unsigned char byte)
{
	return at[0] == byte && !memcmp(at, at + 1, len - 1);
}

/* we: has all of that copy been written? */
static inline bool stopped_has_written(const struct stopped *s)
{
	return is_all((const unsigned char *)(uintptr_t)s->at, s->len, THEIRS);
}

/*
 * Where a call of ours waits until they go on, though it should not, they have to: after so many
 * seconds, and `rescued` says so.
 */
static volatile sig_atomic_t rescued;
static pid_t rescue_whom;
static inline void rescue(int sig)
{
	rescued = 1;
	kill(rescue_whom, SIGCONT);
}
static inline void rescue_after(pid_t pid, unsigned seconds)
{
	rescued = 0;
	rescue_whom = pid;
	signal(SIGALRM, rescue);
	alarm(seconds);
}

/* we: they are told to end, and end well. */
static inline void stopped_end(struct stopped *s, pid_t pid)
{
	int status;

	alarm(0);
	kill(pid, SIGCONT);
	atomic_store(&s->over, true);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status) && !WEXITSTATUS(status));
}

#endif
