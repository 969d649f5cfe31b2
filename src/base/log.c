/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
#include "base/log.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"

_Atomic int hd_log_threshold = HD_LOG_WARN;

static struct {
	pthread_mutex_t lock;
	hd_log_fn fn;	/* lock */
	void *arg;	/* lock */
	int stderr_max; /* lock: what HEDDLE_LOG asks for */
	int sink_max;	/* lock: what the sink asks for */
} sink = { .lock = PTHREAD_MUTEX_INITIALIZER, .stderr_max = HD_LOG_WARN, .sink_max = HD_LOG_ERROR };

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

	pthread_mutex_lock(&sink.lock);
	hd_log_fn fn = sink.fn;
	void *arg = sink.arg;
	bool to_stderr = (int)level <= sink.stderr_max;
	pthread_mutex_unlock(&sink.lock);

	bool taken = fn && fn(arg, level, room, message);
	if (!taken && to_stderr)
		write_stderr(level, room, message);
	errno = saved;
}

bool hd_log_due(struct hd_log_gate *gate, unsigned ms, enum hd_log_level level, const char *room)
{
	uint64_t now = hd_now_ns();
	uint64_t next = atomic_load_explicit(&gate->next_ns, memory_order_relaxed);

	if (now < next ||
	    !atomic_compare_exchange_strong(&gate->next_ns, &next, now + ms * UINT64_C(1000000))) {
		atomic_fetch_add_explicit(&gate->left_out, 1, memory_order_relaxed);
		return false;
	}
	unsigned left_out = atomic_exchange_explicit(&gate->left_out, 0, memory_order_relaxed);
	if (left_out)
		hd_log_write(level, room, "%u lines like the next one were left out", left_out);
	return true;
}

/* sink.lock held */
static void update_threshold(void)
{
	int max = sink.stderr_max;

	if (sink.fn && sink.sink_max > max)
		max = sink.sink_max;
	atomic_store_explicit(&hd_log_threshold, max, memory_order_relaxed);
}

void hd_log_set_level(enum hd_log_level level)
{
	pthread_mutex_lock(&sink.lock);
	sink.stderr_max = level;
	update_threshold();
	pthread_mutex_unlock(&sink.lock);
}

void hd_log_set_sink(hd_log_fn fn, void *arg)
{
	pthread_mutex_lock(&sink.lock);
	sink.fn = fn;
	sink.arg = arg;
	update_threshold();
	pthread_mutex_unlock(&sink.lock);
}

void hd_log_raise(enum hd_log_level level)
{
	pthread_mutex_lock(&sink.lock);
	sink.sink_max = level;
	update_threshold();
	pthread_mutex_unlock(&sink.lock);
}
