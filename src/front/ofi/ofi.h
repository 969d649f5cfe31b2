/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * The libfabric provider `heddle`: what its files share. It translates libfabric's objects,
 * flags and structures to the engine's and back, and checks arguments against the manual
 * pages; it moves no data.
 *
 *	fabric ─┬─ event queues (eq.c)
 *	        └─ domain = one hd_node ─┬─ address vector (av.c): fi_addr_t is an index into an
 *	                                 │  array of hd_dest
 *	                                 ├─ completion queue (cq.c) = hd_cq
 *	                                 ├─ counter (cntr.c) = hd_cntr
 *	                                 ├─ memory region (mr.c) = hd_mr
 *	                                 └─ endpoint (ep.c) = hd_ep from fi_enable on; data calls
 *	                                    in msg.c and tagged.c
 *
 * Threads: libfabric's control calls may come from any thread. A domain with FI_THREAD_DOMAIN and
 * manual progress has a node without a lock; all others take the node's lock. Data calls and
 * fi_cq_read exist twice, with and without it, and an object gets the table that fits when it is
 * enabled or opened, so that the data path has no branch for it.
 */
#ifndef HEDDLE_FRONT_OFI_OFI_H
#define HEDDLE_FRONT_OFI_OFI_H

#include "base/lock.h"
#include "base/sockaddr.h"
#include "engine/engine.h"
#include "front/ofi/newer.h"

#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <rdma/fabric.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_collective.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>
#include <rdma/providers/fi_log.h>
#include <rdma/providers/fi_prov.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#define HD_FI_PROV_NAME "heddle"
#define HD_FI_PROV_VER FI_VERSION(0, 1)
#define HD_FI_FABRIC_NAME "heddle"
#define HD_FI_DOMAIN_NAME "heddle0"

#define HD_FI_INLINE static inline __attribute__((always_inline))
#define hd_fi_rare(x) __builtin_expect(!!(x), 0)

extern struct fi_provider hd_fi_provider;

/* ---- what is offered (offer.c, hints.c, info.c) ---------------------------------------------- */

/* what belongs to messages, to one-sided operations */
#define HD_FI_MODIFIERS (FI_SEND | FI_RECV | FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE)
/* given to everybody who receives, to everybody */
#define HD_FI_SECONDARY (FI_MULTI_RECV | FI_SOURCE | HD_FI_DOMAIN_CAPS)
#define HD_FI_DOMAIN_CAPS (FI_LOCAL_COMM | FI_REMOTE_COMM | FI_SHARED_AV)
/*
 * change what calls cost or do: only for who names them; FI_EXACT_DIRECTED_RECV has
 * the bit of FI_VARIABLE_MSG
 */
#define HD_FI_ON_REQUEST (FI_FENCE | FI_VARIABLE_MSG | FI_SOURCE_ERR | FI_AV_USER_ID | FI_COLLECTIVE)

/* receives that may name their source: sets of these */
enum hd_fi_directed {
	HD_FI_DIRECTED_MSG = 1,
	HD_FI_DIRECTED_TAGGED = 2,
	HD_FI_DIRECTED_EXACT = 4 /* those have to */
};

/*
 * completion levels: the buffer is free (the default), it is at the target
 * endpoint, it is matched there
 */
#define HD_FI_ARRIVED_LEVELS (FI_TRANSMIT_COMPLETE | FI_DELIVERY_COMPLETE)
#define HD_FI_LEVELS (FI_INJECT_COMPLETE | HD_FI_ARRIVED_LEVELS | FI_MATCH_COMPLETE)

#define HD_FI_PROTO (FI_PROV_SPECIFIC | 0x4844u) /* "HD" */
#define HD_FI_MAX_TX_SIZE 65536
#define HD_FI_MAX_RX_SIZE (1u << 24)
#define HD_FI_DEFAULT_SIZE 1024
#define HD_FI_MAX_CTX 256	/* senders, and receivers, of a scalable endpoint */
#define HD_FI_MAX_OBJECTS 65536 /* queues, endpoints, counters that a domain is good for */
#define HD_FI_CQ_DATA_SIZE 8
#define HD_FI_ERR_DATA sizeof(struct sockaddr_in6) /* FI_SOURCE_ERR: an address */
#define HD_FI_MR_KEY_SIZE 8
#define HD_FI_MIN_MULTI_RECV 64
/* msg_prefix_size: nothing of ours goes there, so it is as small as is useful */
#define HD_FI_PREFIX 16
#define HD_FI_TAG_FORMAT UINT64_C(0xaaaaaaaaaaaaaaaa) /* 64 fields of one bit */

/*
 * hd_fi_getinfo answers fi_getinfo(3): a list, allocated with fi_allocinfo(3) and freed by the
 * caller, with one info for each offer (offer.h) that suits. -FI_ENODATA when none does; the reason
 * is logged at level info. Any thread. May resolve names, and then block.
 */
int hd_fi_getinfo(uint32_t version, const char *node, const char *service, uint64_t flags,
		  const struct fi_info *hints, struct fi_info **out);

/* ---- addresses (addr.c) ---------------------------------------------------------------------- */

union hd_fi_addr {
	struct sockaddr sa;
	struct sockaddr_in in;
	struct sockaddr_in6 in6;
};

/*
 * hd_fi_family returns the family that an addr_format stands for (AF_UNSPEC for any), or -1
 * for a format not offered.
 */
int hd_fi_family(uint32_t addr_format);

/*
 * hd_fi_addr_is_any tells whether it is a wildcard address with port 0; hd_fi_addr_is_whole,
 * whether it has an address and a port.
 */
bool hd_fi_addr_is_any(const union hd_fi_addr *addr);
bool hd_fi_addr_is_whole(const union hd_fi_addr *addr);

/*
 * hd_fi_addr_is_local tells whether this host can bind to the address, any
 * port. Makes a socket for it.
 */
bool hd_fi_addr_is_local(const union hd_fi_addr *addr);

/*
 * hd_fi_addr_copy copies size bytes of a program's address. -FI_EINVAL when size or family
 * (AF_UNSPEC: any) do not fit.
 */
int hd_fi_addr_copy(const void *from, size_t size, int family, union hd_fi_addr *out);

/*
 * hd_fi_resolve looks up node and service, of which one may be NULL; a node of the form
 * fi_sockaddr://host:port (FI_ADDR_STR) is understood without a service. passive: without a node
 * the wildcard address, else the loopback. numeric: no name lookup. 0, -FI_EINVAL, or -FI_ENODATA
 * when there is no such address. Blocks for the lookup.
 */
struct hd_fi_lookup {
	const char *node, *service;
	int family;
	bool passive, numeric;
};
int hd_fi_resolve(const struct hd_fi_lookup *what, union hd_fi_addr *out);

/*
 * hd_fi_addr_text writes fi_sockaddr_in://10.0.0.1:4000 as fi_av_straddr(3) wants it, cut to size.
 * Returns the bytes that the whole text needs, its zero included.
 */
size_t hd_fi_addr_text(const void *addr, char *text, size_t size);

/*
 * hd_fi_addr_out copies an address to a program's buffer, cut to *size; *size becomes what it
 * needs. 0 or -FI_ETOOSMALL.
 */
int hd_fi_addr_out(const struct sockaddr *sa, void *out, size_t *size);

/* ---- objects --------------------------------------------------------------------------------- */

/*
 * Handles come from the program: one that is passed to us as an argument is believed only when its
 * magic number is right. It is wiped at close, so that most stale handles are noticed too.
 */
enum hd_fi_magic {
	HD_FI_FABRIC = 0x68660001,
	HD_FI_DOMAIN,
	HD_FI_AV,
	HD_FI_CQ,
	HD_FI_CNTR,
	HD_FI_EQ,
	HD_FI_EP,
	HD_FI_MR,
	HD_FI_WAITSET,
	HD_FI_POLL,
	HD_FI_PEP,
	HD_FI_STX,
	HD_FI_SEP,
	HD_FI_AV_SET,
};

/* In a domain's list, so that a forked child can find every object of it. */
struct hd_fi_object {
	LIST_ENTRY(hd_fi_object) entry;
	struct fid *fid;
};

struct hd_fi_fabric {
	struct fid_fabric fid; /* first in every object: handles are cast */
	uint32_t magic;
	_Atomic int users; /* domains, event queues, wait sets */
	LIST_ENTRY(hd_fi_fabric) entry;
};

struct hd_fi_eq; /* eq.c */
struct hd_fi_av; /* av.h */

/* What reading a completion of an endpoint takes. */
struct hd_fi_reader {
	struct hd_fi_av *av; /* translates sources; NULL: no such endpoint */
	size_t prefix;	     /* bytes that its receives count in front of each message */
	bool source_err;     /* FI_SOURCE_ERR: messages of unknown sources are error entries */
	fi_addr_t key;	     /* FI_AV_AUTH_KEY: of the key that they came with; 0: none */
};

struct hd_fi_domain {
	struct fid_domain fid;
	uint32_t magic;
	bool locked;	/* the node has a lock */
	bool automatic; /* a thread of the node makes progress, too */
	bool mr_events; /* FI_MR_COMPLETE goes to eq */
	bool overruns;	/* FI_RM_DISABLED: CQs are not protected */
	/* that is in use; FI_MR_BASIC as the bits that it stands for, FI_MR_SCALABLE as none */
	int mr_mode;
	size_t key_size; /* bytes of a region's key */
	uint32_t addr_format;
	enum fi_av_type av_type;
	bool av_keys; /* FI_AV_AUTH_KEY: endpoints have the keys of their AV */
	uint64_t key; /* hd_key_digest() of its authorization key; 0: none */
	struct hd_fi_fabric *fabric;
	struct hd_fi_eq *eq;
	struct hd_node *node;
	_Atomic int users;   /* everything opened on it */
	struct hd_lock lock; /* objects */
	LIST_HEAD(, hd_fi_object) objects;
	LIST_HEAD(, hd_fi_triggered) triggered; /* under the node's lock (trigger.c) */
	struct hd_fi_reader *readers;		/* by hd_ep_index; under the node's lock */
	uint32_t reader_count;
	LIST_ENTRY(hd_fi_domain) entry; /* of the process (fabric.c) */
};

/* What a queue or a counter is waited for with; wait.h has the functions. */
struct hd_fi_waiting {
	enum fi_wait_obj obj; /* FI_WAIT_UNSPEC has become FI_WAIT_FD */
	/* to be joined by the object: the program's, or its own; NULL for other kinds */
	struct hd_wset *set;
	struct hd_wake_set *bell; /* of FI_WAIT_MUTEX_COND, or of such a set of the program's */
};

struct hd_fi_cq {
	struct fid_cq fid;
	struct hd_cq *cq;
	struct hd_fi_domain *domain;
	uint32_t magic;
	enum fi_cq_format format;
	enum fi_cq_wait_cond cond;
	struct hd_fi_waiting waiting;
	_Atomic int users; /* endpoints, poll sets */
	bool looks;	   /* endpoints are bound, or have been, with a prefix or FI_SOURCE_ERR */
	/* the last one that was told of without room for him; under the node's lock */
	struct sockaddr_storage stranger;
	struct hd_fi_object object;
};

struct hd_fi_cntr {
	struct fid_cntr fid;
	struct hd_cntr *cntr;
	struct hd_fi_domain *domain;
	uint32_t magic;
	struct hd_fi_waiting waiting;
	_Atomic int users; /* endpoints, regions, poll sets, triggered operations */
	struct hd_fi_object object;
};

struct hd_fi_ep; /* ep.h */

struct hd_fi_mr {
	struct fid_mr fid;
	struct hd_mr *mr;
	struct hd_fi_domain *domain;
	uint32_t magic;
	bool rma_event; /* made with FI_RMA_EVENT */
	bool enabled;	/* peers reach it */
	bool settled;	/* fi_mr_enable was called: nothing more can be bound */
	uint64_t key, base;
	struct hd_fi_cntr *cntrs[2]; /* read, write; NULL: none */
	struct hd_fi_ep *ep;	     /* bound to it, under domain->lock; NULL: to none */
	LIST_ENTRY(hd_fi_mr) of_ep;
};

/* hd_fi_version: of the interface that the program asked for. */
static inline uint32_t hd_fi_version(const struct hd_fi_domain *domain)
{
	return domain->fabric->fid.api_version;
}

static inline bool hd_fi_is(const void *handle, size_t fclass)
{
	return handle && ((const struct fid *)handle)->fclass == fclass;
}

/*
 * hd_fi_as: the object behind a handle (a struct fid or what begins with one), or NULL when it is
 * not one of ours of that class.
 */
#define hd_fi_as(type, kind, class, handle) \
	(hd_fi_is(handle, class) && ((const struct type *)(const void *)(handle))->magic == (kind) \
		 ? (struct type *)(uintptr_t)(const void *)(handle) \
		 : NULL)

static inline void hd_fi_lock(const struct hd_fi_domain *domain)
{
	if (domain->locked)
		hd_node_lock(domain->node);
}

static inline void hd_fi_unlock(const struct hd_fi_domain *domain)
{
	if (domain->locked)
		hd_node_unlock(domain->node);
}

/*
 * hd_fi_domain_add and hd_fi_domain_drop: an object of the domain is opened, is closed; entry
 * may be NULL. Any thread.
 */
void hd_fi_domain_add(struct hd_fi_domain *domain, struct hd_fi_object *object, struct fid *fid);
void hd_fi_domain_drop(struct hd_fi_domain *domain, struct hd_fi_object *object);

/*
 * hd_fi_domain_share: connected endpoints come to a domain that has no lock: it has one from now
 * on, and all of its objects use it. The program is in no other call on the domain: it was opened
 * with FI_THREAD_DOMAIN. hd_fi_cq_share, hd_fi_ep_share_lock: one object's part.
 */
void hd_fi_domain_share(struct hd_fi_domain *domain);
void hd_fi_cq_share(struct fid *fid);
void hd_fi_ep_share_lock(struct fid *fid);

/*
 * hd_fi_domain_set_reader notes how completions of endpoint `index` are read; an av of NULL
 * forgets. 0 or -FI_ENOMEM. Caller holds the node's lock.
 */
int hd_fi_domain_set_reader(struct hd_fi_domain *domain, uint32_t index, struct hd_fi_reader reader);

/* ---- opening: one call per kind, in the file of its name, as the fi_ call's page has it ---- */

int hd_fi_fabric_open(struct fi_fabric_attr *attr, struct fid_fabric **out, void *context);
int hd_fi_domain_open(struct fid_fabric *fabric, struct fi_info *info, struct fid_domain **out,
		      void *context);
int hd_fi_av_open(struct fid_domain *domain, struct fi_av_attr *attr, struct fid_av **out, void *context);
int hd_fi_cq_open(struct fid_domain *domain, struct fi_cq_attr *attr, struct fid_cq **out, void *context);
int hd_fi_cntr_open(struct fid_domain *domain, struct fi_cntr_attr *attr, struct fid_cntr **out,
		    void *context);
int hd_fi_eq_open(struct fid_fabric *fabric, struct fi_eq_attr *attr, struct fid_eq **out, void *context);
int hd_fi_ep_open(struct fid_domain *domain, struct fi_info *info, struct fid_ep **out, void *context);
int hd_fi_poll_open(struct fid_domain *domain, struct fi_poll_attr *attr, struct fid_poll **out);

/*
 * hd_fi_opened finds what this process has open, for fi_getinfo: the first fabric, the first
 * domain, or NULL. Any thread.
 */
struct fid_fabric *hd_fi_opened_fabric(void);
struct fid_domain *hd_fi_opened_domain(void);
void hd_fi_domain_list(struct hd_fi_domain *domain, bool listed);

/*
 * hd_fi_cq_look: from now on the readers of endpoints are looked at for each
 * entry when this CQ is read.
 */
void hd_fi_cq_look(struct hd_fi_cq *cq);

/* What fi_trywait(3) does for one CQ or counter: 0, -FI_EAGAIN. */
int hd_fi_cq_trywait(struct fid *fid);
int hd_fi_cntr_trywait(struct fid *fid);
int hd_fi_eq_trywait(struct fid *fid);

/*
 * hd_fi_eq_post writes an event for a program to read; hd_fi_eq_use counts its users. Any thread.
 */
int hd_fi_eq_post(struct hd_fi_eq *eq, uint32_t event, const void *data, size_t len);
void hd_fi_eq_use(struct hd_fi_eq *eq, int delta);

/*
 * hd_fi_eq_fail writes an error entry: what failed on behalf of fid, with the context and data of
 * its page. err: a positive errno.
 */
int hd_fi_eq_fail(struct hd_fi_eq *eq, struct fid *fid, void *context, uint64_t data, int err);
struct hd_evq *hd_fi_eq_evq(struct hd_fi_eq *eq); /* NULL for NULL */
struct hd_fi_eq *hd_fi_eq_as(struct fid *fid, const struct hd_fi_fabric *fabric);

extern struct fi_ops_mr hd_fi_mr_ops; /* mr.c */
int hd_fi_mr_map_raw(const struct fi_mr_map_raw *map);
/* regions that are bound to a closing endpoint forget it */
void hd_fi_mr_drop_ep(struct hd_fi_ep *ep);

/* ---- errors (errors.c) ----------------------------------------------------------------------- */

/*
 * hd_fi_errno: the fabric errno for a positive errno of the engine's completions. hd_fi_ret: the
 * same for negative results.
 */
int hd_fi_errno(int err);
#define hd_fi_ret(result, ...) hd_fi_ret_at((result), __func__, __LINE__, "" __VA_ARGS__)
int hd_fi_ret_at(int result, const char *where, int line, const char *why);

/*
 * hd_fi_no(FI_EINVAL) is -FI_EINVAL: every answer of a call that is refused is made by it, and so
 * has a line in the log at level debug that tells where, hd_fi_ret those that the engine refuses.
 * Not for what comes of itself: -FI_EAGAIN, a buffer to be made larger, no such offer.
 * hd_fi_no(FI_EINVAL, "why") says why as well: which call, and what about it; hd_fi_ret takes such
 * words, too. Only what its errno says by itself, -FI_ENOMEM, needs none.
 */
#define hd_fi_no(err, ...) (hd_fi_refused((err), __func__, __LINE__, "" __VA_ARGS__), -(err))
void hd_fi_refused(int err, const char *where, int line, const char *why) __attribute__((cold));

/*
 * hd_fi_strerror describes a prov_errno, as fi_cq_strerror(3): written to buf when there is one;
 * static text is returned.
 */
const char *hd_fi_strerror(int prov_errno, char *buf, size_t len);

/* ---- tables (msg.c, tagged.c, prefix.c, rma.c, atomic.c; stubs.h has those that refuse) ------ */

extern struct fi_ops_msg hd_fi_msg_ops[2];	 /* [locked] */
extern struct fi_ops_tagged hd_fi_tagged_ops[2]; /* [locked] */
extern struct fi_ops_msg hd_fi_prefix_msg_ops;	 /* where FI_MSG_PREFIX is set */
extern struct fi_ops_tagged hd_fi_prefix_tagged_ops;
extern struct fi_ops_rma hd_fi_rma_ops[2];    /* [locked] */
extern struct fi_ops_atomic hd_fi_atomic_ops; /* looks for itself what the endpoint may */
int hd_fi_query_atomic(struct fid_domain *domain, enum fi_datatype datatype, enum fi_op op,
		       struct fi_atomic_attr *attr, uint64_t flags);

#endif
