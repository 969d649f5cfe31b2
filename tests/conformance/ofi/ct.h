/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * The harness of ofi-conformance: what a test case may use.
 *
 * A case is a set of roles, one function per process.  The runner never calls libfabric; it forks one
 * process per role, which then open what they need from the provider under test:
 *
 *	runner --fork--> rank 0 <--socketpair--> rank 1 ...
 *	   ^--- one verdict per process over a pipe; a watchdog kills the whole process group
 *
 * The processes meet over the socketpairs (ct_sync, ct_put, ct_get), never over the fabric that is tested.
 * A check that does not hold ends its process with the reason, and the case with it.
 */
#ifndef CT_H
#define CT_H

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_tagged.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define CT_PROCS 4  /* processes a case may have */
#define CT_NAME 256 /* bytes of an endpoint's name */
#define CT_API FI_VERSION(1, 17)
#define CTX(n) ((void *)(uintptr_t)(n)) /* an operation's context that is only ever compared */
#define CT_MR_NONE (-1)
#define CT_COUNT(a) (sizeof(a) / sizeof((a)[0]))

struct ct;

struct ct_case {
	const char *row; /* the row of spec.md, or the object tested: "M2", "AV" */
	const char *name;
	void (*role[CT_PROCS])(struct ct *ct);
	int seconds;   /* watchdog, 0 means 60 */
	uintptr_t arg; /* for roles that serve several cases */
};

struct ct_conf {
	const char *provider;
	const char *node;     /* source address, NULL where names are not IP addresses */
	enum fi_ep_type type; /* of endpoints, for cases that do not ask themselves */
	enum fi_progress progress;
	enum fi_threading threading;
	double scale; /* factor on all deadlines */
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
/* ct_doomed says that this process will be killed on purpose: how it ends does not count from here on. */
void ct_doomed(struct ct *ct);
/* ct_run runs a case in processes of its own and returns its verdict in *out. */
void ct_run(const struct ct_case *cs, const struct ct_conf *conf, struct ct_verdict *out);

#define CT_STR2(x) #x
#define CT_STR(x) CT_STR2(x)
#define CT_TRUE(ct, cond) \
	do { \
		if (!(cond)) \
			ct_fail(ct, "%s:%d: not true: %s", __FILE_NAME__, __LINE__, #cond); \
	} while (0)
#define CT_OK(ct, call) \
	do { \
		long long ct_rc = (long long)(call); \
		if (ct_rc) \
			ct_fail(ct, "%s:%d: %s: %lld (%s)", __FILE_NAME__, __LINE__, #call, ct_rc, \
				fi_strerror((int)(ct_rc < 0 ? -ct_rc : ct_rc))); \
	} while (0)
#define CT_EQ(ct, a, b) \
	do { \
		long long ct_a = (long long)(a), ct_b = (long long)(b); \
		if (ct_a != ct_b) \
			ct_fail(ct, "%s:%d: %s is %lld (0x%llx), not %lld (0x%llx)", __FILE_NAME__, \
				__LINE__, #a, ct_a, ct_a, ct_b, ct_b); \
	} while (0)
/* Any refusal will do where the page names no errno, but not -FI_EAGAIN, which means "later". */
#define CT_REFUSED(ct, call) \
	do { \
		long long ct_rc = (long long)(call); \
		if (ct_rc >= 0 || ct_rc == -FI_EAGAIN) \
			ct_fail(ct, "%s:%d: not refused: %s gives %lld", __FILE_NAME__, __LINE__, #call, \
				ct_rc); \
	} while (0)
/* Calls again while the provider says -FI_EAGAIN, reading the endpoint's queues in between. */
#define CT_POST(e, call) \
	do { \
		ssize_t ct_rc; \
		double ct_end = ct_deadline((e)->ct); \
		while ((ct_rc = (call)) == -FI_EAGAIN) { \
			ct_late((e)->ct, ct_end, #call " to be accepted"); \
			if (!ct_progress(e)) \
				ct_pause(); \
		} \
		if (ct_rc) \
			ct_fail((e)->ct, "%s:%d: %s: %zd (%s)", __FILE_NAME__, __LINE__, #call, ct_rc, \
				fi_strerror((int)-ct_rc)); \
	} while (0)

#ifndef __FILE_NAME__
#define __FILE_NAME__ __FILE__
#endif

/* ---- time, chance, data (data.c) ---- */

double ct_now(void);					   /* seconds, monotonic */
double ct_cpu(void);					   /* CPU seconds used by this process */
double ct_deadline(const struct ct *ct);		   /* the time up to which a wait is patient */
void ct_late(struct ct *ct, double end, const char *what); /* fails when it is later than end */
void ct_pause(void);					   /* leaves the CPU to others for a moment */
uint64_t ct_rand(struct ct *ct);			   /* the same sequence in all ranks of a case */
uint64_t ct_range(struct ct *ct, uint64_t n);		   /* 0 to n - 1 */
void *ct_alloc(struct ct *ct, size_t len);		   /* zeroed; len 0 is allowed */
/* ct_fill writes the byte pattern of seed; any two seeds differ within the first bytes. */
void ct_fill(void *buf, size_t len, uint64_t seed);
/* ct_match tells whether the bytes at buf are those from offset off on of seed's pattern. */
bool ct_match(const void *buf, size_t len, uint64_t seed, size_t off);
void ct_verify(struct ct *ct, const void *buf, size_t len, uint64_t seed, const char *what);
/* ct_untouched tells whether all bytes are c. */
bool ct_untouched(const void *buf, size_t len, unsigned char c);

/* ---- fabric objects (fab.c) ---- */

struct ct_want {	      /* what a case asks for; zero means the usual */
	uint64_t caps;	      /* 0: FI_MSG | FI_TAGGED */
	enum fi_ep_type type; /* 0: the one that the program was told */
	int mr_mode;	      /* of the hints; 0: the usual, CT_MR_NONE: no bit */
	uint64_t mode;	      /* the info must have these bits, or the case is unsupported */
	uint64_t tx_op_flags, rx_op_flags;
	uint64_t tx_bind, rx_bind; /* added to FI_TRANSMIT and FI_RECV when the CQs are bound */
	uint64_t msg_order;
	enum fi_cq_format format; /* 0: FI_CQ_FORMAT_TAGGED */
	enum fi_wait_obj wait;
	struct fid_wait *wait_set; /* with FI_WAIT_SET */
	enum fi_cq_wait_cond cond;
	enum fi_av_type av_type;
	enum fi_progress progress;
	size_t cq_size;
	bool split;    /* a CQ for each direction */
	bool disabled; /* do not enable the endpoint */
	bool counters; /* bind a counter for sends and one for receives */
};

struct ct_dom {
	struct ct *ct;
	struct ct_want want;
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
};

struct ct_comp { /* one completion, good or bad, of whatever CQ format */
	void *ctx;
	uint64_t flags;
	size_t len;
	void *buf;
	uint64_t data;
	uint64_t tag;
	fi_addr_t src;
	size_t olen;
	int err; /* 0 when successful */
	bool tx; /* read from the transmit CQ of an endpoint with two */
};

struct ct_ep {
	struct ct *ct;
	struct ct_dom *dom;
	struct fid_av *av;
	struct fid_cq *txcq, *rxcq; /* the same one unless want.split */
	struct fid_cntr *txcntr, *rxcntr;
	struct fid_ep *ep;
	struct fid_eq *eq;	  /* FI_EP_MSG: of its connection */
	struct fid_pep *pep;	  /* FI_EP_MSG, rank 0: where it was called */
	char peer[CT_NAME];	  /* FI_EP_MSG: whom to call */
	fi_addr_t addr[CT_PROCS]; /* the endpoints of the other ranks, after ct_join */
	char name[CT_NAME];
	size_t namelen;
	struct ct_comp *stash; /* completions read and not yet asked for: [head, tail) */
	size_t head, tail, cap;
};

/* ct_hints gives the hints of a case, to be freed with fi_freeinfo. */
struct fi_info *ct_hints(struct ct *ct, const struct ct_want *want);
/* ct_getinfo asks the provider; its errno is returned, with NULL in *info. */
int ct_getinfo(struct ct *ct, struct fi_info *hints, struct fi_info **info);
/* ct_open opens fabric and domain; a refusal at fi_getinfo makes the case unsupported. */
void ct_open(struct ct *ct, struct ct_dom *dom, const struct ct_want *want);
void ct_close(struct ct_dom *dom);
/* ct_ep_open opens an endpoint with CQ and AV, and enables it. */
void ct_ep_open(struct ct_dom *dom, struct ct_ep *ep);
void ct_ep_enable(struct ct_ep *ep);
void ct_ep_close(struct ct_ep *ep);
/* ct_insert adds a name that was got from a peer, as one address. */
fi_addr_t ct_insert(struct ct_ep *ep, const char *name);
/* ct_join exchanges names with all ranks and inserts them into the endpoint's AV. */
void ct_join(struct ct_ep *ep);
/* ct_start opens domain and endpoint and joins: what most cases begin with. */
void ct_start(struct ct *ct, struct ct_dom *dom, struct ct_ep *ep, const struct ct_want *want);
/* ct_finish meets the other ranks and closes both; every fi_close must succeed. */
void ct_finish(struct ct_ep *ep);

/* ---- the ranks' channel (chan.c); e may be NULL: then no progress is made while waiting ---- */

void ct_put(struct ct *ct, int rank, const void *data, size_t len);
void ct_get(struct ct *ct, struct ct_ep *e, int rank, void *data, size_t len);
void ct_sync(struct ct *ct, struct ct_ep *e);
/* ct_stop_rank stops another rank with SIGSTOP and returns when it stands still; ct_cont_rank lets it go on. */
void ct_stop_rank(struct ct *ct, int rank);
void ct_cont_rank(struct ct *ct, int rank);

/* ---- completions (comp.c) ---- */

/* ct_progress reads all there is into the stash; returns whether anything came. */
bool ct_progress(struct ct_ep *e);
/* ct_read_cq reads at most one entry of a CQ, an error entry included, into *c. */
bool ct_read_cq(struct ct_ep *e, struct fid_cq *cq, struct ct_comp *c);
/* ct_poll takes the oldest completion, if there is one. */
bool ct_poll(struct ct_ep *e, struct ct_comp *c);
/* ct_any waits for a completion; ct_of waits for the one with this context and leaves the others. */
void ct_any(struct ct_ep *e, struct ct_comp *c);
void ct_of(struct ct_ep *e, void *ctx, struct ct_comp *c);
/* ct_done is ct_of, and the completion must be a success; returns the length. */
size_t ct_done(struct ct_ep *e, void *ctx);
/* ct_quiet fails if a completion comes within so many milliseconds. */
void ct_quiet(struct ct_ep *e, int ms, const char *what);
/* ct_idle makes progress for so many milliseconds and keeps what comes. */
void ct_idle(struct ct_ep *e, int ms);

void ct_send(struct ct_ep *e, int rank, const void *buf, size_t len, void *ctx);
void ct_tsend(struct ct_ep *e, int rank, const void *buf, size_t len, uint64_t tag, void *ctx);
void ct_recv(struct ct_ep *e, void *buf, size_t len, void *ctx);
void ct_trecv(struct ct_ep *e, void *buf, size_t len, uint64_t tag, uint64_t ignore, void *ctx);
/* ct_ping shows that the endpoint still works: a tagged message there and back, with data checked. */
void ct_ping(struct ct_ep *e, int rank);

/* The program that the harness is linked into: its name and its cases. */
extern const char ct_program[];
extern const struct ct_case *const ct_lists[];

#endif
