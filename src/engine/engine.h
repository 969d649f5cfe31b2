/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * The engine as the fronts see it. A front translates arguments, checks them against its manual pages, and calls; it has no
 * queue, timer or loop of its own.
 *
 * Threads: a node is opened with or without a lock. Unless a function says otherwise its caller holds the node's lock
 * (hd_node_lock, which does nothing for a node without one; such a node belongs to one thread at a time).
 *
 * Errors: negative errno is fatal and forwarded; positive is a documented result. Nothing blocks but hd_cq_wait, hd_cntr_wait,
 * hd_wset_wait, hd_node_sleep.
 *
 * Ownership: every object belongs to the front that opened it, and is closed by it, users before used: closing something in
 * use answers -EBUSY and frees nothing.
 */
#ifndef HD_ENGINE_ENGINE_H
#define HD_ENGINE_ENGINE_H

#include "engine/wire.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <sys/uio.h>

struct hd_node;
struct hd_ep;
struct hd_rq;
struct hd_txq;
struct hd_cq;
struct hd_cntr;
struct hd_dest;
struct hd_mr;
struct hd_evq;
struct hd_service;
struct hd_request;
struct hd_wset;
struct hd_channel;
struct hd_group;

/* ---- node ---------------------------------------------------------------------------------------------------------------- */

struct hd_node_attr {
	const char *front;  /* "libfabric", "verbs", "dat": shown by `heddle info` */
	bool locked;	    /* several threads may use it; always so with auto_progress and serve */
	bool auto_progress; /* a thread of the node makes progress while the program does not */
	bool serve; /* the same, as soon as a region is there that others may reach, or a queue pair */
	void (*on_fork)(
		void *arg); /* in a forked child, where the node is dead: swap your tables. Async-signal rules apply */
	void *arg;
};

/* hd_node_open: 0 and *out, or -ENOMEM, -EMFILE, … . Takes no lock. */
int hd_node_open(const struct hd_node_attr *attr, struct hd_node **out);

/* hd_node_retire: its queue pairs fail, and nobody reaches its regions any more; all of them stay to be closed. */
void hd_node_retire(struct hd_node *node);

/* hd_node_close: closes links and frees the node. -EBUSY while endpoints, queues or regions stand. Takes the lock itself. */
int hd_node_close(struct hd_node *node);

/*
 * hd_node_share: a node that was opened without a lock has one from now on. Nobody else may be in a call on the node, nor in hd_cq_wait or
 * hd_cntr_wait.
 */
void hd_node_share(struct hd_node *node);
void hd_node_lock(struct hd_node *node);
void hd_node_unlock(struct hd_node *node);

/* hd_node_enter: hd_node_lock, unless the node is dead (hd_node_dead): then false, without the lock. */
bool hd_node_enter(struct hd_node *node);

/* hd_node_poll: one turn of progress for everything of the node; returns the number of packets and events handled. */
int hd_node_poll(struct hd_node *node);

/* hd_node_signal: wake every thread that waits in this node, once. Any thread, no lock needed. */
void hd_node_signal(struct hd_node *node);

/* hd_node_address: the i-th address that wildcard endpoints are reachable at, best first; false beyond the last. Port 0. */
bool hd_node_address(const struct hd_node *node, int i, struct sockaddr_storage *out);

/*
 * hd_own_addresses: the addresses that nodes would have, in the order of hd_node_address, up to max of them: how many, or -errno. Any
 * thread, no lock.
 */
struct hd_own_address {
	struct sockaddr_storage addr; /* port 0 */
	int bits;		      /* of its subnet's prefix */
	unsigned ifindex;
	char interface[16];
};
int hd_own_addresses(struct hd_own_address *out, int max);

/*
 * hd_node_dead: true in a child forked from the process that opened the node: calls on it fail with -ENOTRECOVERABLE, closing works.
 * Takes no lock.
 */
bool hd_node_dead(const struct hd_node *node);

/* ---- limits -------------------------------------------------------------------------------------------------------------- */

#define HD_MAX_IOV 16	   /* segments of a send or receive */
#define HD_MAX_INJECT 4096 /* bytes that HD_SEND_INJECT takes */
#define HD_MAX_MSG (UINT64_C(1) << 40)
#define HD_MAX_VARIABLE INT64_MAX /* bytes of a message between HD_EP_VARIABLE endpoints */
#define HD_MAX_DGRAM (16u << 10)  /* bytes that HD_EP_DROP endpoints send */

/* ---- chores --------------------------------------------------------------------------------------------------------------- */

/*
 * Something to be done when a turn of progress is over, because it was found out in the middle of the engine, where nothing may be posted.
 * Memory of the front, zero to begin with. hd_chore_post: fn is called once, with the node's lock, and may post, close, connect, but not wait;
 * once is enough until then. hd_chore_drop: not any more. Both with the lock.
 */
struct hd_chore {
	void (*fn)(struct hd_chore *chore);
	TAILQ_ENTRY(hd_chore) entry;
	bool posted;
};
void hd_chore_post(struct hd_node *node, struct hd_chore *chore);
void hd_chore_drop(struct hd_node *node, struct hd_chore *chore);

/*
 * An errand: something to be done in a node by whoever does not hold its lock. Memory of the front until fn is called, once, with the node's
 * lock; it may do what is allowed out of the middle of the engine, and no more. hd_errand_send: any thread, with or without the lock of
 * another node. The node is there until then: hd_node_close does what has not been done.
 */
struct hd_errand {
	void (*fn)(struct hd_errand *errand);
	struct hd_errand *next; /* the engine's */
};
void hd_errand_send(struct hd_node *node, struct hd_errand *errand);

/* ---- completions --------------------------------------------------------------------------------------------------------- */

enum hd_cqe_flag {
	HD_C_SEND = 1 << 0,
	HD_C_RECV = 1 << 1,
	HD_C_MSG = 1 << 2, /* untagged message */
	HD_C_TAGGED = 1 << 3,
	HD_C_IMM = 1 << 4,	  /* imm is valid */
	HD_C_MULTI_RECV = 1 << 5, /* this entry releases a multi-receive buffer */
	HD_C_SOLICITED = 1 << 6,
	HD_C_CLAIM = 1 << 7,
	HD_C_MORE = 1 << 8,
	HD_C_RMA = 1 << 9,
	HD_C_READ = 1 << 10,
	HD_C_WRITE = 1 << 11,
	HD_C_ATOMIC = 1 << 12,
	HD_C_REMOTE = 1 << 13, /* what READ and WRITE name was done to our memory, by another */
	HD_C_LOCAL = 1 << 14,  /* nobody else had to do with it: hd_window_bind */
	HD_C_CAST = 1 << 15,   /* to a group, or from one */
};

/* One completion: written once into the ring of its CQ and translated from there by the front. One cache line. */
struct hd_cqe {
	void *ctx;
	void *buf;    /* receives: where the data begins (multi-receive, peek) */
	uint64_t len; /* receives: bytes received; peek: of the whole message */
	uint64_t tag;
	uint64_t imm;
	uint64_t olen;	/* errors: bytes that did not fit */
	uint32_t src;	/* receives: hd_dest_id() of the sender, 0 when it has no name here */
	uint32_t ep;	/* hd_ep_index() of the endpoint that it happened on */
	uint32_t flags; /* enum hd_cqe_flag */
	int32_t err;	/* 0, or a positive errno: EMSGSIZE truncated, ECANCELED, ENOMSG, ECONNRESET, … */
};
static_assert(sizeof(struct hd_cqe) == 64, "a completion is one cache line");

struct hd_cq_attr {
	uint32_t size; /* entries wanted, rounded up to a power of two */
	bool waitable; /* hd_cq_fd, hd_cq_wait and hd_cq_arm will be used */
	bool overruns; /* nobody protects it: a completion that finds it full is lost, and so are all after it */
	void (*on_overrun)(void *arg); /* called when that happens, once, with the lock; may be NULL */
	bool forgets; /* a completion that finds it full is lost, and nothing else happens; `overruns` does not count then */
	void *arg;
	/* Where hd_cq_notify tells of completions, and the item that stands for this CQ there, of the front; may be NULL. */
	struct hd_channel *channel;
	struct hd_channel_item *item;
	/* Is anybody to be told of this completion? hd_cq_notify and hd_cq_wait_told pass over others; called with the lock. NULL: of all. */
	bool (*tells)(void *arg, const struct hd_cqe *e);
};

int hd_cq_open(struct hd_node *node, const struct hd_cq_attr *attr, struct hd_cq **out);
int hd_cq_close(struct hd_cq *cq); /* -EBUSY while bound */

/*
 * hd_cq_peek: the oldest completion, or NULL; stays valid until hd_cq_pop, which removes it. Neither makes progress. When more
 * completions come than the ring takes, the rest waits in memory, and sends and receives answer -EAGAIN until it is read. A CQ that may be
 * overrun (hd_cq_attr.overruns) does neither; once it was, and what it had has been read, it gives an error entry of EOVERFLOW for ever.
 */
struct hd_cq_ring { /* first member of struct hd_cq, so that reading is inline */
	struct hd_cqe *ring;
	uint32_t mask;
	uint32_t head;	 /* next to read; under the node's lock */
	uint32_t tail;	 /* next to write; under the node's lock */
	bool armed;	 /* somebody sleeps on it */
	bool overflowed; /* entries wait beside the ring */
};
static inline const struct hd_cqe *hd_cq_peek(const struct hd_cq *cq)
{
	const struct hd_cq_ring *r = (const struct hd_cq_ring *)cq;
	return r->head == r->tail ? NULL : &r->ring[r->head & r->mask];
}
void hd_cq_refill(struct hd_cq *cq); /* internal to hd_cq_pop */
static inline void hd_cq_pop(struct hd_cq *cq)
{
	struct hd_cq_ring *r = (struct hd_cq_ring *)cq;
	r->head++;
	if (r->overflowed)
		hd_cq_refill(cq);
}

/*
 * hd_cq_poll: the oldest completion after making progress if there was none. The usual way to read:
 *	while (n < count && (e = hd_cq_poll(cq))) { translate(e); hd_cq_pop(cq); n++; }
 * (progress is made at most when the queue is empty, so a full queue is read at memory speed.)
 */
const struct hd_cqe *hd_cq_poll(struct hd_cq *cq);

/* hd_cq_post: write a completion of the front's own. hd_cq_drop: take away what endpoint `ep` (its index) has completed and nobody has read. */
void hd_cq_post(struct hd_cq *cq, const struct hd_cqe *e);
void hd_cq_drop(struct hd_cq *cq, uint32_t ep);
bool hd_cq_has(const struct hd_cq *cq, uint32_t ep); /* is there any of those? */

/*
 * hd_cq_wait: sleep until the CQ has an entry, it is signalled, or timeout_ms (negative: none) has passed. Called WITHOUT the lock;
 * 0: look; -EAGAIN: time-out; -ECANCELED: hd_cq_signal was called. Makes progress, really sleeps.
 * hd_cq_wait_for: the same until it has so many entries, is full, or has one that is an error.
 * hd_cq_wait_told: until it has so many entries or is full, and of those that came while we waited somebody is to be told (hd_cq_attr.tells);
 * what has so many to begin with is not waited for. One thread at a time.
 * hd_cq_signal: wake the waiters once. Any thread, no lock.
 * hd_cq_fd: a descriptor that polls readable when there may be something to do, valid until close.
 * hd_cq_arm: about to wait on the descriptor (fi_trywait): 0 armed, -EAGAIN there is something to read or do first.
 */
int hd_cq_wait(struct hd_cq *cq, int timeout_ms);
int hd_cq_wait_for(struct hd_cq *cq, uint64_t entries, int timeout_ms);
int hd_cq_wait_told(struct hd_cq *cq, uint64_t entries, int timeout_ms);
void hd_cq_signal(struct hd_cq *cq);
int hd_cq_fd(struct hd_cq *cq);
int hd_cq_arm(struct hd_cq *cq);

/*
 * hd_cq_notify: the next completion from now on puts the CQ's item into its channel, once; solicited: the next that is HD_C_SOLICITED or
 * an error. Asked for both, any will do. The node's thread sees to it that it gets there if the program makes no progress.
 * hd_cq_notify_unread: so does, at once, one that has come since the last event and has not been read yet: cards compare what they have written
 * with what has been read, and there are programs that do not look once more before they sleep.
 * hd_cq_moderate: from then on it gets there with so many such completions, or when so many microseconds have passed since the first of
 * them, or with an error; at once where either is 0, as at first.
 * hd_cq_set_channel: tell another channel by another item, or none, from now on; what is asked for is forgotten.
 * hd_cq_count: entries that wait to be read. hd_cq_resize: room for so many entries. -EINVAL: more are in it; -ENOMEM; -EOVERFLOW: it has been
 * overrun. hd_cq_room: how many it takes.
 */
void hd_cq_notify(struct hd_cq *cq, bool solicited);
void hd_cq_notify_unread(struct hd_cq *cq, bool solicited);
void hd_cq_moderate(struct hd_cq *cq, uint32_t count, uint32_t us);
void hd_cq_set_channel(struct hd_cq *cq, struct hd_channel *channel, struct hd_channel_item *item);
uint32_t hd_cq_count(const struct hd_cq *cq);
int hd_cq_resize(struct hd_cq *cq, uint32_t size);
uint32_t hd_cq_room(const struct hd_cq *cq);

/* ---- channels ------------------------------------------------------------------------------------------------------------ */

/*
 * A channel tells a program by a descriptor that something has happened: an eventfd that holds one count for each item that waits in it,
 * so that it polls readable exactly while there is something to take, and may be set non-blocking by the program. An item is part of an
 * object of the front (or of a CQ's owner: hd_cq_notify), and may wait several times. A channel has a lock of its own (a leaf).
 *
 * hd_channel_open: a channel of this node; 0 and *out, -ENOMEM, -EMFILE. hd_channel_close: nobody may use it any more.
 * hd_channel_fd: the descriptor, the same until close.
 * hd_channel_post: the item waits once more, behind the others. Any thread, with or without the node's lock.
 * hd_channel_take: the oldest; -EAGAIN: none. *item->taken counts what was taken. Likewise.
 * hd_channel_forget: items with this counter wait no more; drop() is called for each, when it is gone and no lock of ours is held; may be
 * NULL. Returns the counter. Likewise.
 * hd_channel_wait: sleep until there is one, and make progress in the node meanwhile. 0; -EAGAIN: there is none and the program has set the
 * descriptor non-blocking; -EINTR: a signal handler ran that is not to restart calls; -ENOTRECOVERABLE. A point of cancellation. Called
 * WITHOUT the lock. hd_channel_wait_for: the same for at most so long (negative: no end); -ETIMEDOUT. hd_channel_sleep: the same as
 * hd_channel_wait, but leaves progress to the node's thread: for what comes seldom, if ever.
 */
struct hd_channel_item {
	TAILQ_ENTRY(hd_channel_item) entry;
	void *owner;
	uint32_t *taken;  /* of the object that it is about; changed under the channel's lock alone */
	uint32_t waiting; /* how often it is in the channel */
};
int hd_channel_open(struct hd_node *node, struct hd_channel **out);
void hd_channel_close(struct hd_channel *channel);
int hd_channel_fd(const struct hd_channel *channel);
void hd_channel_post(struct hd_channel *channel, struct hd_channel_item *item);
int hd_channel_take(struct hd_channel *channel, struct hd_channel_item **out);
uint32_t hd_channel_forget(struct hd_channel *channel, const uint32_t *taken,
			   void (*drop)(struct hd_channel_item *item));
int hd_channel_wait(struct hd_channel *channel);
int hd_channel_wait_for(struct hd_channel *channel, int timeout_ms);
int hd_channel_sleep(struct hd_channel *channel);

/*
 * hd_node_sleep: poll(2) of descriptors of any kind, with progress in the node meanwhile, which makes those of its channels and of event queues
 * readable: returns how many are ready (0: timeout_ms is over; negative: no end), -EINTR, as hd_channel_wait or with any signal,
 * -ENOTRECOVERABLE. fds has room for one more than count at its end, for our use. WITHOUT the lock; a point of cancellation.
 * hd_channel_tend: whoever waits for this channel sleeps there from now on (or by false: polls its descriptor), so the node's thread need not
 * be called for it. With the lock.
 */
struct pollfd;
int hd_node_sleep(struct hd_node *node, struct pollfd *fds, unsigned long count, int timeout_ms,
		  bool any_signal);
void hd_channel_tend(struct hd_channel *channel, bool on);

/*
 * A herald: a thread that waits at a channel and calls call(arg), without any lock, as long as there is something in it: that takes it.
 * hd_herald_open: 0 and *out, -ENOMEM, -EAGAIN. hd_herald_close: call is not called any more, and has returned, unless it is what closes
 * the herald. Before hd_channel_close; both WITHOUT the node's lock.
 */
struct hd_herald;
int hd_herald_open(struct hd_channel *channel, void (*call)(void *arg), void *arg, struct hd_herald **out);
void hd_herald_close(struct hd_herald *herald);

/* ---- counters ------------------------------------------------------------------------------------------------------------ */

/* Values may be read without the lock (relaxed atomics); wait as hd_cq_wait: -ETIMEDOUT, or -EIO once the error value moved. */
int hd_cntr_open(struct hd_node *node, struct hd_cntr **out);
int hd_cntr_close(struct hd_cntr *cntr);
uint64_t hd_cntr_read(struct hd_cntr *cntr);
uint64_t hd_cntr_readerr(struct hd_cntr *cntr);
void hd_cntr_add(struct hd_cntr *cntr, uint64_t n);
void hd_cntr_adderr(struct hd_cntr *cntr, uint64_t n);
void hd_cntr_set(struct hd_cntr *cntr, uint64_t v);
void hd_cntr_seterr(struct hd_cntr *cntr, uint64_t v);
int hd_cntr_wait(struct hd_cntr *cntr, uint64_t threshold, int timeout_ms);
int hd_cntr_fd(struct hd_cntr *cntr); /* made with the first call; -EMFILE */

/*
 * hd_cntr_arm: as hd_cq_arm; -EAGAIN also when a value has changed since the last hd_cntr_poll or hd_cntr_arm.
 * hd_cntr_poll: the program is about to read both values: makes progress.
 */
int hd_cntr_arm(struct hd_cntr *cntr);
void hd_cntr_poll(struct hd_cntr *cntr);

/*
 * hd_cntr_add and the others above are the program's own doing. hd_cntr_event, hd_cntr_event_set and hd_cntr_event_error change a
 * counter because something has happened. hd_cntr_events: a sum that moves with everything that happens, errors as well, and with
 * nothing that the program does itself.
 */
void hd_cntr_event(struct hd_cntr *cntr, uint64_t n);
void hd_cntr_event_set(struct hd_cntr *cntr, uint64_t v);
void hd_cntr_event_error(struct hd_cntr *cntr);
uint64_t hd_cntr_events(struct hd_cntr *cntr);

/*
 * A trigger: something to be done when a counter reaches a threshold. The front's, in memory of the front; in use from
 * hd_cntr_trigger until fire returns 0, or hd_trigger_cancel. fire is called with the node's lock held, from the top of progress or of
 * a call that changes the counter, those of one counter in the order of their thresholds, equal ones in the order of hd_cntr_trigger.
 * It may post, and do what the engine allows under the lock, but not wait; it returns 0, and the trigger may be gone by then, or
 * -EAGAIN: there was no room, call again.
 */
struct hd_trigger {
	uint64_t threshold;
	bool with_errors; /* the threshold is one of both values together */
	int (*fire)(struct hd_trigger *t);
	/* the engine's */
	struct hd_cntr *cntr; /* NULL: not in use */
	TAILQ_ENTRY(hd_trigger) entry;
};

/*
 * hd_cntr_trigger: puts it in place; fires it before it returns when the threshold is reached already. A counter with triggers is in
 * use, so that hd_cntr_close answers -EBUSY. hd_trigger_cancel: takes one away that is in use.
 */
void hd_cntr_trigger(struct hd_cntr *cntr, struct hd_trigger *t);
void hd_trigger_cancel(struct hd_trigger *t);

/* ---- wait sets ----------------------------------------------------------------------------------------------------------- */

/*
 * CQs and counters of any nodes, and descriptors that poll readable when there is something to read, slept on together. A set
 * belongs to no node and has a lock of its own: all these are called WITHOUT a node's lock, from any thread.
 *
 * hd_wset_open: 0 and *out, -ENOMEM, -EMFILE. hd_wset_close: -EBUSY while it has members or sleepers. hd_wset_used: has it members?
 * hd_cq_join, hd_cntr_join, hd_evq_join: once in the life of the object, before the program has it; *_leave: before it is closed. Threads that
 * sleep on the set meanwhile take notice.
 * hd_wset_wait: as hd_cq_wait: 0: a CQ has an entry, a counter has changed since hd_cntr_poll, or a descriptor is readable.
 * hd_wset_signal: wake its waiters once; hd_cq_signal on a member does the same.
 * hd_wset_fd, hd_wset_arm: as hd_cq_fd and hd_cq_arm.
 */
int hd_wset_open(struct hd_wset **out);
int hd_wset_close(struct hd_wset *set);
bool hd_wset_used(struct hd_wset *set);
int hd_wset_add_fd(struct hd_wset *set, int fd);
void hd_wset_remove_fd(struct hd_wset *set, int fd);
int hd_cq_join(struct hd_cq *cq, struct hd_wset *set);
void hd_cq_leave(struct hd_cq *cq);
int hd_cntr_join(struct hd_cntr *cntr, struct hd_wset *set);
void hd_cntr_leave(struct hd_cntr *cntr);
int hd_evq_join(struct hd_evq *evq, struct hd_wset *set);
void hd_evq_leave(struct hd_evq *evq, struct hd_wset *set);
int hd_wset_wait(struct hd_wset *set, int timeout_ms);
void hd_wset_signal(struct hd_wset *set);
int hd_wset_fd(const struct hd_wset *set);
int hd_wset_arm(struct hd_wset *set);

/*
 * A bell: a mutex and a condition variable that are signalled for a wait set, by a thread of its own. Its members' nodes need a lock.
 * hd_bell_open: 0 and *out, -ENOMEM, -EAGAIN. hd_bell_close: before the set is. hd_bell_get: both belong to the bell.
 * hd_bell_arm: about to wait for the condition, with the mutex held: as hd_cq_arm; rings once after an answer of 0.
 */
struct hd_bell;
int hd_bell_open(struct hd_wset *set, struct hd_bell **out);
void hd_bell_close(struct hd_bell *bell);
void hd_bell_get(struct hd_bell *bell, pthread_mutex_t **mutex, pthread_cond_t **cond);
int hd_bell_arm(struct hd_bell *bell);

/* ---- destinations -------------------------------------------------------------------------------------------------------- */

/*
 * hd_dest_get: the destination named by a socket address (AF_INET or AF_INET6), made or referenced; nothing is sent yet.
 * -EINVAL for another family, a port of 0 or a wildcard address. hd_dest_put gives the reference back.
 * hd_dest_get_keyed: the endpoint there that has this authorization key; 0: that has none, as hd_dest_get.
 * hd_dest_id: a small dense number, the same for the life of the destination, as in hd_cqe.src; never 0.
 *
 * Endpoints that share a port differ in the slot of their names (hd_ep_attr.beside). hd_name_set_slot writes one, below 65536, into a
 * socket address, where the kernel looks past it; hd_name_slot reads it: 0 where none was written. The port must be there already.
 */
void hd_name_set_slot(struct sockaddr *name, uint32_t slot);
uint32_t hd_name_slot(const struct sockaddr *name);

int hd_dest_get(struct hd_node *node, const struct sockaddr *name, struct hd_dest **out);
int hd_dest_get_keyed(struct hd_node *node, const struct sockaddr *name, uint64_t key, struct hd_dest **out);
void hd_dest_put(struct hd_dest *dest);
uint32_t hd_dest_id(const struct hd_dest *dest);

/* hd_source_name: a name of this family (AF_UNSPEC: any) by which the sender that hd_cqe.src tells of can be called. -ENOENT. */
int hd_source_name(struct hd_node *node, uint32_t src, int family, struct sockaddr_storage *out);

/*
 * hd_dest_follow: fn is called with 0 when the destination is bound to an endpoint, with a negative errno when it cannot be, or is no
 * longer: that endpoint has closed, or its node is gone. It is the front's memory, and the destination is referenced, until hd_dest_unfollow,
 * which fn may call for itself. fn has the node's lock, out of the middle of the engine: it may post nothing (see «Chores»).
 */
struct hd_follow {
	void (*fn)(struct hd_follow *follow, int err);
	LIST_ENTRY(hd_follow) entry; /* the engine's */
};
void hd_dest_follow(struct hd_dest *dest, struct hd_follow *follow);
void hd_dest_unfollow(struct hd_dest *dest, struct hd_follow *follow);

/* ---- authorization keys -------------------------------------------------------------------------------------------------- */

/*
 * Only endpoints with a key in common exchange anything, and those without a key only among themselves: what is sent to an endpoint
 * without the key completes with EACCES. The engine knows keys by their digests, which also travel.
 *
 * hd_key_digest: what stands for a key; never 0. Any thread, no lock.
 * hd_key_sources: what stands for all endpoints with this key in hd_recv_args.src, at endpoints with HD_EP_BY_KEY; the node's, valid until
 * it closes. NULL: no memory.
 * hd_ep_faces, hd_ep_face_at: an endpoint with several keys has so many endpoints of the engine behind it, one for each key, the first of
 * which is itself. Completions name their indexes.
 */
uint64_t hd_key_digest(const void *key, size_t size);
const struct hd_dest *hd_key_sources(struct hd_node *node, uint64_t key);
uint32_t hd_ep_faces(const struct hd_ep *ep);
struct hd_ep *hd_ep_face_at(struct hd_ep *ep, uint32_t i);

/* ---- endpoints ----------------------------------------------------------------------------------------------------------- */

enum hd_ep_type {
	HD_EP_RDM = 1, /* connectionless, reliable, in order between each two endpoints */
	HD_EP_MSG,     /* connected to one other, reliable, in order: see «Connections» */
	HD_EP_DGRAM,   /* connectionless, unreliable: HD_EP_DROP goes with it */
};

enum hd_ep_policy { /* what the fronts differ in; see docs/architecture.md for those that later fronts add */
	HD_EP_DIRECTED = 1 << 0, /* receives may name their source */
	HD_EP_FENCE = 1 << 1,	 /* operations may be fenced: all of them carry HD_SEND_GATED */
	HD_EP_DROP = 1 << 2,	 /* unreliable: see «Unreliable endpoints» in docs/architecture.md */
	HD_EP_BUFFERED = 1 << 3, /* messages are handed over in the engine's memory: «Buffered receives» */
	HD_EP_VARIABLE = 1 << 4, /* messages may be longer than HD_MAX_MSG */
	HD_EP_REMOTE_READ = 1 << 8,  /* others may read through it what regions allow */
	HD_EP_REMOTE_WRITE = 1 << 9, /* the same for writing */
	HD_EP_SAW = 1 << 10,	     /* its messages do not overtake its writes */
	HD_EP_WAS = 1 << 12,	     /* its one-sided operations do not overtake its messages */
	HD_EP_IMM_RECV = 1 << 11,    /* a write with immediate data consumes one of its receives */
	HD_EP_BY_KEY = 1 << 5, /* with HD_EP_DIRECTED: receives may name a key instead, hd_key_sources */
	HD_EP_TX_ORDERED =
		1 << 13, /* what it sends to one endpoint completes in order: all carries HD_SEND_ORDERED */
	HD_EP_NAMELESS =
		1 << 16, /* nobody can call it: it only sends, or posts receives for others of its queue */
	HD_EP_OWN_PORT =
		1
		<< 18, /* its name is a port, even where descriptors are short: others will stand beside it */
	HD_EP_RX_SELECTIVE =
		1 << 17, /* receives without HD_RECV_COMPLETE complete silently; see HD_RECV_SHARED */
	/* queue pairs: see «Queue pairs» below */
	HD_EP_NUMBERED = 1 << 20, /* it shares ports with others, and its name fits 24 bits: hd_ep_number */
	HD_EP_PAIRED = 1 << 21,	  /* talks with one other endpoint: hd_ep_pair; with HD_EP_DROP unreliably */
	HD_EP_STRICT = 1 << 22,	  /* an error of either end's doing fails the endpoint: hd_ep_fail */
	HD_EP_REMOTE_ATOMIC = 1 << 23, /* paired: others may change through it what regions allow */
	HD_EP_NAMES =
		1 << 24, /* paired: each of its messages names the queue that it is for: «Named queues» */
	HD_EP_NAMED = 1 << 25, /* the queue that it posts to can be named by its number */
};

struct hd_ep_cntrs { /* any may be NULL */
	struct hd_cntr *send, *recv, *read, *write;
	struct hd_cntr *remote_read, *remote_write; /* what others have done through this endpoint */
};

/*
 * Buffered receives, fi_msg(3). owner: what handles of untagged messages name. limit: messages up to so many bytes are handed over whole,
 * at most HD_BUFFERED_MAX; min: of longer ones so many bytes at least, no more than that.
 */
#define HD_BUFFERED_MAX (1u << 20)
struct hd_buffered_attr {
	void *owner;
	uint32_t limit, min;
};

/* Whose message is being received. */
struct hd_sender {
	uint32_t number;	     /* hd_ep_number; 0: not known */
	const struct sockaddr *addr; /* where it is; the port means nothing. NULL: not known */
	void *group;		     /* hd_group_attr.owner, of what came to a group; else NULL */
};

struct hd_question;

struct hd_ep_attr {
	enum hd_ep_type type;
	uint32_t policy;
	uint32_t tx_size;    /* operations under way at most; 0: default */
	struct hd_cq *tx_cq; /* may be NULL: then completions are only counted */
	struct hd_cq *rx_cq;
	struct hd_rq *rq;   /* NULL: one of its own */
	struct hd_txq *txq; /* NULL: one of its own, of tx_size */
	/*
	 * An endpoint of this node, which outlives the new one. Its name is the new one's too, but for the slot; or, for a nameless one,
	 * messages come from there.
	 */
	struct hd_ep *beside;
	uint32_t slot;
	struct hd_ep_cntrs cntrs;
	const struct sockaddr *bind; /* where to listen; NULL or port 0: HEDDLE_ADDR, HEDDLE_PORTS */
	struct hd_buffered_attr
		buffered; /* HD_EP_BUFFERED with a queue of its own; nothing is told before it has a rx_cq */
	uint64_t min_multi_recv; /* multi-receive buffers are released when less than this is left */
	uint32_t zone;		 /* protection id: regions of another are not reached through it; 0: none */
	uint64_t domain; /* HD_EP_NAMES, HD_EP_NAMED: who is of another does not find the queue; 0: nobody does */
	uint32_t head; /* HD_EP_NUMBERED with HD_EP_DROP: bytes that are left free before each message */
	/* writes them, `head` bytes, with the node's lock; returns hd_cqe.tag of the completion. NULL: nobody does. */
	uint64_t (*head_fill)(void *owner, const struct hd_sender *from, void *at);
	struct hd_evq *evq; /* where its events go; bound until hd_ep_close */
	/* takes the events of an endpoint that is not HD_EP_MSG, with the node's lock, out of the middle of the engine: it may post nothing */
	void (*tell)(void *owner, uint32_t code, int err);
	void *owner; /* hd_event.owner of its events */
	/*
	 * Its authorization keys; copied. Several only where it is connectionless; then, and wherever it may be given a destination with a
	 * key that it has not got, all its sends and one-sided operations carry HD_SEND_KEYED: they go by the key of their destination, and
	 * are answered by -EACCES when it is none of these. One beside another has keys of that one only, else hd_ep_open answers -EINVAL.
	 */
	const uint64_t *keys;
	uint32_t key_count;
	/* HD_EP_NUMBERED: answers what other endpoints ask, see «Questions»; NULL: all of it is refused with ECONNREFUSED */
	int (*asked)(void *owner, const struct hd_question *q);
	/* HD_EP_NAMES: a request names a queue that this node does not have, see hd_ep_relay; NULL: it is refused */
	void (*stray)(void *owner, uint32_t number);
	struct hd_ep *main; /* the engine's: the endpoint that this is a further face of */
};

/*
 * hd_ep_open: enable an endpoint: it listens, has a name, may send and receive. -EADDRINUSE, -EADDRNOTAVAIL, -EMFILE, -ENOMEM.
 * (A front keeps what the program binds and sets until its enable call.) The CQs and counters are bound until hd_ep_close.
 * hd_ep_close: cancels everything posted without completions, frees; peers are told.
 * hd_ep_rebind: cancels everything posted without completions; what waits for it stays, and policy, CQs, counters and min_multi_recv are
 * those in *attr from now on.
 */
int hd_ep_open(struct hd_node *node, const struct hd_ep_attr *attr, struct hd_ep **out);
void hd_ep_close(struct hd_ep *ep);
void hd_ep_rebind(struct hd_ep *ep, const struct hd_ep_attr *attr);
uint32_t hd_ep_index(const struct hd_ep *ep);
/* hd_ep_tx_left: operations that may be posted before the bound is reached. hd_ep_posted: receives that wait in its queue. */
uint32_t hd_ep_tx_left(const struct hd_ep *ep);
size_t hd_ep_posted(const struct hd_ep *ep);
uint64_t
hd_ep_serial(const struct hd_ep *ep); /* no two endpoints that this process ever opens have the same */
struct hd_rq *hd_ep_rq(struct hd_ep *ep);
void hd_ep_set_min_multi_recv(struct hd_ep *ep, uint64_t bytes);

/*
 * hd_ep_name: the best name by which others reach it. family AF_UNSPEC, AF_INET or AF_INET6; -EAFNOSUPPORT. -ENOENT: it is nameless.
 * When listening takes too many of the process's descriptors, names have a slot: the whole socket address is the name.
 */
int hd_ep_name(const struct hd_ep *ep, int family, struct sockaddr_storage *out);

/* ---- event queues -------------------------------------------------------------------------------------------------------- */

enum hd_event_code {
	HD_EV_REQUEST, /* of a service: somebody asks for a connection: `request`, with its private data */
	HD_EV_UP,      /* of an endpoint: it is connected; at the caller with the acceptor's private data */
	HD_EV_DOWN, /* of an endpoint: the other end has left, with its front's `word`, or is no more: HD_WORD_LOST */
	HD_EV_ANSWER, /* of an endpoint that confirms: accepted, with the acceptor's private data; hd_ep_confirm or hd_ep_disconnect */
	HD_EV_EP_FAILED, /* of an endpoint with HD_EP_STRICT: it failed for what the other end did to it; err says what: EACCES, … */
	HD_EV_EP_DRAINED, /* of an endpoint that hd_ep_pause stopped: what was under way has ended; or hd_ep_finish: all has */
	HD_EV_EP_MIGRATED, /* of a pair: its second path is its first now: asked for here or at the other end, or because the first was lost */
	HD_EV_EP_UNMIGRATED, /* of a pair: the other end has migrated, and here there is no second path that is armed */
	HD_EV_EP_OVER, /* of a pair that has failed by itself, for what either end did: everything posted has completed */
	HD_EV_ALARM, /* of an endpoint: the time of hd_ep_alarm has come */
	HD_EV_RQ_LAST, /* of an endpoint that failed and shares its receive queue: it takes no further receive */
	HD_EV_FRONT = 256, /* codes from here on are the fronts' own */
};

/*
 * One event. An error entry has err above 0; code then says what failed: HD_EV_UP, a connection that was asked for (ECONNREFUSED: nobody
 * listens there, when prov_err is ENOENT, or a rejection with its private data; ETIMEDOUT; …).
 */
struct hd_event {
	uint32_t code;
	int err;      /* 0, or a positive errno */
	int prov_err; /* what it was in the engine's own terms; 0: the same */
	void *owner;  /* of the endpoint or service, or what the front gave */
	void *ctx;
	uint64_t word;		    /* the other end's front's word (struct hd_cm_data), or a front's own */
	struct hd_request *request; /* HD_EV_REQUEST */
	const void *data;	    /* private data, or a front's own bytes; copied */
	size_t len;
};

/*
 * hd_evq_open: a queue of events, for at most `size` of them. It belongs to no node and has a lock of its own (a leaf): every function
 * here may be called by any thread, with a node's lock held or not, but where it says otherwise.
 * hd_evq_close: drops what is in it. -EBUSY while endpoints, services, or hd_evq_use hold it.
 * hd_evq_use: a front's own objects hold it, or no longer do (by -1). hd_evq_is_used: would hd_evq_close be refused?
 */
int hd_evq_open(size_t size, struct hd_evq **out);
int hd_evq_close(struct hd_evq *evq);
void hd_evq_use(struct hd_evq *evq, int by);
bool hd_evq_is_used(struct hd_evq *evq);

/*
 * hd_evq_open_told: one that keeps nothing: tell() gets each event as it happens, with the lock of the node where it happens, out of the
 * middle of the engine: it may write completions, but post nothing else (see «Chores»); event->data is gone afterwards.
 */
int hd_evq_open_told(void (*tell)(void *arg, const struct hd_event *event), void *arg, struct hd_evq **out);

/*
 * hd_evq_post: append an event. -EOVERFLOW: it was full, now or before: it is overrun for good, and ends with an error entry of that
 * errno, over which no further event is taken. -ENOMEM. hd_evq_forget: drop the events of this owner; the front frees the owner.
 * hd_evq_forget_ctx: those with this ctx.
 */
int hd_evq_post(struct hd_evq *evq, const struct hd_event *event);
void hd_evq_forget(struct hd_evq *evq, const void *owner);
void hd_evq_forget_ctx(struct hd_evq *evq, const void *ctx);

/*
 * hd_evq_read: give the oldest event to take(), which runs under the evq's lock and must not call back. take's answer is returned; the
 * event is then gone, if that is not negative and HD_EVQ_PEEK is not set. -EAGAIN: there is none. -EIO: the oldest is an error entry, and
 * HD_EVQ_ERROR is not set; with HD_EVQ_ERROR the oldest error entry is read, and its data stays valid until the next read. Makes progress
 * in the nodes whose objects are bound to the evq when there is nothing; the caller holds no node's lock.
 */
enum hd_evq_how {
	HD_EVQ_PEEK = 1 << 0,
	HD_EVQ_ERROR = 1 << 1
};
typedef ssize_t (*hd_event_fn)(const struct hd_event *event, void *arg);
ssize_t hd_evq_read(struct hd_evq *evq, unsigned how, hd_event_fn take, void *arg);

/* hd_evq_has: is there an event to be read? Makes no progress. */
bool hd_evq_has(struct hd_evq *evq);

/*
 * hd_evq_wait: sleep until there is an event, or timeout_ms (negative: none) has passed: 0, -EAGAIN; -EINTR: a signal handler ran that
 * is not to restart calls. Makes progress in those nodes, really sleeps; no node's lock is held. A point of cancellation.
 * hd_evq_fd, hd_evq_arm: as hd_cq_fd and hd_cq_arm, without any lock.
 */
int hd_evq_wait(struct hd_evq *evq, int timeout_ms);
int hd_evq_fd(struct hd_evq *evq);
int hd_evq_arm(struct hd_evq *evq);

/*
 * hd_evq_event_fd: a descriptor that is readable exactly while the queue has an event, for programs that poll it without arming: nodes
 * whose objects are bound from now on make progress by themselves, if they are opened with `serve`. Never to be read; O_NONBLOCK is the
 * program's to set. An event that there is no memory for is lost from now on, and nothing else.
 * hd_ep_set_evq, hd_service_set_evq: events of this endpoint or service, those that nobody has read among them, go to another queue. The
 * node's lock is held; -ENOMEM, and nothing has changed. hd_evq_move: the same for what a front has posted under this owner.
 */
int hd_evq_event_fd(struct hd_evq *evq);
void hd_evq_move(struct hd_evq *from, struct hd_evq *to, const void *owner);
int hd_ep_set_evq(struct hd_ep *ep, struct hd_evq *evq);
int hd_service_set_evq(struct hd_service *service, struct hd_evq *evq);

/* ---- connections --------------------------------------------------------------------------------------------------------- */

/*
 * Two HD_EP_MSG endpoints get connected like this:
 *
 *	caller                                       called
 *	                                             hd_service_open, hd_service_listen
 *	hd_ep_connect   ─── CONNECT ─────────────►   HD_EV_REQUEST
 *	                                             hd_request_reject, or hd_ep_accept by any endpoint of any node of the process
 *	                ◄── ACCEPT, or REJECT ────   (HD_EV_UP with err at the caller)
 *	HD_EV_UP        ─── READY ───────────────►   HD_EV_UP
 *
 * and part by hd_ep_disconnect or hd_ep_close at either end: HD_EV_DOWN at the other; or by the death of either. An endpoint is
 * connected once in its life. Receives may be posted from hd_ep_open on. When it is no longer connected, receives that are posted and
 * sends that are under way complete with ECANCELED (ECONNRESET and the like when a link broke), later sends and receives are refused with
 * -ENOTCONN; what had come whole stays to be received.
 */
#define HD_CM_DATA 256 /* bytes of private data; more is cut off */

struct hd_cm_data {
	const void *data; /* private data; copied */
	size_t len;
	uint64_t word; /* a word of the front's own, such as limits */
};

/*
 * A service is called by a name of its own within a name space: TCP ports have space 0, and number 0 means the port it listens on. In
 * other spaces (rdma_cm port spaces, connection qualifiers) it listens at one of 16 TCP ports that space and number choose, so that
 * callers on other hosts find it; a port in bind means nothing then. Such a name is taken once on a host, at each address; two services at all
 * addresses of one family each have it both, and tell by `wants` whose a caller is.
 */
struct hd_service_attr {
	const struct sockaddr *bind; /* as in struct hd_ep_attr */
	uint32_t space;
	uint64_t number;
	int family; /* space not 0, at all addresses: AF_INET or AF_INET6 when those of one family are meant */
};

struct hd_listen_args {
	struct hd_evq *evq; /* where requests go; bound until hd_service_close */
	void *owner;	    /* hd_event.owner of them */
	uint32_t backlog;   /* requests that may wait for an answer */
	/* Is a request with this private data for it? False: its caller looks further. With the lock; NULL: all are. */
	bool (*wants)(const void *owner, const void *data, size_t len);
	/* Looks at a request before it becomes an event, with the node's lock: 0, or the word that it is rejected with. NULL: nobody does. */
	uint64_t (*screen)(void *owner, const struct hd_cm_data *data);
	bool keeps; /* a request whose caller goes before it is read stays, as one that has been read does */
};

/*
 * hd_service_open: a place where connections can be asked for: it has its name from here on, but turns callers away until
 * hd_service_listen: 0, -EISCONN: it listens already, -ENOMEM. hd_service_open: -EADDRINUSE, and as hd_ep_open. hd_service_close: rejects those that wait; their handles are void.
 * hd_service_shut: nobody is taken in any more, requests that the program has not read of are rejected, and the name and the event queue
 * are free; requests that it has read stay, and their number is returned: they may be answered until hd_service_close.
 */
int hd_service_open(struct hd_node *node, const struct hd_service_attr *attr, struct hd_service **out);
int hd_service_listen(struct hd_service *service, const struct hd_listen_args *args);
void hd_service_set_backlog(struct hd_service *service, uint32_t backlog);
int hd_service_name(const struct hd_service *service, int family, struct sockaddr_storage *out);
uint32_t hd_service_shut(struct hd_service *service);
void hd_service_close(struct hd_service *service);

/*
 * A request is its service's, and stands until it is accepted or rejected, or its service is closed; also when its caller has gone.
 * hd_request_from: the name of the endpoint that asks. hd_request_reject: say no, with private data; the request is void.
 */
void hd_request_from(const struct hd_request *request, struct sockaddr_storage *out);
void hd_request_reject(struct hd_request *request, const struct hd_cm_data *data);

/*
 * hd_ep_accept: this endpoint takes the connection; HD_EV_UP follows, or HD_EV_UP with err. Called WITHOUT any node's lock: it takes that
 * of the endpoint's node and that of the service's, one after the other. The request is void after 0 and after -ECONNABORTED: its caller
 * has gone. -EISCONN: the endpoint is or was connected already.
 */
int hd_ep_accept(struct hd_ep *ep, struct hd_request *request, const struct hd_cm_data *data);

/* hd_ep_connect: ask for a connection to the service at this address. 0: HD_EV_UP follows; -EISCONN, -EINVAL, -ENOMEM. */
struct hd_connect_args {
	const struct sockaddr *to;
	uint32_t space; /* 0: TCP ports, and the port in `to` is the number; else that port means nothing */
	uint64_t number;
	uint32_t timeout_ms; /* in all; 0: each step as long as HEDDLE_ANSWER_TIMEOUT says */
	bool confirms; /* HD_EV_ANSWER comes instead of HD_EV_UP, and the acceptor waits for hd_ep_confirm */
	struct hd_cm_data data;
};
int hd_ep_connect(struct hd_ep *ep, const struct hd_connect_args *args);

/* hd_ep_confirm: after HD_EV_ANSWER: connected from here on, without another event. -ENOTCONN: not asked to, or no longer. */
int hd_ep_confirm(struct hd_ep *ep);

/*
 * hd_ep_disconnect: leave. Everything posted has completed when it returns. -ENOTCONN. hd_ep_disconnect_for: the other end's HD_EV_DOWN has this
 * word of the front's own; else it has 0, where it has left, and HD_WORD_LOST, where it has died, or the way to it.
 */
#define HD_WORD_LOST UINT64_MAX
int hd_ep_disconnect(struct hd_ep *ep);
int hd_ep_disconnect_for(struct hd_ep *ep, uint64_t word);

/* hd_ep_alarm: HD_EV_ALARM follows this long after a connection is over, unless the endpoint is closed before. -ENOTCONN: it is not over. */
int hd_ep_alarm(struct hd_ep *ep, uint32_t ms);

/* hd_ep_peer_name: the name of the other end. -ENOTCONN. */
int hd_ep_peer_name(const struct hd_ep *ep, struct sockaddr_storage *out);

/*
 * hd_ep_to: where sends and one-sided operations of a HD_EP_MSG or HD_EP_PAIRED endpoint go: a place that always holds a destination, valid as long as
 * the endpoint. While it is not connected that is one which refuses with -ENOTCONN.
 */
struct hd_dest **hd_ep_to(struct hd_ep *ep);

/* hd_pair_send: as hd_sendv to that place, by a shorter way, of an endpoint with HD_EP_PAIRED. */
int hd_pair_send(struct hd_ep *ep, const struct iovec *iov, int count, uint64_t tag, uint64_t imm, void *ctx,
		 uint32_t flags);

/* ---- sending ------------------------------------------------------------------------------------------------------------- */

enum hd_send_flag {
	HD_SEND_TAGGED = 1 << 0, /* must equal HD_PKT_F_TAGGED */
	HD_SEND_IMM = 1 << 1,	 /* must equal HD_PKT_F_IMM */
	HD_SEND_ACKED =
		1
		<< 2, /* must equal HD_PKT_F_ACK: completes once matched and delivered (or discarded) at the target */
	HD_SEND_SOLICITED = 1 << 3, /* must equal HD_PKT_F_SOLICITED */
	HD_SEND_DELIVERED =
		1
		<< 6, /* must equal HD_PKT_F_DELIVERED: completes once it is at the target endpoint, matched or not */
	HD_SEND_COMPLETE = 1 << 4, /* write a completion on success; errors always complete */
	HD_SEND_INJECT = 1 << 5,   /* the buffer is free on return; len at most HD_MAX_INJECT */
	/*
	 * HD_SEND_GATED: set on every operation of an endpoint with HD_EP_FENCE, whatever its kind, and on no other. HD_SEND_FENCE, with
	 * it: this operation and those after it to the same remote endpoint wait until all before it are complete (fi_msg(3)).
	 */
	HD_SEND_FENCE = 1 << 7,
	HD_SEND_GATED = 1 << 8,
	HD_SEND_WORK = 1 << 9,	 /* ctx is a struct hd_work */
	HD_SEND_KEYED = 1 << 10, /* its endpoint has several keys */
	HD_SEND_ORDERED =
		1 << 11, /* set on every operation of an endpoint with HD_EP_TX_ORDERED, and on no other */
	HD_SEND_TAKE_BACK =
		1
		<< 12, /* paired endpoints, with IMM: imm is the key of a window of the other end: «Memory windows» */
};

/*
 * Work: an operation whose end is told to whoever posted it, instead of a CQ and the endpoint's counters. done is called once, with
 * the node's lock held, out of the middle of the engine: it may write completions and count, and free the work, but post nothing.
 * *e has no ctx. It is not called for what an endpoint has under way when it is closed.
 */
struct hd_work {
	void (*done)(struct hd_work *work, const struct hd_cqe *e);
};

/*
 * hd_send: send one contiguous message. 0: accepted, completes as flags say (small messages before the call returns); -EAGAIN: no
 * room, make progress and try again; nothing was posted. Other negative: refused, nothing was posted. The front has checked sizes.
 * hd_sendv: the same with segments (count at most HD_MAX_IOV).
 */
int hd_send(struct hd_ep *ep, struct hd_dest *dest, const void *buf, size_t len, uint64_t tag, uint64_t imm,
	    void *ctx, uint32_t flags);
int hd_sendv(struct hd_ep *ep, struct hd_dest *dest, const struct iovec *iov, int count, uint64_t tag,
	     uint64_t imm, void *ctx, uint32_t flags);

/* ---- queue pairs --------------------------------------------------------------------------------------------------------- */

/*
 * Endpoints as ibv_modify_qp(3) and ibv_post_send(3) want them. Three kinds, of type HD_EP_RDM but for the last:
 *
 *	HD_EP_NUMBERED | HD_EP_PAIRED | HD_EP_STRICT			reliable, with one other endpoint (RC)
 *	HD_EP_NUMBERED | HD_EP_PAIRED | HD_EP_STRICT | HD_EP_DROP	the same without any answer: what finds no receive is gone (UC)
 *	HD_EP_NUMBERED | HD_EP_DROP, HD_EP_DGRAM			with anybody (UD)
 *
 * Sends. hd_send, hd_rma and hd_atomic accept up to tx_size operations, whatever state the link is in; -EAGAIN beyond that. `dest` is
 * *hd_ep_to(ep) for paired endpoints. They start and complete in posting order. `tag` is not sent: it comes back in hd_cqe.tag of the
 * completion, for the front's own use. Of `imm` the lower 32 bits travel; the upper ones are the Q_Key that an unpaired send carries.
 * HD_SEND_FENCE: not before reads and atomic operations that were posted before have ended. HD_SEND_GATED, ACKED and DELIVERED are
 * the engine's own business here, and so is TAGGED. Reliable sends complete when the message has been accepted, others when they have left.
 *
 * Arrivals. The other end's messages and one-sided operations are carried out one after the other. What comes before hd_ep_pair, what
 * finds no receive (a write with immediate data needs one too), and all that is behind it, is held back, for as long as the sender's
 * rnr_retry (times our rnr_timer_us) and timeout say; then the sender gets ENOBUFS or ETIMEDOUT. Unreliable ones drop instead.
 * Receives are posted with tag 0, ignore 0, HD_RECV_COMPLETE.
 *
 * Errors of reliable ones, in hd_cqe.err: EACCES (key, zone, right), ERANGE, EINVAL (atomics not on a multiple of 8), EREMOTEIO (HD_RECV_FAULT), EMSGSIZE (longer
 * than the receive; there it is a receive completion with EMSGSIZE), ENOBUFS (no receive), ETIMEDOUT, ECONNREFUSED (nobody has the number,
 * or it has failed, or is paired with another), ECONNRESET (the other node is gone). With HD_EP_STRICT the endpoint has failed then, and
 * so has the one that was offended, where HD_EV_EP_FAILED says so; what was behind completes with ECANCELED.
 */

/*
 * Named queues. With HD_EP_NAMES (the two ends of a pair have it both, or neither) messages and one-sided operations carry in the upper half of
 * their imm the number of an endpoint of the other node that is HD_EP_NUMBERED | HD_EP_NAMED, and of the same domain as the endpoint
 * that receives. What arrives is received from that one's queue, completes in its receiving CQ with the index of the endpoint
 * that has received, and reaches the memory of its zone. A number that there is not is an offence: EINVAL.
 */

/*
 * Queues of other nodes. An endpoint with hd_ep_attr.stray asks its front, as a chore, for the way to a queue that its node does not have, and
 * keeps what names it waiting until the front calls hd_ep_relay: what names this queue leaves by `via`, a pair of the front's with
 * HD_EP_NAMES whose other end is in the queue's node, and nothing else does; NULL: there is no such queue. `via` may be closed at any time; when
 * it has failed the front is asked again. The sender's patience is counted there, its rights here. When the endpoint fails or is reset,
 * its ways are forgotten.
 */
void hd_ep_relay(struct hd_ep *ep, uint32_t number, struct hd_ep *via);

/* hd_ep_number: TCP port << 8 | slot, given by hd_ep_open: unique on the host; never 0, 1 or 0xffffff. 0: it is not HD_EP_NUMBERED. */
uint32_t hd_ep_number(const struct hd_ep *ep);

/* hd_name_set_number: the name of the endpoint with this number on the host that the address is of. */
void hd_name_set_number(struct sockaddr *name, uint32_t number);

/* hd_dest_number: the same of the endpoint behind hd_cqe.src; 0: not known. */
uint32_t hd_dest_number(const struct hd_node *node, uint32_t src);

struct hd_pair_attr {
	const struct sockaddr *to; /* address, port and slot of the other end; unpaired endpoints: NULL */
	uint32_t rnr_timer_us; /* how long one of the other end's retries takes while we have no receive posted */
	uint32_t rnr_retry; /* of our sends: 0 to 6, 7: for ever */
	/* of our sends: how long the other end may not be ready for them, in all, as far as a power of two can be that. 0: for ever */
	uint32_t timeout_ms;
	/* how long what was under way when the other end went away waits before it completes in error; 0: not at all */
	uint32_t grace_ms;
	uint32_t rq_psn; /* hd_ep_pair: what the other end gives hd_ep_set_psn; bits from 24 on do not count */
};

/*
 * hd_ep_pair: ready to receive: from `to` alone, or (NULL) from everybody; what was held back is let in. 0, -EINVAL, -ENOMEM; -EISCONN:
 * ready already. hd_ep_pair_tune: change the numbers; `to` is not looked at. hd_ep_allow: of the policy, HD_EP_REMOTE_READ,
 * HD_EP_REMOTE_WRITE and HD_EP_REMOTE_ATOMIC are these from now on. hd_ep_set_qkey: datagrams must carry this number, in the upper
 * half of their imm.
 */
int hd_ep_pair(struct hd_ep *ep, const struct hd_pair_attr *attr);
void hd_ep_pair_tune(struct hd_ep *ep, const struct hd_pair_attr *attr);
void hd_ep_allow(struct hd_ep *ep, uint32_t policy);

/*
 * Packet sequence numbers. Two reliable ends talk in the lives that they mean: what the other end sends waits, as if we were not ready, while
 * its number, in its life, is not the one that we have for it. hd_ep_set_psn: with which our requests begin, before any is posted; else 0.
 * hd_ep_psns: of the next request to be sent, and of the next to come; here a request is one packet, and what the other end does
 * to our memory without a receive is not counted.
 */
void hd_ep_set_psn(struct hd_ep *ep, uint32_t psn);
void hd_ep_psns(const struct hd_ep *ep, uint32_t *sq_psn, uint32_t *rq_psn);
void hd_ep_set_qkey(struct hd_ep *ep, uint32_t qkey);

/*
 * hd_ep_fail: what is posted, receives of its own queue as well, completes with ECANCELED, each kind in posting order, before this
 * returns; so does what is posted from now on. The other end gets ECONNREFUSED. Once is enough. hd_ep_has_failed: why, a positive errno;
 * ECANCELED where hd_ep_fail was called; 0: it has not.
 *
 * hd_ep_reset: as it was when it was opened, with the same number: what is posted and held is forgotten and completes nothing, not ready,
 * for anybody. What has completed stays in its CQs.
 *
 * hd_ep_pause: stop starting what is posted (HD_EV_EP_DRAINED follows when what was under way has ended), or go on. hd_ep_finish: that
 * event follows when everything posted has ended; perhaps at once.
 */
void hd_ep_fail(struct hd_ep *ep);
int hd_ep_has_failed(const struct hd_ep *ep);
void hd_ep_reset(struct hd_ep *ep);
void hd_ep_pause(struct hd_ep *ep, bool on);
bool hd_ep_halted(const struct hd_ep *ep);
void hd_ep_go_on(struct hd_ep *ep);
void hd_ep_finish(struct hd_ep *ep);

/*
 * hd_send_failed: an operation that is wrong here already: in its turn it completes with this positive errno. A reliable endpoint fails then;
 * others, and those whose hd_window_bind was wrong, are halted. Answers as hd_send.
 *
 * hd_ep_halted: what was posted behind has completed with ECANCELED, and so does what is posted, until hd_ep_go_on; at an unpaired endpoint the
 * front sees to that. Receiving goes on.
 */
struct hd_failed_args {
	int err;
	uint64_t tag;
	void *ctx;
	uint32_t flags; /* enum hd_send_flag: FENCE */
};
int hd_send_failed(struct hd_ep *ep, struct hd_dest *dest, const struct hd_failed_args *args);

/*
 * A second path to the other end of a pair, ibv_modify_qp(3). hd_ep_path_load: it is at this address, too; -EINVAL. hd_ep_path_set: HD_PATH_REARM becomes
 * HD_PATH_ARMED when the other end is rearmed as well; HD_PATH_MIGRATED of one that is armed migrates, at both ends, else nothing is armed any more;
 * -EINVAL: there is no second path. hd_ep_path: what it has become. An armed pair whose link is lost, or cannot be made, while nothing is under
 * way, goes on by its second path; what is under way then fails as it does without one.
 */
enum hd_path {
	HD_PATH_MIGRATED,
	HD_PATH_REARM,
	HD_PATH_ARMED
};
int hd_ep_path_load(struct hd_ep *ep, const struct sockaddr *to);
int hd_ep_path_set(struct hd_ep *ep, enum hd_path path);
enum hd_path hd_ep_path(const struct hd_ep *ep);

/* ---- questions ----------------------------------------------------------------------------------------------------------- */

/*
 * A front asks the front of an endpoint of another node (or of its own) something: up to HD_ASK_MAX bytes there, as many back.
 *
 * hd_ep_ask: by an endpoint that is not paired and not unreliable. told is called once, with the node's lock, out of the middle of the
 * engine, so it may post nothing: err is 0, and the answer lies in `answer`; or it is a positive errno, the other front's or ECONNREFUSED
 * (nobody answers there), ECONNRESET (the node is gone). The memory is the front's again then. It is not called when `ep` closes before.
 * 0, -EINVAL, -ENOMEM, or the destination cannot be called. There is no time-out: who is asked, and lives, answers.
 *
 * hd_ep_attr.asked: answers: how many bytes it has written to q->answer, or a negative errno. It is called as a chore is, so it may post and
 * close anything, its own endpoint among it.
 */
struct hd_ask {
	void (*told)(struct hd_ask *ask, int err);
	size_t len;
	_Alignas(8) unsigned char answer[HD_ASK_MAX];
	struct hd_work work; /* the engine's */
};
int hd_ep_ask(struct hd_ep *ep, struct hd_dest *dest, const void *question, size_t len, struct hd_ask *ask);

struct hd_question {
	const void *data; /* aligned to 8 bytes */
	size_t len;
	struct hd_dest *from; /* the endpoint that asks: valid during the call, or as long as it is followed */
	bool is_near;	      /* it is of this host */
	unsigned char *answer; /* HD_ASK_MAX bytes */
};

/* ---- one-sided operations ------------------------------------------------------------------------------------------------ */

enum hd_rma_op {
	HD_RMA_WRITE,
	HD_RMA_READ
};

struct hd_rma_args {
	enum hd_rma_op op;
	const struct iovec *iov; /* ours: count at most HD_MAX_IOV; copied */
	int count;
	int seg_count;		       /* at most HD_RMA_SEGS */
	const struct hd_rma_seg *segs; /* the target's, of the same length in all; copied */
	uint64_t imm;
	uint64_t tag; /* paired endpoints: hd_cqe.tag of the completion; else 0 */
	void *ctx;
	uint32_t flags; /* enum hd_send_flag: COMPLETE, INJECT; for writes IMM, SOLICITED; DELIVERED always holds */
};

/* Two operations of up to so many bytes find the target's memory in the order in which they were started, at any place of it. */
#define HD_RMA_ORDERED 4096

/*
 * hd_rma: read or write the target's memory, fi_rma(3). Answers as hd_send; the completion (HD_C_RMA with HD_C_READ or HD_C_WRITE) says
 * that the data is where it belongs, or carries the errno of the target: EACCES, ERANGE and others of hd_mr_reach, ECONNREFUSED
 * when the endpoint is gone. Then nothing was written, unless the region or the endpoint was closed or the peer died on the way.
 * At the target a write with IMM makes a completion HD_C_RMA | HD_C_REMOTE | HD_C_WRITE | HD_C_IMM in the receiving CQ. On endpoints
 * with HD_EP_IMM_RECV it uses up an untagged receive, and waits for one, as a message of length 0 does: the completion is that of
 * the receive, with those flags as well, and has the bytes that were written in `tag`.
 */
int hd_rma(struct hd_ep *ep, struct hd_dest *dest, const struct hd_rma_args *args);

/* ---- atomic operations --------------------------------------------------------------------------------------------------- */

/*
 * hd_atomic_size: bytes of one element (enum hd_atomic_type), 0 for a number that is no type. hd_atomic_can: whether an operation
 * (enum hd_atomic_op) is there for this type, in this way (enum hd_atomic_how). Any numbers, any thread, no lock.
 */
size_t hd_atomic_size(uint32_t type);
bool hd_atomic_can(uint32_t how, uint32_t op, uint32_t type);

struct hd_atomic_args {
	uint32_t how, op, type;		       /* hd_atomic_can() them */
	const struct iovec *iov, *compare_iov; /* ours; taken over when hd_atomic returns */
	const struct iovec *result_iov;	       /* ours, for the old values */
	int count, compare_count,
		result_count;	       /* segments: at most HD_MAX_IOV; 0 where the operation has none */
	int seg_count;		       /* 1 to HD_RMA_SEGS */
	const struct hd_rma_seg *segs; /* the target's; copied */
	uint64_t tag;		       /* as in struct hd_rma_args */
	void *ctx;
	uint64_t imm;	/* HD_EP_NAMES: the upper half, as in hd_send; else 0 */
	uint32_t flags; /* enum hd_send_flag: COMPLETE, GATED, FENCE, WORK. INJECT and DELIVERED always hold */
};

/*
 * hd_atomic: change the target's memory, fi_atomic(3): each element by itself, by the target's engine, so that operations of all
 * peers have one order; with the CPU's own atomic instructions where it is aligned and has up to 8 bytes. All lengths given are equal, divide into whole
 * elements, and are at most HD_ATOMIC_BYTES. Answers as hd_send; the completion (HD_C_ATOMIC with HD_C_READ when old values came
 * back, else HD_C_WRITE) says that it has been done, or carries the target's errno, and then nothing was: EACCES and ERANGE as in
 * hd_rma, EINVAL for elements that do not lie in one piece, ECONNREFUSED when the endpoint is gone.
 */
int hd_atomic(struct hd_ep *ep, struct hd_dest *dest, const struct hd_atomic_args *args);

/* ---- groups --------------------------------------------------------------------------------------------------------------- */

enum hd_group_how {
	HD_GROUP_SEND = 1 << 0,
	HD_GROUP_RECV = 1 << 1
};

/*
 * hd_group_join: the endpoint becomes a member of the multicast group at this address and port, by IP, on the interfaces that its own
 * name has. -EINVAL: no such address; -EADDRNOTAVAIL: no interface of that family; -E2BIG: it has more than 64 keys; -ENODEV, -EMFILE, …
 * Members receive, as well as others, what they send themselves; and what is sent by whoever has one of their keys, once. hd_group_leave:
 * before hd_ep_close.
 */
struct hd_group_attr {
	const struct sockaddr *addr;
	unsigned how; /* enum hd_group_how */
	const struct sockaddr
		*from; /* an address of this host: that interface only; NULL: all of the endpoint's name */
	uint64_t word; /* tells groups at one address apart: members hear those who have the same */
	bool not_own;  /* what the endpoint itself sends it does not hear */
	void *owner;   /* hd_sender.group */
};
int hd_group_join(struct hd_ep *ep, const struct hd_group_attr *attr, struct hd_group **out);
void hd_group_leave(struct hd_group *group);

/*
 * hd_group_send: to all members, unreliable even where the endpoint is not: it goes or is lost, has completed when the call returns, and
 * is dropped by members that have nothing posted for it. At most HD_MAX_DGRAM bytes. 0, or -EAGAIN when the CQ is full.
 */
struct hd_group_args {
	const struct iovec *iov;
	int count;
	uint64_t imm;
	uint64_t tag; /* hd_cqe.tag of the completion */
	void *ctx;
	uint32_t flags; /* enum hd_send_flag: IMM, SOLICITED, COMPLETE, WORK; the others mean nothing here */
};
int hd_group_send(struct hd_group *group, const struct hd_group_args *args);

/* ---- receiving ----------------------------------------------------------------------------------------------------------- */

enum hd_recv_flag {
	HD_RECV_TAGGED = 1 << 0,
	HD_RECV_COMPLETE = 1 << 1, /* write a completion on success */
	HD_RECV_MULTI = 1 << 2,	   /* one segment takes many messages; untagged */
	HD_RECV_BUFFERED = 1 << 3, /* a tag to be told of: HD_EP_BUFFERED; segments are not looked at */
	HD_RECV_CLAIM = 1 << 7,	   /* the completion says so; must equal HD_C_CLAIM */
	HD_RECV_WORK = 1 << 8,	   /* ctx is a struct hd_work; not with HD_RECV_COMPLETE or HD_RECV_MULTI */
	/*
	 * HD_RECV_ORDERED: completes in the order in which the endpoint's messages met receives that have this flag. HD_RECV_ASCENDING, with it: no
	 * byte is written before all that come before it, in this message and in those before.
	 */
	HD_RECV_ORDERED = 1 << 9,
	HD_RECV_ASCENDING = 1 << 10,
	HD_RECV_FAULT =
		1
		<< 11, /* paired endpoints: it has no room because its memory is wrong: senders get EREMOTEIO */
	HD_RECV_SHARED =
		1 << 15, /* completes on success unless the endpoint that takes it is HD_EP_RX_SELECTIVE */
};

struct hd_recv_args {
	const struct iovec *iov; /* count 1 to HD_MAX_IOV; copied */
	int count;
	uint32_t flags;
	uint64_t tag, ignore;
	const struct hd_dest *src; /* NULL: any source */
	void *ctx;
	/* queue pairs: the region of the segment, or the first that there is of several; NULL: none. And of each of several; see hd_mr_move */
	struct hd_mr *region, *const *regions;
};

/*
 * hd_rq_open: a receive queue for several endpoints: what is posted to it through any of them, or through a nameless one, goes to the
 * first message that matches, whichever of them it comes to, and completes at that one: its CQ, its counter, its index. directed: as
 * HD_EP_DIRECTED. hd_rq_group: a new one, directed: receives may name keys as well, as HD_EP_BY_KEY. 0 or -ENOMEM. hd_rq_close: -EBUSY
 * while endpoints use it.
 * hd_txq_open: one bound on operations under way for several endpoints together. hd_txq_close: -EBUSY likewise.
 */
int hd_rq_open(struct hd_node *node, bool directed, struct hd_rq **out);
int hd_rq_group(struct hd_rq *rq);
int hd_rq_close(struct hd_rq *rq);
/*
 * hd_rq_set_limit: below() once, from a turn of progress, when fewer than `least` receives are posted, and then never again until it is set
 * anew; 0: not at all. It has the node's lock and may post. hd_rq_get_limit: what is armed.
 */
struct hd_rq_limit {
	uint32_t least;
	void (*below)(void *owner);
	void *owner;
};
void hd_rq_set_limit(struct hd_rq *rq, const struct hd_rq_limit *limit);
uint32_t hd_rq_get_limit(const struct hd_rq *rq);

/*
 * Of queue pairs. hd_ep_taken: receives that have left their queue for this endpoint since it was opened, for a message or because it has
 * failed; each completes. hd_ep_filling: those whose messages are still coming in.
 * hd_ep_set_mark: passed() once, from a turn of progress, when more than `most` have been taken, and then never again until it is set anew;
 * NULL: not at all. It has the node's lock and may post.
 */
uint64_t hd_ep_taken(const struct hd_ep *ep);
uint32_t hd_ep_filling(const struct hd_ep *ep);
struct hd_ep_mark {
	uint64_t most;
	void (*passed)(void *owner);
	void *owner;
};
void hd_ep_set_mark(struct hd_ep *ep, const struct hd_ep_mark *mark);
/*
 * hd_rq_buffer: what comes to the endpoints of this queue is handed over; before it has any. Again, before it has any: with other limits.
 * 0 or -ENOMEM.
 */
int hd_rq_buffer(struct hd_rq *rq, const struct hd_buffered_attr *attr);
int hd_txq_open(struct hd_node *node, uint32_t size, struct hd_txq **out);
int hd_txq_close(struct hd_txq *txq);

/* hd_recv: post a receive to the endpoint's queue. 0, -EAGAIN, -ENOMEM. May complete before it returns. */
int hd_recv(struct hd_ep *ep, const struct hd_recv_args *args);

/*
 * hd_peek: look for a waiting message. Writes exactly one completion to the endpoint's receive CQ: the message's length, tag, imm,
 * source and ctx; err ENOMSG when there is none. CLAIM takes it out of the queue and stores it in *claim (kept by the front until
 * hd_claim or hd_claim_discard); DISCARD drops it. Copies up to the size of the segments given; buf is then the first.
 * hd_claim_discard drops a claimed message; a completion without data tells of its tag, imm and source where args (else NULL) ask for one.
 */
enum hd_peek_flag {
	HD_PEEK_CLAIM = 1 << 0,
	HD_PEEK_DISCARD = 1 << 1
};
struct hd_claim;
int hd_peek(struct hd_ep *ep, const struct hd_recv_args *args, uint32_t peek, struct hd_claim **claim);
int hd_claim_recv(struct hd_ep *ep, struct hd_claim *claim, const struct hd_recv_args *args);
void hd_claim_discard(struct hd_ep *ep, struct hd_claim *claim, const struct hd_recv_args *args);

/*
 * Buffered receives. At an endpoint with HD_EP_BUFFERED nothing untagged is posted, and tagged receives (HD_RECV_BUFFERED) are tags only.
 * A message makes a completion whose ctx is a handle; buf is where it lies, whole or (HD_C_MORE) at least the beginning, in the engine's
 * memory; len is its length. So it stays until the program gives it back by exactly one of these calls, after which neither may be
 * touched:
 *
 * hd_handed_recv: receive it after all: args without tag, ignore, src; the completion carries HD_C_CLAIM and what handed->ctx says now.
 * 0, -EAGAIN, -ENOMEM; -EINVAL: no message is handed over under this handle.
 * hd_handed_discard: drop it; no completion. 0, -EINVAL likewise.
 * hd_handed_is: is it a handle that could be given to those two?
 *
 * A tagged message that comes to nothing before it could be told of makes a completion in error, with a handle all the same.
 */
struct hd_handed {
	void *owner; /* hd_buffered_attr.owner; tagged: NULL */
	void *ctx;   /* NULL, and the program's to set; tagged: of the receive that it matched */
};
int hd_handed_recv(struct hd_ep *ep, struct hd_handed *handed, const struct hd_recv_args *args);
int hd_handed_discard(struct hd_ep *ep, struct hd_handed *handed);
bool hd_handed_is(const struct hd_ep *ep, const void *handed);

/*
 * hd_ep_post: write a completion of the front's own, e.ep filled in, where the endpoint's receives complete; for a nameless one where its
 * hd_cancel does.
 */
void hd_ep_post(struct hd_ep *ep, const struct hd_cqe *e);

/* hd_cancel: cancel the oldest posted receive with this ctx: completes with ECANCELED. 0, or -ENOENT when there is none. */
int hd_cancel(struct hd_ep *ep, void *ctx);

/* ---- memory -------------------------------------------------------------------------------------------------------------- */

enum hd_access { /* of a memory region */
	HD_ACCESS_LOCAL_READ = 1 << 0,
	HD_ACCESS_LOCAL_WRITE = 1 << 1,
	HD_ACCESS_REMOTE_READ = 1 << 2,
	HD_ACCESS_REMOTE_WRITE = 1 << 3,
	HD_ACCESS_REMOTE_ATOMIC = 1 << 4, /* atomic operations may change it */
	HD_ACCESS_REMOTE_FETCH = 1 << 5,  /* and may answer with what it held */
	HD_ACCESS_BIND = 1 << 6,	  /* windows may be bound to it */
};

enum hd_mr_flag {
	HD_MR_KEY = 1 << 0, /* the key is chosen by the caller; else a random one */
	HD_MR_VIRTUAL =
		1
		<< 1, /* peers give virtual addresses; else offsets, which begin at 0 and run on through the segments */
	HD_MR_DISABLED = 1 << 2, /* nobody reaches it before hd_mr_enable */
};

struct hd_mr_attr {
	const struct iovec *iov; /* count at most HD_MAX_IOV; copied */
	int count;
	uint32_t access;    /* enum hd_access */
	uint32_t flags;	    /* enum hd_mr_flag */
	unsigned key_bytes; /* length of random keys; 0: 8 */
	uint64_t key;
	const uint64_t *
		auth; /* authorization keys; copied: only endpoints with one of them reach it; none: all that can reach ours */
	uint32_t auth_count;
	struct hd_dest *from; /* only this endpoint reaches it; NULL: any */
	uint32_t zone;	      /* protection id: reached through endpoints of the same one only; 0: none */
	void *owner;	      /* hd_mr_find */
	uint64_t base;	      /* without HD_MR_VIRTUAL: the offset at which the first segment begins */
	const struct hd_mr_fault *
		fault; /* what becomes of requests that use it when it closes: see hd_mr_move. NULL: nothing uses it */
};

/*
 * Requests of queue pairs may name the regions of their segments: receives by hd_recv_args.region, what is sent by hd_ep_regions, which is
 * where the front says before each post, at a place that is valid during that call, which regions the segments are of (NULL: of none).
 *
 * When such a region closes, receives that are posted have no room any more, HD_RECV_FAULT, and `buf` as their place; what has been posted to be sent
 * completes in its turn with `err`, and what moves bytes at the moment with it or, a receive, with EFAULT: both ends fail as for other errors of
 * the kind. hd_mr_move: `to` takes the place of `from`, of one segment each: its addresses are in `to` now, where that is of the
 * same zone, has the right that is needed, and reaches as far. It costs what there is to be looked at in the queue that the
 * region was posted to last, if that has something as old; in all queues where it has been posted to several.
 */
struct hd_mr_fault {
	void *buf;
	int err; /* positive */
};
void hd_mr_move(struct hd_mr *from, struct hd_mr *to);
struct hd_mr *const **hd_ep_regions(struct hd_ep *ep);

/*
 * hd_mr_open: register memory; pages are not touched, and need not be there. -ENOKEY: the key is taken; -ENOSPC: no key of that
 * length is free. hd_mr_close ends what peers are doing with the region at the moment, so that the memory is the caller's own when it
 * returns 0. It may wait for a peer that copies by itself, and give up the lock meanwhile; -EBUSY: after a second one was still not
 * done, since it was stopped in the middle: the region is disabled, stays, and may be closed again. hd_mr_rename: it has this key from
 * now on, also one that was another's; -ENOKEY: which somebody has.
 *
 * hd_mr_enable and hd_mr_disable: peers reach it from now on, no longer. hd_mr_bind_ep: they reach it through this endpoint only
 * (NULL: through any); when that closes, the region is disabled. hd_mr_bind_cntrs: count what they read and write; NULL: nothing.
 */
int hd_mr_open(struct hd_node *node, const struct hd_mr_attr *attr, struct hd_mr **out);
int hd_mr_close(struct hd_mr *mr);
int hd_mr_rename(struct hd_mr *mr, uint64_t key);
uint64_t hd_mr_key(const struct hd_mr *mr);
void *hd_mr_find(struct hd_node *node, uint64_t key); /* the owner of the region with this key; NULL: none */
void hd_mr_enable(struct hd_mr *mr);
void hd_mr_disable(struct hd_mr *mr);
void hd_mr_bind_ep(struct hd_mr *mr, struct hd_ep *ep);
void hd_mr_bind_cntrs(struct hd_mr *mr, struct hd_cntr *read, struct hd_cntr *write);

/* ---- memory windows ------------------------------------------------------------------------------------------------------ */

/*
 * A window, ibv_alloc_mw(3), is a region whose memory is a part of another region, or none, and is changed by operations of a queue
 * pair, each of which ends when nobody reaches what was before. hd_mr_key is the key that it has by now; its keys differ in the last of 4 bytes
 * only. hd_mr_close closes it, bound or not. hd_mr_find does not find it.
 *
 * hd_window_open: a window of this zone, bound to nothing; single: once bound it is reached through that queue pair alone, and cannot be bound
 * again before it has been taken back. 0, -ENOMEM, -ENOSPC. hd_mr_has_windows: some are bound to it: hd_mr_close answers -EBUSY.
 *
 * hd_window_bind: in its turn among what `ep` sends, the window with one of these keys gets this one. hd_window_invalidate: in its turn, the
 * window with this key is bound to nothing; it must be single, and of this endpoint. Both answer as hd_send. Completions (HD_C_LOCAL)
 * have tag and ctx; err: EACCES (no such window or region, of another zone, or without this right), ERANGE (not all of it is in the
 * region), EINVAL (a single one that is bound, or to nothing). The endpoint has failed then.
 *
 * A message with HD_SEND_TAKE_BACK frees the window in the same way, at its receiver, before it completes there: with HD_C_IMM, and
 * HD_IMM_TAKEN_BACK in hd_cqe.imm beside the key. Where that is no such window both ends get EACCES.
 */
#define HD_IMM_TAKEN_BACK (UINT64_C(1) << 32)
struct hd_bind_args {
	uint64_t key;		    /* of the window from now on; hd_window_invalidate: as it is */
	const struct hd_mr *region; /* NULL: to nothing; so does len 0 */
	uint64_t addr, len;	    /* what of it: addr as its peers would say */
	uint32_t access;	    /* enum hd_access: those of peers */
	bool from_zero;		    /* addresses begin at 0; else at addr */
	uint64_t tag;
	void *ctx;
	uint32_t flags; /* enum hd_send_flag: COMPLETE, FENCE */
};
int hd_window_open(struct hd_node *node, uint32_t zone, bool single, struct hd_mr **out);
bool hd_mr_has_windows(const struct hd_mr *mr);

/*
 * hd_window_own: it is the front's. hd_window_find: the owner of the window that has this key, or may get it; NULL: none. *lost: it has it, and is
 * bound to nothing, because somebody has taken it back.
 */
void hd_window_own(struct hd_mr *window, void *owner);
void *hd_window_find(const struct hd_node *node, uint64_t key, bool *lost);
int hd_window_bind(struct hd_ep *ep, const struct hd_bind_args *args);
int hd_window_invalidate(struct hd_ep *ep, const struct hd_bind_args *args);

#endif
