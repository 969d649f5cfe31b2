/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * The verbs front's own objects. Each begins with the public structure that the program holds a
 * pointer to; hv_*_of() gets from one to the other. Names: hv_ibv_open_device() is what
 * ibv_open_device() does for a device of ours; entry.c decides whose it is.
 *
 * Errors are those of the manual pages: pointers come back NULL with errno set, integers as
 * positive errnos, but where a page says otherwise. Threads: every object may be used by any
 * thread; all state is under the lock of the context's node (hv_enter), but what says otherwise.
 */
#ifndef HEDDLE_FRONT_VERBS_FRONT_H
#define HEDDLE_FRONT_VERBS_FRONT_H

#include "engine/engine.h"
#include "front/verbs/import/import.h"
#include "front/verbs/object.h"

#include <errno.h>
#include <infiniband/verbs.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* The public names are macros in the header, for callers; here they are functions. */
#undef ibv_query_port
#undef ibv_get_device_list
#undef ibv_reg_mr
#undef ibv_reg_mr_iova

#define HV_PUBLIC __attribute__((visibility("default")))
#define hv_likely(x) __builtin_expect(!!(x), 1)
#define hv_unlikely(x) __builtin_expect(!!(x), 0)
#define hv_container(ptr, type, member) ((type *)(void *)((char *)(ptr)-offsetof(type, member)))

/* ---- devices and contexts -------------------------------------------------------------------- */

enum hv_device_index {
	HV_INFINIBAND, /* heddle0 */
	HV_ETHERNET,   /* heddle1, RoCE v2 */
	HV_DEVICES
};

struct hv_device {
	struct ibv_device pub;
	void *behind[64]; /* zero: provider libraries look for pointers of their own here */
	enum hv_device_index index;
	const char *name;
};
extern struct hv_device hv_devices[HV_DEVICES];

static inline struct hv_device *hv_device_of(struct ibv_device *device)
{
	return hv_container(device, struct hv_device, pub);
}

/*
 * hv_owns_device, hv_owns: is this device, or are objects with this context, ours? NULL: no. Any
 * thread, no lock, at any time.
 */
static inline bool hv_owns_device(const struct ibv_device *device)
{
	return device == &hv_devices[HV_INFINIBAND].pub || device == &hv_devices[HV_ETHERNET].pub;
}
static inline bool hv_owns(const struct ibv_context *context)
{
	return context && hv_owns_device(context->device);
}

#define HV_GIDS 64 /* at most, of a port */
#define HV_LID_LAST 0xbfff
#define HV_PKEY 0xffff

/* What ibv_query_device(3) says; creating more or longer ones is refused. */
#define HV_MAX_QP (1 << 18)
#define HV_MAX_WR (1 << 15)	/* of a send or receive queue */
#define HV_MAX_SRQ_WR (1 << 16) /* of a shared one */
#define HV_MAX_SGE HD_MAX_IOV
#define HV_MAX_CQE (1 << 20)
#define HV_MAX_OBJECTS (1 << 20) /* regions, windows */
#define HV_MAX_PD (1 << 16)
#define HV_MAX_CQ (1 << 16)
#define HV_MAX_AH (1 << 16)
#define HV_MAX_SRQ (1 << 17)
#define HV_MAX_RD_ATOMIC 128
#define HV_MAX_ATTACHED 4096 /* queue pairs to groups, of a context; each takes descriptors */
#define HV_MAX_MSG (1u << 30)
#define HV_MTU IBV_MTU_4096
#define HV_PORT_SPEED 1000   /* of its 4 lanes of 25 Gb/s together, in 100 Mb/s */
#define HV_MAX_DM (1u << 20) /* bytes of device memory, of all of a context's together */

struct hv_gid {
	union ibv_gid gid;
	uint32_t type; /* enum ibv_gid_type */
	uint32_t ifindex;
	uint16_t mark;	  /* hv_gid_mark */
	bool is_loopback; /* that interface is */
	char interface[16];
};

/*
 * What the port was when its device was opened: addresses do not move under a program, but new ones
 * may come behind the others.
 */
struct hv_port {
	enum ibv_port_state state;
	uint16_t lid; /* heddle0; 0: the port is down */
	/*
	 * heddle0, host byte order. LIDs are host parts of the subnet, which is what `mask` leaves
	 * of `ip`. Both 0: there is no address
	 */
	uint32_t ip, mask;
	__be64 guid;
	atomic_int gid_count;
	struct hv_gid gids[HV_GIDS];
};

struct hv_domain;
struct hv_mr;
struct hv_qp;
struct hv_srq;

#define HV_MR_NEAR 256 /* a power of two */

struct hv_context {
	struct verbs_context pub; /* the program's context is pub.context */
	/* every post and every poll */
	struct hd_node *node;
	void *qps;	  /* qp.c */
	int cancel_state; /* of the thread that has the lock, before hv_enter, while `shielded` */
	bool shielded;	  /* cancel.c; under the lock, as that is */
	/* the rest */
	struct hv_device *device;
	struct hv_port port;
	struct hd_channel *async; /* asynchronous events: struct hv_event */
	/* of any kind: ibv_close_device frees a context only without */
	atomic_int objects;
	atomic_uint counts[HV_KINDS]; /* of each: object.c */
	uint32_t next_handle;
	uint32_t next_pd;
	void *zeros, *waste; /* mr.c: what null regions read and write; NULL: there was none yet */
	struct hv_mr *mr_near[HV_MR_NEAR]; /* those used last, by the low bits of lkey */
	size_t dm_used;			   /* device memory */
	LIST_ENTRY(hv_context) entry;	   /* cancel.c */
	int pins;			   /* cancel.c: who is about to take its lock there */
	int attached;			   /* queue pairs to multicast groups */
	struct hv_domain *domains;	   /* xrc.c */
	uint64_t last_domain;
	struct hv_srq *xrc_srqs;  /* those with numbers: srq.c */
	LIST_HEAD(, hv_far) fars; /* xrc/far.c */
	/* import/: who has opened or imported it, under a lock of that file */
	LIST_ENTRY(hv_context) import_entry;
	int opens;
	LIST_HEAD(, hv_import) imports;
	/* by which other processes are asked, and answered; NULL: not yet */
	struct hd_ep *voice;
	struct hv_secret secret; /* that who asks must know */
	/* the context of another process that this one is imported from; or NULL */
	struct hv_origin *origin;
	LIST_HEAD(, hv_borrower) borrowers; /* contexts of others that have imported regions */
	uint64_t dm_end; /* of cmd_fd: where the next device memory goes; 0: it is no file */
};

/* hv_port_load: what the host's addresses make of a port of this device now. 0, -errno. */
int hv_port_load(const struct hv_device *device, struct hv_port *port);

/* hv_port_cap_flags: port_cap_flags of ibv_query_port(3). */
unsigned hv_port_cap_flags(const struct hv_device *device);

/*
 * hv_port_refresh: GIDs of addresses that heddle1 has got since are added, and IBV_EVENT_GID_CHANGE
 * tells so. Were there any? Without the lock.
 */
bool hv_port_refresh(struct hv_context *ctx);

static inline struct hv_context *hv_context_of(struct ibv_context *context)
{
	return hv_container(context, struct hv_context, pub.context);
}

/*
 * hv_enter: take the node's lock for a call on an object of ours; false, without it, in a child
 * forked after the device was opened, where nothing of ours works: answer EIO then. hv_leave gives
 * it back. In between the thread is not cancelled: calls that post or poll are no points of
 * cancellation, and what they ask of the kernel would be.
 */
/* cancel.c: relaxed, and read under the node's lock, which whoever sets it takes afterwards */
extern atomic_bool hv_shields;
void hv_shield(struct hv_context *ctx);
static inline bool hv_enter(struct hv_context *ctx)
{
	if (!hd_node_enter(ctx->node)) /* no point of cancellation */
		return false;
	ctx->shielded = atomic_load_explicit(&hv_shields, memory_order_relaxed);
	if (__builtin_expect(ctx->shielded, 0))
		hv_shield(ctx);
	return true;
}
static inline void hv_leave(struct hv_context *ctx)
{
	bool shielded = ctx->shielded;
	int before = ctx->cancel_state;

	hd_node_unlock(ctx->node);
	if (__builtin_expect(shielded, 0))
		pthread_setcancelstate(before, NULL);
}

/*
 * hv_aside: what hv_enter has noted of this thread. Around a call of the engine's that may give the
 * lock away meanwhile, where others enter and note theirs: hv_aside before it, and hv_back after
 * it, with what that has returned.
 */
struct hv_aside {
	int cancel_state;
	bool shielded;
};
static inline struct hv_aside hv_aside(const struct hv_context *ctx)
{
	return (struct hv_aside){ ctx->cancel_state, ctx->shielded };
}
static inline void hv_back(struct hv_context *ctx, struct hv_aside mine)
{
	ctx->cancel_state = mine.cancel_state;
	ctx->shielded = mine.shielded;
}

/* hv_fail: sets errno to a positive errno (or a negative one's opposite) and is NULL. */
void *hv_fail(int err);

/*
 * hv_tell: what a function answers that answers error numbers: they stand in errno as well, which
 * programs print. At the boundary only.
 */
static inline int hv_tell(int rc)
{
	if (hv_unlikely(rc > 0))
		errno = rc;
	return rc;
}

/*
 * hv_fill_ops: the functions that programs reach through the context; dead: they answer with
 * errors. hv_fork_ops: those of a forked child: dead, but for what the device is, and its memory.
 * It may be called between fork and exec.
 */
void hv_fill_ops(struct hv_context *ctx, bool dead);
void hv_fork_ops(struct hv_context *ctx);

/* ---- asynchronous events, ibv_get_async_event(3) --------------------------------------------- */

/*
 * hv_event_post: tell the program. element: the QP, CQ, SRQ or port number. acked: where
 * ibv_ack_async_event counts events of this object, with its mutex and condition (NULL for ports
 * and devices). With the lock.
 * hv_event_forget: this object goes: drop what was not read of it, and wait until what was read has
 * been acked. Without the lock.
 */
struct hv_event_target {
	pthread_mutex_t *mutex;
	pthread_cond_t *cond;
	uint32_t *acked;
	uint32_t read; /* events that the program has read; the channel's */
};
void hv_event_post(struct hv_context *ctx, const struct ibv_async_event *event,
		   struct hv_event_target *target);
void hv_events_drop(struct hv_context *ctx); /* all of them: the context goes */
void hv_event_forget(struct hv_context *ctx, struct hv_event_target *target);

/* ---- protection domains, ibv_alloc_pd(3) ----------------------------------------------------- */

struct hv_td {
	struct ibv_td pub;
	int users; /* parent domains */
};

struct hv_pd {
	struct ibv_pd pub;
	uint32_t number;      /* hd_mr_attr.pd, hd_ep_attr.pd: never 0 */
	int users;	      /* regions, windows, queue pairs, … : under the lock */
	struct hv_td *td;     /* of a parent domain; may be NULL */
	struct hv_pd *parent; /* of a parent domain: the one that it stands for; else NULL */
	struct hv_import import;
};

static inline struct hv_pd *hv_pd_of(struct ibv_pd *pd)
{
	return hv_container(pd, struct hv_pd, pub);
}

/* hv_pd_import: one that stands for another process's with this handle; NULL with errno. */
struct ibv_pd *hv_pd_import(struct hv_context *ctx, uint32_t handle);
/* hv_pd_default: one that the program has not asked for, and may never use; NULL with errno. */
struct ibv_pd *hv_pd_default(struct hv_context *ctx);

/*
 * hv_pd_real: the domain whose number counts: that of a parent domain is the one it was made over.
 */
static inline struct hv_pd *hv_pd_real(struct hv_pd *pd)
{
	return pd->parent ? pd->parent : pd;
}

/* ---- memory, ibv_reg_mr(3) ------------------------------------------------------------------- */

struct hv_mr {
	struct ibv_mr pub;
	struct hd_mr *mr;
	bool is_null;	 /* ibv_alloc_null_mr: accesses go nowhere */
	uint32_t access; /* enum ibv_access_flags, without optional ones */
	uint64_t iova;	 /* what programs call its first byte */
	char *memory;	 /* where that is */
	int *users;	 /* of device memory; else NULL */
	struct hv_import import;
	void *map; /* of an imported one: its mapping */
	size_t map_size;
};

static inline struct hv_mr *hv_mr_of(struct ibv_mr *mr)
{
	return hv_container(mr, struct hv_mr, pub);
}

/*
 * hv_local: where a local segment is, for an operation of a queue pair of this domain. write: the
 * operation writes there. *region gets the engine's region of it, NULL of one of length 0, which
 * needs no key. False: a key that is none of this domain's, not this right, out of range: then the
 * operation completes with IBV_WC_LOC_PROT_ERR. hv_sge: the same of several: iov and regions have
 * room for count, *total gets the length in all; 0, or -EACCES. With the lock.
 */
/*
 * hv_mr_is_of: may queue pairs of this domain use it? hv_mr_locate: hv_local, where a segment is in
 * a region that the program has given memory.
 */
static inline bool hv_mr_is_of(const struct hv_mr *mr, const struct hv_pd *pd)
{
	return hv_likely(mr->pub.pd == &pd->pub) || hv_pd_of(mr->pub.pd)->number == pd->number;
}
static inline bool hv_mr_locate(const struct hv_mr *mr, const struct hv_pd *pd, const struct ibv_sge *sge,
				bool write, struct iovec *iov, struct hd_mr **region)
{
	uint64_t at = sge->addr - mr->iova;

	if (hv_unlikely(!hv_mr_is_of(mr, pd) || (write && !(mr->access & IBV_ACCESS_LOCAL_WRITE))))
		return false;
	if (hv_unlikely(at > mr->pub.length || sge->length > mr->pub.length - at))
		return false;
	*iov = (struct iovec){ mr->memory + at, sge->length };
	*region = mr->mr;
	return true;
}
/*
 * hv_local_apart: no segment at all, a null region, or one that was not the last with such a key.
 */
bool hv_local_apart(struct hv_context *ctx, const struct hv_pd *pd, const struct ibv_sge *sge, bool write,
		    struct iovec *iov, struct hd_mr **region);
/*
 * hv_mr_near: the region of a segment that has some length, if it was the last
 * with such a key; else NULL.
 */
static inline const struct hv_mr *hv_mr_near(const struct hv_context *ctx, const struct ibv_sge *sge)
{
	const struct hv_mr *mr = ctx->mr_near[sge->lkey % HV_MR_NEAR];

	return hv_likely(mr && mr->pub.lkey == sge->lkey && sge->length) ? mr : NULL;
}
static inline bool hv_local(struct hv_context *ctx, const struct hv_pd *pd, const struct ibv_sge *sge,
			    bool write, struct iovec *iov, struct hd_mr **region)
{
	const struct hv_mr *mr = hv_mr_near(ctx, sge);

	if (hv_likely(mr != NULL))
		return hv_mr_locate(mr, pd, sge, write, iov, region);
	return hv_local_apart(ctx, pd, sge, write, iov, region);
}

/*
 * hv_local_room: how much of a segment that hv_local has refused is in its region, from its
 * beginning on. With the lock.
 */
uint32_t hv_local_room(struct hv_context *ctx, const struct ibv_sge *sge);
static inline int hv_sge(struct hv_context *ctx, const struct hv_pd *pd, const struct ibv_sge *sge, int count,
			 bool write, struct iovec *iov, struct hd_mr **regions, uint64_t *total)
{
	uint64_t sum = 0;

	if (hv_likely(count == 1)) {
		*total = sge->length;
		return hv_likely(hv_local(ctx, pd, sge, write, iov, regions)) ? 0 : -EACCES;
	}
	for (int i = 0; i < count; i++) {
		if (hv_unlikely(!hv_local(ctx, pd, &sge[i], write, &iov[i], &regions[i])))
			return -EACCES;
		sum += sge[i].length;
	}
	*total = sum;
	return 0;
}

/*
 * hv_region_close, hv_ep_settle: hd_mr_close, hd_ep_settle between hv_enter and hv_leave: they may
 * give the lock away meanwhile, and others enter.
 */
int hv_region_close(struct hv_context *ctx, struct hd_mr *region);
void hv_ep_settle(struct hv_context *ctx, struct hd_ep *ep);

/* hv_engine_access: enum hd_access of enum ibv_access_flags. */
uint32_t hv_engine_access(uint32_t access);

/* hv_null_room_free: the context goes. */
void hv_null_room_free(struct hv_context *ctx);

/* ---- completion queues, ibv_create_cq(3) ----------------------------------------------------- */

struct hv_channel {
	struct ibv_comp_channel pub; /* refcnt: CQs that use it */
	struct hd_channel *channel;
};

static inline struct hv_channel *hv_channel_of(struct ibv_comp_channel *channel)
{
	return hv_container(channel, struct hv_channel, pub);
}

struct hv_cq {
	struct ibv_cq_ex pub; /* begins as struct ibv_cq does */
	struct hv_context *ctx;
	struct hd_cq *cq;
	struct hd_channel_item item; /* in the channel; owner: this */
	uint32_t events_read;	     /* completion events that the program has got: the channel's */
	struct hv_event_target target;
	int users;	      /* queue pairs and the like: under the lock */
	struct hv_pd *parent; /* a parent domain that it was made with; may be NULL */
	uint64_t wc_flags;    /* of ibv_create_cq_ex */
	/* poll.c: between ibv_start_poll and ibv_end_poll */
	pthread_mutex_t polling; /* held there */
	struct ibv_wc wc;
	uint64_t taken, taken_wall; /* when it was first asked, ns of either clock; 0: not yet */
};

static inline struct hv_cq *hv_cq_of(struct ibv_cq *cq)
{
	return hv_container(cq, struct hv_cq, pub);
}
static inline struct hv_cq *hv_cq_of_ex(struct ibv_cq_ex *cq)
{
	return hv_container(cq, struct hv_cq, pub);
}

/* ---- addresses, addr.c ----------------------------------------------------------------------- */

/*
 * hv_addr_resolve: the socket address, with slot, of queue pair number qpn at the other end of this
 * address vector. 0, or -EINVAL: a number that no queue pair has, no LID of the subnet, no GID that
 * holds an address. Needs no lock.
 */
int hv_addr_resolve(const struct hv_context *ctx, const struct ibv_ah_attr *attr, uint32_t qpn,
		    struct sockaddr_storage *out);
/*
 * hv_addr_of_peer: of the other end of a queue pair, which may have any number and any LID of a
 * port that is up: where there can be nobody it is an address at which nobody is. 0, or -EINVAL: no
 * LID, no GID that holds an address.
 */
int hv_addr_of_peer(const struct hv_context *ctx, const struct ibv_ah_attr *attr, uint32_t qpn,
		    struct sockaddr_storage *out);

/*
 * hv_addr_gid, hv_addr_lid: the other way, for what goes into work completions and rdma_cm: the GID
 * of an address as this device's peers have it; its LID, or 0 when it is not in the subnet.
 */
void hv_addr_gid(const struct hv_context *ctx, const struct sockaddr *addr, union ibv_gid *out);
uint16_t hv_addr_lid(const struct hv_context *ctx, const struct sockaddr *addr);

#endif
