/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * The uDAPL front's own objects (uDAPL 2.0, dat2/udat.h). A handle is the address of one of them;
 * all begin with struct hu_object, whose first word is the provider table, which is what libdat2
 * calls through. Nothing is queued or timed here:
 *
 *	IA ── hd_node		EVD ── hd_cq, which takes completions and the front's own notices
 *				alike
 *	EP ── hd_ep (a pair)	CNO ── hd_channel	LMR ── hd_mr	SRQ ── hd_rq
 *	a connection is a second hd_ep (HD_EP_MSG) that carries no messages; service points are
 *	hd_service
 *
 * Errors: a DAT_RETURN with the subtype that the specification names, nothing posted, nothing
 * changed. Threads: every object may be used by any thread; all state is under the lock of the IA's
 * node (hu_enter), but what says otherwise.
 *
 * The files, lowest first: each calls those above it in this list alone (ci/rooms).
 *
 *	counters.c   how often what has happened
 *	object.c     what handles have in common, and the engine's words in uDAPL's
 *	pz.c         protection zones
 *	lmr.c        regions, and segments of operations
 *	cno.c        consumer notification objects
 *	evd.c        dispatchers, and what is told by them
 *	ep_attr.c    what endpoints may be like,
 *	ep_query.c   and are
 *	post.c       requests and receives
 *	rmr.c        windows
 *	line.c       what carries a connection, and its end
 *	watermark.c  buffers that an endpoint has taken
 *	ud.c         datagrams
 *	connect.c    connections
 *	event.c      what completions mean
 *	evd_read.c   dispatchers, as programs read them
 *	ep.c         endpoints
 *	ep_modify.c  that become others
 *	srq.c        shared receive queues
 *	sp.c         service points,
 *	csp.c        those of socket addresses
 *	cr.c         requests that come to them
 *	ia.c         adapters
 *	ia_query.c   what they are like
 *	ext.c        the InfiniBand extensions
 *	provider.c   what libdat2 finds
 */
#ifndef HEDDLE_FRONT_DAT_FRONT_H
#define HEDDLE_FRONT_DAT_FRONT_H

#include "engine/engine.h"

#include <dat2/udat.h>
#include <netinet/in.h>
#include <stdatomic.h>

#include <dat2/dat_ib_extensions.h> /* both want udat.h before them */
#include <dat2/dat_registry.h>

#define HU_PUBLIC __attribute__((visibility("default")))
#define hu_container(ptr, type, member) ((type *)(void *)((char *)(ptr)-offsetof(type, member)))
#define hu_likely(x) __builtin_expect(!!(x), 1)
#define hu_unlikely(x) __builtin_expect(!!(x), 0)

/* What dat_ia_query(3) says; creating more or longer ones is refused. */
#define HU_MAX_OBJECTS (1 << 20)
#define HU_MAX_EPS (1 << 18)
#define HU_MAX_DTOS (1 << 15) /* of an endpoint, each way */
#define HU_MAX_SRQ_DTOS (1 << 16)
#define HU_MAX_EVENTS (1 << 20)
#define HU_MAX_IOV HD_MAX_IOV
#define HU_MAX_READS 128
#define HU_MAX_MESSAGE (1u << 30)
#define HU_MAX_PRIVATE 192 /* bytes of private data */
#define HU_MAX_DATAGRAM 4096
#define HU_GRH 40 /* bytes in front of a datagram, as InfiniBand has them */

/* hu_error: a DAT_RETURN of this type and subtype. */
static inline DAT_RETURN hu_error(DAT_RETURN_TYPE type, DAT_RETURN_SUBTYPE sub)
{
	return (DAT_RETURN)DAT_CLASS_ERROR | (DAT_RETURN)type | (DAT_RETURN)sub;
}

/* hu_errno: what a negative errno of the engine's is to the program. */
DAT_RETURN hu_errno(int rc);

/* ---- objects --------------------------------------------------------------------------------- */

struct hu_ia;

struct hu_object {
	const DAT_PROVIDER *provider; /* first */
	uint32_t magic;
	DAT_HANDLE_TYPE type;
	struct hu_ia *ia;
	DAT_CONTEXT context;
	atomic_int users; /* objects that need this one, those of other IAs too */
	LIST_ENTRY(hu_object) entry;
	STAILQ_ENTRY(hu_object) free; /* when it is no object */
};

#define HU_MAGIC 0x48754474u

/*
 * hu_is: is this a handle of that type? Takes no lock; a handle that was freed is not
 * one. The memory of objects stays theirs for that, and is used again for the same type
 * alone, the longest free first.
 */
static inline bool hu_is(const void *handle, DAT_HANDLE_TYPE type)
{
	const struct hu_object *o = handle;

	return hu_likely(o && !((uintptr_t)o & 7) && o->magic == HU_MAGIC && o->type == type);
}

/*
 * hu_make: a zeroed object of so many bytes of an IA; NULL without memory. hu_free: it is a handle
 * no longer. With the lock.
 */
void *hu_make(struct hu_ia *ia, DAT_HANDLE_TYPE type, size_t size);
void hu_free(struct hu_object *o);
void hu_unmake(struct hu_object *o); /* the same of one that has not come about */
/* only its memory: it is in no list any more, and no handle */
void hu_release(struct hu_object *o);

/* ---- the IA ---------------------------------------------------------------------------------- */

struct hu_ep;
struct hu_evd;
struct hu_lmr;

#define HU_LMR_NEAR 64 /* a power of two */

struct hu_ia {
	struct hu_object o;
	struct hd_node *node;
	/* those used last, by the low bits of lmr_context */
	const struct hu_lmr *lmr_near[HU_LMR_NEAR];
	struct hd_evq *events; /* connections and services tell of what happens here: connect.c */
	/*
	 * of another IA where the program wished that; NULL: errors go where
	 * others' do, hu_notify_async
	 */
	struct hu_evd *async;
	struct sockaddr_storage addr;
	char name[DAT_NAME_MAX_LENGTH]; /* by which it was opened */
	bool thread_safe;		/* and as that */
	uint32_t next_zone;
	bool closing; /* who waits is sent away */
	/*
	 * threads in dat_evd_wait and dat_cno_wait, which touch nothing of the IA after they have
	 * left; a mutex of their own, taken last
	 */
	pthread_mutex_t mutex;
	pthread_cond_t left; /* the last one has */
	int waiters;
	LIST_HEAD(, hu_object) objects; /* all but itself */
	struct hu_ep **eps;		/* by hd_ep_index */
	uint32_t ep_size;
	uint64_t counts[DCNT_IA_ALL_COUNTERS];
};

/*
 * counters.c, dat_ib_extensions.h. hu_count: one more of this enum dat_ia_counters. hu_count_made,
 * hu_count_freed: objects. With the lock.
 * hu_counters_query, hu_counters_print, hu_counters_sample: the calls.
 */
static inline void hu_count(struct hu_ia *ia, DAT_IA_COUNTERS which)
{
	ia->counts[which]++;
}
void hu_count_made(struct hu_ia *ia, DAT_HANDLE_TYPE type, int by);
void hu_count_freed(struct hu_ia *ia, DAT_HANDLE_TYPE type);
DAT_RETURN hu_counters_query(DAT_HANDLE handle, int which, DAT_UINT64 *out, bool reset);
DAT_RETURN hu_counters_print(DAT_HANDLE handle, int which, bool reset);
DAT_RETURN hu_counters_sample(DAT_HANDLE handle, int type);

/*
 * hu_enter: take the lock for a call; false, without it, in a child forked after the IA was opened,
 * where nothing of ours works: answer DAT_INTERNAL_ERROR then. hu_leave gives it back.
 */
static inline bool hu_enter(struct hu_ia *ia)
{
	return hd_node_enter(ia->node);
}
static inline void hu_leave(struct hu_ia *ia)
{
	hd_node_unlock(ia->node);
}
/*
 * hu_begin: the object of this type behind a handle, with its IA's lock; NULL, without it: *rc says
 * why not, `sub` of a handle that is none.
 */
void *hu_begin(DAT_HANDLE handle, DAT_HANDLE_TYPE type, DAT_RETURN_SUBTYPE sub, DAT_RETURN *rc);
#define HU_DEAD hu_error(DAT_INTERNAL_ERROR, DAT_NO_SUBTYPE)

/*
 * hu_ia_handle: the IA as its program knows it, by libdat2's handle; our own where it was
 * not opened by dat_ia_open.
 */
DAT_IA_HANDLE hu_ia_handle(struct hu_ia *ia);

/* hu_waiters_add: one thread more that waits for events, or (by -1) less. Without the lock. */
void hu_waiters_add(struct hu_ia *ia, int by);

/*
 * hu_ia_open_by: dat_ia_open by this provider. hu_found_by_name: the provider that
 * dat_ib_open_query finds, by a name alone; provider.c, which is above all, says it as soon as
 * libdat2 knows us, and never again another.
 */
DAT_RETURN hu_ia_open_by(const DAT_PROVIDER *provider, bool thread_safe, const char *name, DAT_COUNT qlen,
			 DAT_EVD_HANDLE *async, DAT_IA_HANDLE *out);
extern const DAT_PROVIDER *hu_found_by_name;

/* ---- protection zones and memory ------------------------------------------------------------- */

struct hu_pz {
	struct hu_object o;
	uint32_t number; /* hd_mr_attr.pd, hd_ep_attr.pd */
};

struct hu_lmr {
	struct hu_object o;
	struct hu_pz *pz;
	struct hd_mr *mr;
	DAT_LMR_PARAM param;
	struct hu_lmr *twin; /* DAT_MEM_TYPE_LMR: what it was made from */
};

struct hu_rmr {
	struct hu_object o;
	struct hu_pz *pz;
	struct hd_mr *mr;	/* a window */
	const struct hu_ep *ep; /* it was bound by this one last; only to be compared with */
	DAT_RMR_PARAM param;
};

/* hu_access: enum hd_access of DAT_MEM_PRIV_FLAGS and the extensions'. */
uint32_t hu_access(unsigned privileges);

/* Segments of an operation, translated. */
struct hu_iov {
	struct iovec iov[HU_MAX_IOV];
	struct hd_mr *regions[HU_MAX_IOV]; /* of the segments */
	int count;
	uint64_t total;
};

/*
 * hu_segments: local segments of an operation in this zone; write: it writes there.
 * DAT_SUCCESS, or what the specification says of them; `arg` is the number of the argument that
 * they are. With the lock.
 */
struct hu_local {
	const struct hu_pz *pz;
	const DAT_LMR_TRIPLET *iov;
	DAT_COUNT count, most;
	bool write;
	int arg; /* 2: num_segments is the second argument, local_iov the one after */
};
DAT_RETURN hu_segments(struct hu_ia *ia, const struct hu_local *local, struct hu_iov *out);

/* hu_gone: where a receive has its data put whose region has been freed: see hd_mr_fault. */
extern const char hu_gone[];

/* ---- event dispatchers ----------------------------------------------------------------------- */

struct hu_cno {
	struct hu_object o;
	struct hd_channel *channel;
	DAT_PROXY_TYPE proxy;
	DAT_OS_WAIT_PROXY_AGENT agent;
	struct hd_notifier *herald; /* calls the agent; NULL: there is none */
	int waiters;		    /* threads in dat_cno_wait */
	/* waits in the channel for those who are sent away; it has no owner */
	struct hd_channel_item unblock;
	uint32_t unblocked;
};

struct hu_evd {
	struct hu_object o;
	struct hd_cq *cq;
	DAT_COUNT qlen;
	DAT_EVD_FLAGS flags;
	bool disabled, unwaitable;
	bool waiter;	/* somebody is in dat_evd_wait */
	bool blocked;	/* and has to sleep there */
	bool is_elder;	/* hu_evd_make_elder */
	int controlled; /* completions of so many endpoints do not all tell: no thresholds */
	int thresholds; /* so many endpoints are made for them */
	struct hu_cno *cno;
	struct hd_channel_item item; /* of the CNO's channel */
	uint32_t taken;
	uint64_t counts[DCNT_EVD_ALL_COUNTERS];
	LIST_ENTRY(hu_evd) elder; /* of those for errors: evd.c */
};

/*
 * An event that is no completion of the engine's waits in the EVD's CQ as an entry with this as
 * ctx. Freed when it is read.
 */
struct hu_notice {
	DAT_EVENT event;
};

/*
 * hu_evd_make: dat_evd_create without its checks. hu_timeout_ms: microseconds as the
 * engine waits, -1 for ever.
 */
DAT_RETURN hu_evd_make(struct hu_ia *ia, DAT_COUNT qlen, DAT_EVD_FLAGS flags, struct hu_evd **out);
void hu_evd_make_elder(struct hu_evd *evd); /* errors of IAs without an async EVD may come to it */
int hu_timeout_ms(DAT_TIMEOUT us);

/*
 * EVDs may take connection events and errors of other IAs than their own, which may be closed
 * meanwhile: then they are no handles any more, but stay for those who hold them. hu_evd_hold: one
 * user more, who gives it back by hu_evd_put.
 */
void hu_evd_hold(struct hu_evd *evd);
void hu_evd_put(struct hu_evd *evd);

/*
 * hu_notify: append an event; evd may be NULL, then it is lost, or another IA's than the lock's.
 * With the lock of `from`.
 */
void hu_notify(struct hu_ia *from, struct hu_evd *evd, const DAT_EVENT *event);

/*
 * hu_notify_async: tell the IA's async EVD of something about this object, for this
 * reason of its kind; or where it was opened to have none, that of the IA that has been
 * open longest. With the lock.
 */
void hu_notify_async(struct hu_ia *ia, DAT_EVENT_NUMBER number, void *object, DAT_COUNT reason);

/*
 * hu_evd_watch: tell the CNO, if there is one and the EVD is enabled, of what
 * comes next. With the lock.
 */
void hu_evd_watch(struct hu_evd *evd);

/* hu_event_fill: what a completion means; false: to nobody any more. With the lock. */
bool hu_event_fill(struct hu_evd *evd, const struct hd_cqe *e, DAT_EVENT *out);

/*
 * hd_cqe.tag of requests: the operation (DAT_DTOS or DAT_IB_DTOS), and whether its
 * completion notifies nobody.
 */
#define HU_TAG_OPERATION 0xffff
#define HU_TAG_QUIET (UINT64_C(1) << 16)

/*
 * Beside these, the object that is told of: only to be named, for it may be gone
 * when its completion is read.
 */
static inline uint64_t hu_tag_object(const void *object)
{
	return (uint64_t)(uintptr_t)object >> 3 << 17;
}
static inline void *hu_tagged_object(uint64_t tag)
{
	return (void *)(uintptr_t)(tag >> 17 << 3);
}

/* ---- shared receive queues ------------------------------------------------------------------- */

struct hu_srq {
	struct hu_object o;
	struct hu_pz *pz;
	struct hd_rq *rq;
	struct hd_ep *poster; /* nameless: posts what others receive */
	DAT_SRQ_ATTR attr;
};

/* ---- connections ----------------------------------------------------------------------------- */

/* What each end tells the other, in front of the private data. */
struct hu_head {
	uint32_t number; /* of its endpoint: hd_ep_number */
	uint16_t private_size;
	uint16_t datagram;  /* its endpoint is for datagrams */
	uint64_t qualifier; /* of a refusal: the service to be asked instead (HU_WORD_HANDOFF) */
};

/*
 * A service stands as long as requests that it has told of wait for an answer, even
 * without its service point.
 */
struct hu_listener {
	struct hd_service *service;
	int users; /* the service point, and requests */
};

struct hu_sp { /* PSP, RSP and CSP */
	struct hu_object o;
	struct hu_listener *listener;
	struct hu_evd *evd;
	DAT_CONN_QUAL qualifier;
	DAT_PSP_FLAGS flags;
	struct hu_ep *ep; /* RSP: whose it is, until it is used */
	bool used;	  /* RSP: its request has come */
	DAT_COMM comm;	  /* CSP: what it was made with, and its port */
	struct sockaddr_storage address;
};

struct hu_cr {
	struct hu_object o;
	struct hu_listener *listener;
	struct hd_request *request;
	struct sockaddr_storage from;
	struct hu_head head;
	struct hu_ep *ep;		/* RSP: the only one that may accept */
	char priv[HU_MAX_PRIVATE + 64]; /* the program may write here */
};

struct hu_handshake;
struct hu_ah;

/*
 * what has happened to an endpoint's connection, to be carried out when the
 * turn of progress is over
 */
enum hu_todo {
	HU_ANSWERED = 1 << 0,
	HU_REFUSED = 1 << 1,
	HU_DOWN = 1 << 2,
	HU_BROKEN = 1 << 3,
	HU_DRAINED = 1 << 4, /* everything posted has been done */
	HU_UP = 1 << 5,	     /* ud.c: the caller knows */
	HU_MOVED = 1 << 6,   /* the request is another service's */
};

/* Private data. */
struct hu_private {
	uint32_t len;
	char data[HU_MAX_PRIVATE];
};

struct hu_ep {
	struct hu_object o;
	struct hd_ep *ep;    /* NULL: not configured */
	struct hd_dest **to; /* where it sends; not for datagrams */
	struct hu_pz *pz;
	DAT_EP_STATE state;
	DAT_EP_ATTR attr;
	uint32_t index; /* hd_ep_index */
	struct hu_evd *recv, *request, *connect;
	struct hu_srq *srq;
	uint64_t reaped;      /* of hd_ep_taken: whose completions have been read */
	DAT_COUNT soft, hard; /* high watermarks that are to be told of: watermark.c */
	bool marked;	      /* one is */
	struct hd_ep *line;   /* carries the connection; NULL: there is none */
	struct hd_deferred deferred;
	uint32_t todo;	      /* enum hu_todo */
	DAT_EVENT_NUMBER why; /* HU_REFUSED; of its end */
	/* it ends, when a process is out of a copy to its memory: HD_EV_EP_OVER */
	bool parts;
	struct hu_head other;
	struct sockaddr_storage remote;
	DAT_CONN_QUAL remote_qualifier;
	struct hu_private said;	 /* with its request */
	struct hu_private heard; /* with what is to be told of next, or was last */
	/* of what it asks for, by hd_now_ns; 0: there is no end */
	uint64_t due;
	int moves;			      /* of its request */
	bool tentative;			      /* made for a request, and not accepted yet */
	LIST_HEAD(, hu_handshake) handshakes; /* for datagrams: ud.c */
	LIST_HEAD(, hu_ah) address_handles;   /* the same */
	uint64_t counts[DCNT_EP_ALL_COUNTERS];
};

/* hu_ep_of: the endpoint behind hd_cqe.ep; NULL: it is gone. With the lock. */
static inline struct hu_ep *hu_ep_of(const struct hu_ia *ia, uint32_t index)
{
	return index < ia->ep_size ? ia->eps[index] : NULL;
}

/*
 * hu_ep_happened: to its connection. hu_ep_work: the deferred work of an endpoint. hu_ep_part: it
 * is connected no longer, which the program hears of at once, or when nobody copies to memory of it
 * any more. hu_ep_parted: that is so. With the lock.
 */
void hu_ep_happened(struct hu_ep *ep, const struct hd_event *event);
void hu_ep_work(struct hd_deferred *deferred);
void hu_ep_part(struct hu_ep *ep, DAT_EVENT_NUMBER why);
void hu_ep_parted(struct hu_ep *ep);

/*
 * hu_ep_configure: open the engine's endpoint, if all that it needs is known. 0, -errno.
 * hu_ep_unconfigure: close it. With the lock.
 */
int hu_ep_configure(struct hu_ep *ep);
void hu_ep_unconfigure(struct hu_ep *ep);
bool hu_ep_is_configured(const struct hu_ep *ep);

/*
 * hu_marks_arm: have the engine look at the watermarks, after anything that they go by has changed.
 * hu_ep_reaped: a completion of a receive has been read. hu_srq_owned: buffers of the queue that
 * its endpoints have taken, whose completions have not been read. With the lock.
 */
void hu_marks_arm(struct hu_ep *ep);
void hu_ep_reaped_marked(struct hu_ep *ep);
static inline void hu_ep_reaped(struct hu_ep *ep)
{
	if (hu_unlikely(ep->marked))
		hu_ep_reaped_marked(ep);
	else
		ep->reaped++;
}
DAT_COUNT hu_srq_owned(const struct hu_srq *srq);

/* hu_ep_state_error: DAT_INVALID_STATE with the subtype that says in which state it is. */
DAT_RETURN hu_ep_state_error(const struct hu_ep *ep);

/*
 * hu_ep_make_tentative: one that has nothing yet, for a request that has come. NULL:
 * no memory. With the lock.
 */
struct hu_ep *hu_ep_make_tentative(struct hu_ia *ia);

/* hu_ep_is_ud: is it for datagrams? Then it is never connected: ud.h. */
bool hu_ep_is_ud(const struct hu_ep *ep);

/*
 * hu_line_close: the connection goes, whatever it was in. hu_listener_put: one
 * user less. With the lock.
 */
void hu_line_close(struct hu_ep *ep);
void hu_listener_put(struct hu_ia *ia, struct hu_listener *listener);

/*
 * hu_*_drop: what the calls that free an object do when nothing forbids it.
 * With the lock; NULL-safe.
 */
void hu_ep_drop(struct hu_ep *ep);
void hu_sp_drop(struct hu_sp *sp);
void hu_cr_drop(struct hu_cr *cr);
void hu_evd_drop(struct hu_evd *evd);
void hu_srq_drop(struct hu_srq *srq);
void hu_rmr_drop(struct hu_rmr *rmr);

/*
 * hu_region_drop: closes a region however long that takes: its memory is the program's when it
 * comes back. With the lock, which others may have meanwhile.
 */
void hu_region_drop(struct hd_mr *mr);

/*
 * hu_cno_unblock: whoever waits for this CNO, and its agent if `agent`, is told of no EVD
 * (DAT_HANDLE_NULL). With the lock.
 */
void hu_cno_unblock(struct hu_cno *cno, bool agent);

/*
 * Of all CNOs of an IA that is about to close, WITHOUT the lock. hu_cnos_silence: agents are called
 * no more. hu_cnos_drop: they go, when nothing uses them any more.
 */
void hu_cnos_silence(struct hu_ia *ia);
void hu_cnos_drop(struct hu_ia *ia);

/* ---- the table ------------------------------------------------------------------------------- */

#include "front/dat/calls.h"

#endif
