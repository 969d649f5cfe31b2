/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * What the cases of dat-conformance may use beside the harness. They are written to uDAPL 1.2's
 * pages and 2.0's headers. Most of them need one process, in which the interface adapter is
 * open twice: a side each.
 */
#ifndef DT_H
#define DT_H

#include "../case.h"

#include <dat2/udat.h>
#include <pthread.h>

#include <dat2/dat_registry.h> /* wants udat.h before it */

#define DT_SIZE (1u << 20) /* bytes of a side's registered buffer, unless asked for */
#define DT_PRIVILEGES DAT_MEM_PRIV_ALL_FLAG
#define DT_FOREVER (CT_BUSY * 40000000u) /* microseconds: as patient as a test may be */

/* A call answers DAT_SUCCESS; an error of this type; of this type and subtype. */
#define DT_OK(ct, call) dt_judge(ct, call, DAT_SUCCESS, -1, #call, __LINE__)
#define DT_TYPE(ct, call, type) dt_judge(ct, call, type, -1, #call, __LINE__)
#define DT_ERR(ct, call, type, sub) dt_judge(ct, call, type, sub, #call, __LINE__)
void dt_judge(struct ct *ct, DAT_RETURN is, DAT_RETURN_TYPE type, int sub, const char *call, int line);

struct dt_want { /* what a case asks for; zero means the usual */
	DAT_COMPLETION_FLAGS recv_flags, request_flags;
	bool srq;
	DAT_COUNT srq_dtos, dtos, evd; /* 64, 64, 1024 */
	size_t size;
};

struct dt {
	struct ct *ct;
	struct dt_want want;
	DAT_IA_HANDLE ia;
	DAT_IA_ADDRESS_PTR addr;
	DAT_EVD_HANDLE async, recv, request, connect, cr;
	DAT_PZ_HANDLE pz;
	DAT_LMR_HANDLE lmr;
	DAT_LMR_CONTEXT local;
	DAT_RMR_CONTEXT remote;
	DAT_SRQ_HANDLE srq;
	DAT_EP_HANDLE ep;
	char *buf;
};

/* A pair of endpoints in one process: a has called b. */
struct dt_pair {
	struct dt a, b;
};

/*
 * What libdat2 has no function for, though the table has a slot; it takes the provider's own
 * handle of the adapter: dt_own.
 */
#define DT_VIA(handle) (*(DAT_PROVIDER **)(handle))
DAT_IA_HANDLE dt_own(const struct dt *d);

/* ---- objects --------------------------------------------------------------------------------- */

/*
 * dt_open makes everything up to an unconnected endpoint; dt_close frees it,
 * and each call must succeed.
 */
void dt_open(struct ct *ct, struct dt *d, const struct dt_want *want);
void dt_close(struct dt *d);
DAT_EP_ATTR dt_attr(const struct dt *d);
DAT_EP_HANDLE dt_ep(struct dt *d); /* a further endpoint like d's */
DAT_EVD_HANDLE dt_evd(struct dt *d, DAT_COUNT qlen, DAT_CNO_HANDLE cno, DAT_EVD_FLAGS flags);

/*
 * dt_open_software: as dt_open, without wishes; and a dispatcher for software
 * events, which the case frees.
 */
DAT_EVD_HANDLE dt_open_software(struct ct *ct, struct dt *d);

/* dt_pair_make: two sides that are not connected. */
void dt_pair_make(struct ct *ct, struct dt_pair *p);
/*
 * dt_pair_open: two sides that are connected. The second has what `want` says, and the
 * first too unless `alone`.
 */
void dt_pair_open(struct ct *ct, struct dt_pair *p, const struct dt_want *want);
void dt_pair_close(struct dt_pair *p);
/*
 * dt_join connects these endpoints; ESTABLISHED has come to both. dt_part disconnects
 * them, and takes both events.
 */
void dt_join(struct dt *a, DAT_EP_HANDLE from, struct dt *b, DAT_EP_HANDLE to);
void dt_part(struct dt *a, DAT_EP_HANDLE from, struct dt *b, DAT_EP_HANDLE to);
/*
 * dt_qualifier: one that no other case uses. dt_call: dat_ep_connect to b's host. dt_request:
 * the next request of b's.
 */
DAT_CONN_QUAL dt_qualifier(void);
void dt_call(struct dt *a, DAT_EP_HANDLE ep, const struct dt *b, DAT_CONN_QUAL q);
DAT_CR_HANDLE dt_request(struct dt *b);
DAT_EP_STATE dt_state(struct dt *d, DAT_EP_HANDLE ep);

/* ---- work ------------------------------------------------------------------------------------ */

DAT_DTO_COOKIE dt_cookie(uint64_t n);
DAT_LMR_TRIPLET dt_seg(const struct dt *d, size_t at, DAT_SEG_LENGTH len);
/* All must be accepted. */
void dt_recv(struct dt *d, DAT_EP_HANDLE ep, size_t at, DAT_SEG_LENGTH len, uint64_t cookie);
void dt_srq_recv(struct dt *d, size_t at, DAT_SEG_LENGTH len, uint64_t cookie);
void dt_send(struct dt *d, DAT_EP_HANDLE ep, size_t at, DAT_SEG_LENGTH len, uint64_t cookie,
	     DAT_COMPLETION_FLAGS flags);
void dt_write(struct dt *d, size_t at, const DAT_RMR_TRIPLET *to, uint64_t cookie);
void dt_read(struct dt *d, size_t at, const DAT_RMR_TRIPLET *from, uint64_t cookie);

/* dt_any: the next event. dt_event: it is of this kind. */
DAT_EVENT dt_any(struct dt *d, DAT_EVD_HANDLE evd);
DAT_EVENT dt_event(struct dt *d, DAT_EVD_HANDLE evd, DAT_EVENT_NUMBER number);
/*
 * dt_dto: the next event is a completion of this endpoint with this cookie and status; its length.
 */
DAT_SEG_LENGTH dt_dto(struct dt *d, DAT_EVD_HANDLE evd, DAT_EP_HANDLE ep, uint64_t cookie,
		      DAT_DTO_COMPLETION_STATUS status);
/*
 * dt_conn: the next event of d's connections is this, of this endpoint. dt_ended: it
 * is DISCONNECTED or BROKEN.
 */
DAT_EVENT dt_conn(struct dt *d, DAT_EP_HANDLE ep, DAT_EVENT_NUMBER number);
void dt_ended(struct dt *d, DAT_EP_HANDLE ep);
/*
 * dt_pair_ended: so is the connection of both sides. dt_turned_away: this event, after which
 * the endpoint is as before.
 */
void dt_pair_ended(struct dt_pair *p);
void dt_turned_away(struct dt *d, DAT_EP_HANDLE ep, DAT_EVENT_NUMBER number);
/* dt_quiet fails if an event comes within so many milliseconds. */
void dt_quiet(struct dt *d, DAT_EVD_HANDLE evd, int ms, const char *what);

/* ---- waiting in a thread --------------------------------------------------------------------- */

struct dt_waiter {
	pthread_t thread;
	DAT_EVD_HANDLE evd;
	DAT_COUNT threshold, more;
	DAT_RETURN rc;
	DAT_EVENT event;
	_Atomic pid_t tid; /* its thread's id */
	_Atomic bool done;
};

/*
 * dt_waiter_start returns when somebody waits. dt_waiter_join: it has ended; what its call has
 * answered is in *w. dt_waiter_ok: it got an event.
 */
void dt_waiter_start(struct dt *d, struct dt_waiter *w, DAT_EVD_HANDLE evd, DAT_COUNT threshold);
void dt_waiter_join(struct dt *d, struct dt_waiter *w);
void dt_waiter_ok(struct dt *d, struct dt_waiter *w);
void dt_sleep(int ms);

/*
 * dt_waits_on: a thread has not ended that says in *done when it has, and
 * does not in the next 50 ms.
 */
void dt_waits_on(struct ct *ct, const _Atomic bool *done);

#endif
