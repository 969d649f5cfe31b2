/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
#ifndef HEDDLE_BASE_LOG_H
#define HEDDLE_BASE_LOG_H

#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/*
 * One line per event, on standard error unless a front routes it elsewhere:
 *
 *	heddle[4711] warn tcp: 10.1.2.3 port 4000: bad magic in hello: link closed
 *
 * A file that wants its room named sets HD_LOG_ROOM before its first include; the build sets it for
 * every room.
 */
#ifndef HD_LOG_ROOM
#define HD_LOG_ROOM "heddle"
#endif

enum hd_log_level {
	HD_LOG_ERROR,
	HD_LOG_WARN,
	HD_LOG_INFO,
	HD_LOG_DEBUG,
};

/* Longest message, terminating zero included; longer ones are cut. */
#define HD_LOG_MAX 1024

/*
 * hd_log_fn takes one message without a newline; `room` and `message` are valid during the call
 * only. It returns false when it did not want the line, which then goes to standard error if
 * HEDDLE_LOG asks for it. Called from any thread, without a lock held by this file; it must not
 * call back into heddle.
 */
typedef bool (*hd_log_fn)(void *arg, enum hd_log_level level, const char *room, const char *message);

/* Read by the macros; written through hd_log_set_level and hd_log_raise only. */
extern _Atomic int hd_log_threshold;

/* hd_log_on tells whether a message of this level would be looked at. Any thread. */
static inline bool hd_log_on(enum hd_log_level level)
{
	return (int)level <= atomic_load_explicit(&hd_log_threshold, memory_order_relaxed);
}

/* The arguments are evaluated only when the level is on. */
#define HD_LOG(level, ...) \
	do { \
		if (__builtin_expect(hd_log_on(level), 0)) \
			hd_log_write((level), HD_LOG_ROOM, __VA_ARGS__); \
	} while (0)

#define hd_error(...) HD_LOG(HD_LOG_ERROR, __VA_ARGS__)
#define hd_warn(...) HD_LOG(HD_LOG_WARN, __VA_ARGS__)
#define hd_info(...) HD_LOG(HD_LOG_INFO, __VA_ARGS__)
#define hd_debug(...) HD_LOG(HD_LOG_DEBUG, __VA_ARGS__)

/* One gate per call site that could flood; zero-initialised. */
struct hd_log_gate {
	_Atomic uint64_t next_ns;
	_Atomic unsigned left_out;
	_Atomic unsigned left; /* lines that this time may have yet */
};

/*
 * HD_LOG_EVERY_MS writes at most one line per `ms` milliseconds from this call site, and then says
 * how many were left out since the last one.
 */
#define HD_LOG_EVERY_MS(ms, level, ...) \
	do { \
		static struct hd_log_gate hd_gate_; \
		if (__builtin_expect(hd_log_on(level), 0) && \
		    hd_log_within(&hd_gate_, 1, (ms), (level), HD_LOG_ROOM)) \
			hd_log_write((level), HD_LOG_ROOM, __VA_ARGS__); \
	} while (0)

/*
 * hd_event writes a line of what has become of an object, at the level debug; of one call site at
 * most HD_LOG_EVENTS in a second, and then says how many were left out. Objects are named as
 * `heddle info` names them.
 */
#define HD_LOG_EVENTS 200
#define hd_event(...) \
	do { \
		static struct hd_log_gate hd_gate_; \
		if (__builtin_expect(hd_log_on(HD_LOG_DEBUG), 0) && \
		    hd_log_within(&hd_gate_, HD_LOG_EVENTS, 1000, HD_LOG_DEBUG, HD_LOG_ROOM)) \
			hd_log_write(HD_LOG_DEBUG, HD_LOG_ROOM, __VA_ARGS__); \
	} while (0)

/*
 * hd_log_write formats and writes one line; keeps errno. Use the macros. Any
 * thread; may block on stderr.
 */
void hd_log_write(enum hd_log_level level, const char *room, const char *fmt, ...)
	__attribute__((format(printf, 3, 4), cold));

/*
 * hd_log_within tells whether it has said true less than `most` times (1 at least) in the `ms`
 * milliseconds since it began to count. Any thread.
 */
bool hd_log_within(struct hd_log_gate *gate, unsigned most, unsigned ms, enum hd_log_level level,
		   const char *room) __attribute__((cold));

/* hd_log_set_level sets the level that goes to standard error (HEDDLE_LOG). Any thread. */
void hd_log_set_level(enum hd_log_level level);

/*
 * hd_log_set_sink routes every message to fn first; NULL goes back to standard error alone. `arg`
 * must live until no thread can be logging. A process has room for 16 different pairs of fn and
 * arg; beyond them messages go to standard error. Any thread.
 */
void hd_log_set_sink(hd_log_fn fn, void *arg);

/*
 * hd_log_raise makes messages up to `level` reach the sink even where HEDDLE_LOG is quieter;
 * standard error still gets only what HEDDLE_LOG asks for. Any thread.
 */
void hd_log_raise(enum hd_log_level level);

/* hd_log_level_name returns "error", "warn", "info" or "debug": static storage. */
const char *hd_log_level_name(enum hd_log_level level);

#endif
