/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * The harness of the conformance programs, whatever the interface that they test.
 *
 * A case is a set of roles, one function per process. The runner never calls the library under
 * test; it forks one process per role, which then open what they need:
 *
 *	runner --fork--> rank 0 <--socketpair--> rank 1 ...
 *	   ^--- one verdict per process over a pipe; a watchdog kills the whole process group
 *
 * The processes meet over the socketpairs (ct_sync, ct_put, ct_get), never over the fabric that is
 * tested. A check that does not hold ends its process with the reason, and the case with it.
 */
#ifndef CT_CASE_H
#define CT_CASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define CT_PROCS 4			/* processes a case may have */
#define CTX(n) ((void *)(uintptr_t)(n)) /* an operation's context that is only ever compared */
#define CT_COUNT(a) (sizeof(a) / sizeof((a)[0]))

struct ct_ep; /* what a program makes progress on while it waits for other ranks: its own */

struct ct;

struct ct_case {
	const char *row; /* the row of spec.md, or the object tested: "M2", "AV" */
	const char *name;
	void (*role[CT_PROCS])(struct ct *ct);
	int seconds;   /* of the watchdog, but for CT_BUSY; 0 means 60 */
	uintptr_t arg; /* for roles that serve several cases */
	/* "NAME=value", in the environment before anything is loaded; such cases run first */
	const char *setting;
	/*
	 * It waits for a time-out by design, or for much work: `make check` leaves it out, and has
	 * another case of its row.
	 */
	bool slow;
};

/* The roles of a case that is the same for so many ranks. */
#define CT_TWO(f) \
	{ \
		f, f \
	}
#define CT_THREE(f) \
	{ \
		f, f, f \
	}

struct ct_conf {
	const char *provider; /* the provider or device under test */
	/* source addresses of the ranks; NULL where names are not IP addresses */
	const char *node[CT_PROCS];
	/* network namespaces that they are in, of ip-netns(8); NULL: this one */
	const char *space[CT_PROCS];
	/* of endpoints, for cases that do not ask themselves: enum fi_ep_type */
	unsigned type;
	uint64_t caps;	    /* likewise: FI_MSG, and FI_TAGGED where the provider has it */
	unsigned progress;  /* enum fi_progress */
	unsigned threading; /* enum fi_threading */
	double scale;	    /* factor on all deadlines */
	uint64_t seed;
};

struct ct {
	const struct ct_case *cs;
	const struct ct_conf *conf;
	int rank;
	int procs;
	pid_t pid[CT_PROCS];
	int chan[CT_PROCS]; /* socketpair to each other rank, -1 to itself */
	int verdict_fd;
	uint64_t rng;
};

enum ct_verdict_kind {
	CT_NONE,
	CT_PASS,
	CT_FAIL,
	CT_UNSUPPORTED,
	CT_LOST,
	CT_DOOMED
};

struct ct_verdict {
	int kind;
	char text[600];
};

/* ---- verdicts (run.c) ---- */

/* ct_fail ends the calling process; the case fails with this reason. */
void ct_fail(struct ct *ct, const char *fmt, ...) __attribute__((noreturn, format(printf, 2, 3)));
/* ct_unsupported ends the calling process; the case is unsupported, for this reason. */
void ct_unsupported(struct ct *ct, const char *fmt, ...) __attribute__((noreturn, format(printf, 2, 3)));
/*
 * ct_faults: the case touches memory that is gone. It is unsupported in a program that handles
 * faults itself, as sanitizers do, and but on x86-64.
 */
void ct_faults(struct ct *ct);
/* an address where nobody else gets memory, so that what is unmapped there stays so */
#define CT_APART ((void *)0x200000000000)
/*
 * ct_doomed says that this process will be killed on purpose: how it ends
 * does not count from here on.
 */
void ct_doomed(struct ct *ct);
/*
 * ct_port: the n-th of a hundred ports that are this run's alone, the same for all ranks: of
 * HD_TEST_PORTS, which tests/ports.sh sets, or drawn where the program is run by hand.
 */
uint16_t ct_port(unsigned n);
/* ct_run runs a case in processes of its own and returns its verdict in *out. */
void ct_run(const struct ct_case *cs, const struct ct_conf *conf, struct ct_verdict *out);

#define CT_STR2(x) #x
#define CT_STR(x) CT_STR2(x)
#define CT_TRUE(ct, cond) \
	do { \
		if (!(cond)) \
			ct_fail(ct, "%s:%d: not true: %s", __FILE_NAME__, __LINE__, #cond); \
	} while (0)
#define CT_EQ(ct, a, b) \
	do { \
		long long ct_a = (long long)(a), ct_b = (long long)(b); \
		if (ct_a != ct_b) \
			ct_fail(ct, "%s:%d: %s is %lld (0x%llx), not %lld (0x%llx)", __FILE_NAME__, \
				__LINE__, #a, ct_a, ct_a, ct_b, ct_b); \
	} while (0)
#ifndef __FILE_NAME__
#define __FILE_NAME__ __FILE__
#endif

/* ---- time, chance, data (data.c) ---- */

double ct_now(void); /* seconds, monotonic */
/*
 * A deadline is there to end what hangs, and never to judge what is slow. So each is so many times
 * what a machine takes that has the case alone: four run at a time, on two processors, with
 * sanitizers, and a page's first touch alone may cost ten times as much on one host as on another.
 */
#define CT_BUSY 4
double ct_cpu(void); /* CPU seconds used by this process */
/* the time up to which a wait is patient */
double ct_deadline(const struct ct *ct);
void ct_late(struct ct *ct, double end, const char *what); /* fails when it is later than end */
/* leaves the CPU to others for a moment */
void ct_pause(void);
/* the same sequence in all ranks of a case */
uint64_t ct_rand(struct ct *ct);
uint64_t ct_range(struct ct *ct, uint64_t n); /* 0 to n - 1 */
void *ct_alloc(struct ct *ct, size_t len);    /* zeroed; len 0 is allowed */
/* ct_fill writes the byte pattern of seed; any two seeds differ within the first bytes. */
void ct_fill(void *buf, size_t len, uint64_t seed);
/* ct_match tells whether the bytes at buf are those from offset off on of seed's pattern. */
bool ct_match(const void *buf, size_t len, uint64_t seed, size_t off);
void ct_verify(struct ct *ct, const void *buf, size_t len, uint64_t seed, const char *what);
/* ct_untouched tells whether all bytes are c. */
bool ct_untouched(const void *buf, size_t len, unsigned char c);

/*
 * ct_memory: KiB of this process's memory, of the kind that a line of /proc/self/smaps_rollup
 * tells: "Rss" with what is shared, "Anonymous" without. It is counted page by page;
 * /proc/self/statm, which is quicker, may be wrong by some dozen pages for each processor.
 */
long ct_memory(struct ct *ct, const char *kind);
/*
 * Whether what a process holds is what was allocated: the address sanitizer keeps freed memory for
 * a while, the other has its own besides.
 */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define CT_OWN_MEMORY false
#else
#define CT_OWN_MEMORY true
#endif

/* ---- the ranks' channel (chan.c); e may be NULL: then no progress is made while waiting ---- */

void ct_put(struct ct *ct, int rank, const void *data, size_t len);
void ct_get(struct ct *ct, struct ct_ep *e, int rank, void *data, size_t len);
void ct_sync(struct ct *ct, struct ct_ep *e);
/*
 * ct_thread_state: of a thread of this process: 'S' when it sleeps, as proc(5)
 * has them; 0: there is none.
 */
char ct_thread_state(pid_t tid);
/*
 * ct_let_sleep returns when a thread, of this process or another, has gone to sleep; false: it has
 * not for a while, and looks again and again.
 */
bool ct_let_sleep(pid_t tid);
/* ct_let_others_sleep: the same of all other threads of this process. */
void ct_let_others_sleep(void);

/*
 * ct_stop_rank stops another rank with SIGSTOP and returns when it stands still;
 * ct_cont_rank lets it go on.
 */
void ct_stop_rank(struct ct *ct, int rank);
void ct_cont_rank(struct ct *ct, int rank);
/* ct_progress reads all there is into the stash; returns whether anything came. */
bool ct_progress(struct ct_ep *e);

/* ---- the selection of cases (pick.c) ---- */

#define CT_PICKS 64

struct ct_picks {
	const char *name[CT_PICKS];
	int n;
};

/* ct_pick adds a row, a case, or both ("M2 boundaries"). */
void ct_pick(struct ct_picks *picks, const char *name);
/* Which of the cases: all, or those that are, or are not, slow. */
enum ct_speed {
	CT_ANY,
	CT_QUICK,
	CT_SLOW
};

/* ct_speed_of: of "quick" or "slow"; another word ends the program. */
enum ct_speed ct_speed_of(const char *word);
/*
 * ct_run_all runs what is picked (everything, when nothing is) but for `leave_out`, prints a line
 * for each, and the sum. not_for: whether a case can never run in this configuration: it is not
 * listed. strict: an unsupported case counts as failed. warm: what every case would do first, once
 * for all, before processes are forked for those without a setting; or NULL. Returns the program's
 * exit status.
 */
struct ct_all {
	const struct ct_picks *only, *leave_out;
	bool (*not_for)(const struct ct_conf *conf, const struct ct_case *cs);
	bool strict;
	void (*warm)(const struct ct_conf *conf);
	enum ct_speed speed;
};
/* ct_list_all prints the cases of that speed and ends the program. */
void ct_list_all(enum ct_speed speed) __attribute__((noreturn));
int ct_run_all(const struct ct_all *all, const struct ct_conf *conf);

/* The program that the harness is linked into: its name and its cases. */
extern const char ct_program[];
extern const struct ct_case *const ct_lists[];

#endif
