/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
#include "base/log.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"

_Atomic int hd_log_threshold = HD_LOG_WARN;

/*
 * No lock: a child that was forked while another thread logged must be able to say that
 * its nodes are dead. So a sink, once there, stays as it is. Each front has one; slots
 * beyond those are for tests.
 */
#define SINKS_MAX 16

struct sink {
	_Atomic bool taken;
	_Atomic bool ready;
	hd_log_fn fn;
	void *arg;
};

static struct sink sinks[SINKS_MAX];
static _Atomic(struct sink *) sink;	     /* NULL: standard error alone */
static _Atomic int stderr_max = HD_LOG_WARN; /* what HEDDLE_LOG asks for */
static _Atomic int sink_max = HD_LOG_ERROR;  /* what the sink asks for */

static const char *const level_names[] = {
	[HD_LOG_ERROR] = "error",
	[HD_LOG_WARN] = "warn",
	[HD_LOG_INFO] = "info",
	[HD_LOG_DEBUG] = "debug",
};

const char *hd_log_level_name(enum hd_log_level level)
{
	return (unsigned)level <= HD_LOG_DEBUG ? level_names[level] : "unknown";
}

/* One write(2), so that lines of several processes do not mix. A closed stderr is not our error. */
static void write_stderr(enum hd_log_level level, const char *room, const char *message)
{
	char line[HD_LOG_MAX + 64];
	int len = snprintf(line, sizeof(line), "heddle[%d] %s %s: %s\n", (int)getpid(),
			   hd_log_level_name(level), room, message);

	if (len >= (int)sizeof(line)) {
		len = sizeof(line) - 1;
		line[len - 1] = '\n';
	}
	ssize_t rc;

	do {
		rc = write(STDERR_FILENO, line, len);
	} while (rc < 0 && errno == EINTR);
}

/* What a peer sent may be in the message: keep it on one line and off the terminal's controls. */
static void clean(char *message)
{
	size_t len = strlen(message);

	while (len && message[len - 1] == '\n')
		message[--len] = '\0';
	for (char *p = message; *p; p++)
		if ((unsigned char)*p < ' ' || *p == 127)
			*p = '?';
}

void hd_log_write(enum hd_log_level level, const char *room, const char *fmt, ...)
{
	char message[HD_LOG_MAX];
	int saved = errno;
	va_list ap;

	va_start(ap, fmt);
	errno = saved;
	vsnprintf(message, sizeof(message), fmt, ap);
	va_end(ap);
	clean(message);

	struct sink *s = atomic_load(&sink);
	if ((!s || !s->fn(s->arg, level, room, message)) && (int)level <= atomic_load(&stderr_max))
		write_stderr(level, room, message);
	errno = saved;
}

/*
 * Is one of the lines left that this time may have yet? What is left of one that is over may be
 * taken until who has found that out says anew.
 */
static bool gate_take(struct hd_log_gate *gate)
{
	unsigned left = atomic_load_explicit(&gate->left, memory_order_relaxed);

	while (left)
		if (atomic_compare_exchange_weak(&gate->left, &left, left - 1))
			return true;
	return false;
}

bool hd_log_within(struct hd_log_gate *gate, unsigned most, unsigned ms, enum hd_log_level level,
		   const char *room)
{
	uint64_t now = hd_now_ns();
	uint64_t next = atomic_load_explicit(&gate->next_ns, memory_order_relaxed);
	unsigned left_out;

	if (now < next ||
	    !atomic_compare_exchange_strong(&gate->next_ns, &next, now + ms * UINT64_C(1000000))) {
		if (gate_take(gate))
			return true;
		atomic_fetch_add_explicit(&gate->left_out, 1, memory_order_relaxed);
		return false;
	}
	atomic_store_explicit(&gate->left, most - 1, memory_order_relaxed);
	left_out = atomic_exchange_explicit(&gate->left_out, 0, memory_order_relaxed);
	if (left_out)
		hd_log_write(level, room, "%u lines like the next one were left out", left_out);
	return true;
}

static int wanted_threshold(void)
{
	int to_stderr = atomic_load(&stderr_max), to_sink = atomic_load(&sink_max);

	return atomic_load(&sink) && to_sink > to_stderr ? to_sink : to_stderr;
}

/*
 * Who stores last looks again, so that threads that set different things at once agree in the end.
 */
static void update_threshold(void)
{
	int max;

	do {
		max = wanted_threshold();
		atomic_store(&hd_log_threshold, max);
	} while (max != wanted_threshold());
}

void hd_log_set_level(enum hd_log_level level)
{
	atomic_store(&stderr_max, level);
	update_threshold();
}

static struct sink *find_sink(hd_log_fn fn, void *arg)
{
	for (int i = 0; i < SINKS_MAX; i++)
		if (atomic_load(&sinks[i].ready) && sinks[i].fn == fn && sinks[i].arg == arg)
			return &sinks[i];
	return NULL;
}

static struct sink *add_sink(hd_log_fn fn, void *arg)
{
	for (int i = 0; i < SINKS_MAX; i++) {
		if (atomic_exchange(&sinks[i].taken, true))
			continue;
		sinks[i].fn = fn;
		sinks[i].arg = arg;
		atomic_store(&sinks[i].ready, true);
		return &sinks[i];
	}
	return NULL;
}

void hd_log_set_sink(hd_log_fn fn, void *arg)
{
	struct sink *s = fn ? find_sink(fn, arg) : NULL;

	if (fn && !s)
		s = add_sink(fn, arg);
	atomic_store(&sink, s);
	update_threshold();
}

void hd_log_raise(enum hd_log_level level)
{
	atomic_store(&sink_max, level);
	update_threshold();
}
