/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * How programs learn that something is over: completion queues, channels, counters, and wait sets
 * over them. Rules that hold for all calls: engine.h.
 */
#ifndef HD_ENGINE_API_COMPLETION_H
#define HD_ENGINE_API_COMPLETION_H

#include "engine/api/types.h"

/* ---- completions ----------------------------------------------------------------------------- */

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
	HD_C_REMOTE = 1 << 13,	   /* what READ and WRITE name was done to our memory, by another */
	HD_C_LOCAL = 1 << 14,	   /* nobody else had to do with it: hd_window_bind */
	HD_C_CAST = 1 << 15,	   /* to a group, or from one */
	HD_C_COLLECTIVE = 1 << 16, /* the front's own: hd_cq_post */
};

/*
 * One completion: written once into the ring of its CQ and translated from there by
 * the front. One cache line.
 */
struct hd_cqe {
	void *ctx;
	void *buf;    /* receives: where the data begins (multi-receive, peek) */
	uint64_t len; /* receives: bytes received; peek: of the whole message */
	uint64_t tag;
	uint64_t imm;
	uint64_t olen;	    /* errors: bytes that did not fit */
	uint32_t src;	    /* receives: hd_dest_id() of the sender, 0 when it has no name here */
	uint32_t ep;	    /* hd_ep_index() of the endpoint that it happened on */
	uint32_t flags;	    /* enum hd_cqe_flag */
	enum hd_status err; /* how it has ended */
};
static_assert(sizeof(struct hd_cqe) == 64, "a completion is one cache line");

struct hd_cq_attr {
	uint32_t size;	 /* entries wanted, rounded up to a power of two */
	bool any_signal; /* a signal handler that ran ends hd_cq_wait: -EINTR */
	bool waitable;	 /* hd_cq_fd and hd_cq_arm will be used: makes their descriptors now */
	/* nobody protects it: a completion that finds it full is lost, and so are all after it */
	bool overruns;
	/* called when that happens, once, with the lock; may be NULL */
	void (*on_overrun)(void *arg);
	/*
	 * a completion that finds it full is lost, and nothing else happens;
	 * `overruns` does not count then
	 */
	bool forgets;
	void *arg;
	/*
	 * Where hd_cq_notify tells of completions, and the item that stands for this CQ there,
	 * of the front; may be NULL.
	 */
	struct hd_channel *channel;
	struct hd_channel_item *item;
	/*
	 * Is anybody to be told of this completion? hd_cq_notify and hd_cq_wait_told pass over
	 * others; called with the lock. NULL: of all.
	 */
	bool (*tells)(void *arg, const struct hd_cqe *e);
};

int hd_cq_open(struct hd_node *node, const struct hd_cq_attr *attr, struct hd_cq **out);
int hd_cq_close(struct hd_cq *cq); /* -EBUSY while bound */

/*
 * hd_cq_peek: the oldest completion, or NULL; stays valid until hd_cq_pop, which removes it.
 * Neither makes progress. When more completions come than the ring takes, the rest waits in memory,
 * and sends and receives answer -EAGAIN until it is read. A CQ that may be overrun
 * (hd_cq_attr.overruns) does neither; once it was, and what it had has been read, it gives an error
 * entry of HD_S_OVERRUN for ever. hd_cq_pop is hd_cq_step and, where hd_cq_overflowed,
 * hd_cq_refill, which brings what waits into the ring: a loop may put that off to its end.
 */
struct hd_cq_ring { /* first member of struct hd_cq, so that reading is inline */
	struct hd_cqe *ring;
	uint32_t mask;
	uint32_t head;	 /* next to read; under the node's lock */
	uint32_t tail;	 /* next to write; under the node's lock */
	bool armed;	 /* somebody sleeps on it */
	bool overflowed; /* entries wait beside the ring */
	/* not 0: what has been sent must go out before the program hears of it: hd_cq_poll */
	const uint32_t *gathering;
};
static inline const struct hd_cqe *hd_cq_peek(const struct hd_cq *cq)
{
	const struct hd_cq_ring *r = (const struct hd_cq_ring *)cq;
	return r->head == r->tail ? NULL : &r->ring[r->head & r->mask];
}
static inline bool hd_cq_gathers(const struct hd_cq *cq)
{
	return *((const struct hd_cq_ring *)cq)->gathering != 0;
}
static inline void hd_cq_step(struct hd_cq *cq)
{
	((struct hd_cq_ring *)cq)->head++;
}
static inline bool hd_cq_overflowed(const struct hd_cq *cq)
{
	return ((const struct hd_cq_ring *)cq)->overflowed;
}
void hd_cq_refill(struct hd_cq *cq);
static inline void hd_cq_pop(struct hd_cq *cq)
{
	hd_cq_step(cq);
	if (hd_cq_overflowed(cq))
		hd_cq_refill(cq);
}

/*
 * hd_cq_poll: the oldest completion after making progress if there was none. The usual way to read:
 *	while (n < count && (e = hd_cq_poll(cq))) { translate(e); hd_cq_pop(cq); n++; }
 * (progress is made at most when the queue is empty, so a full queue is read at memory speed.) What
 * has been sent is out of this process's hands before the completion is returned. Who reads by
 * hd_cq_peek calls this first while hd_cq_gathers.
 */
const struct hd_cqe *hd_cq_poll(struct hd_cq *cq);

/*
 * hd_cq_post: write a completion of the front's own. hd_cq_drop: take away what endpoint `ep` (its
 * index) has completed and nobody has read.
 */
void hd_cq_post(struct hd_cq *cq, const struct hd_cqe *e);
void hd_cq_drop(struct hd_cq *cq, uint32_t ep);
bool hd_cq_has(const struct hd_cq *cq, uint32_t ep); /* is there any of those? */
/*
 * hd_cq_mark: a place behind the last of those; hd_cq_is_past: all before
 * such a place has been read.
 */
uint32_t hd_cq_mark(const struct hd_cq *cq, uint32_t ep);
bool hd_cq_is_past(const struct hd_cq *cq, uint32_t mark);

/*
 * hd_cq_wait: sleep until the CQ has so many entries, is full or has one that is an error, it is
 * signalled, or timeout_ms (negative: none) has passed. Called WITHOUT the lock; 0: look; -EAGAIN:
 * time-out; -ECANCELED: hd_cq_signal was called. Makes progress, really sleeps.
 * hd_cq_wait_told: until it has so many entries or is full, and of those that came while we waited
 * somebody is to be told (hd_cq_attr.tells); what has so many to begin with is not waited for. One
 * thread at a time. -EINTR: a signal handler ran that is not to restart calls.
 * hd_cq_signal: wake the waiters once. Any thread, no lock.
 * hd_cq_fd: a descriptor that polls readable when there may be something to do, valid until close.
 * hd_cq_arm: about to wait on the descriptor (fi_trywait): 0 armed, -EAGAIN there is
 * something to read or do first.
 */
int hd_cq_wait(struct hd_cq *cq, uint64_t entries, int timeout_ms);
int hd_cq_wait_told(struct hd_cq *cq, uint64_t entries, int timeout_ms);
void hd_cq_signal(struct hd_cq *cq);
int hd_cq_fd(struct hd_cq *cq);
int hd_cq_arm(struct hd_cq *cq);

/*
 * hd_cq_notify: the next completion from now on puts the CQ's item into its channel, once;
 * solicited: the next that is HD_C_SOLICITED or an error. Asked for both, any will do. The node's
 * thread sees to it that it gets there if the program makes no progress.
 * hd_cq_notify_unread: so does, at once, one that has come since the last event and has not been
 * read yet: cards compare what they have written with what has been read, and there are programs
 * that do not look once more before they sleep.
 * hd_cq_moderate: from then on it gets there with so many such completions, or when so
 * many microseconds have passed since the first of them, or with an error; at once where
 * either is 0, as at first.
 * hd_cq_set_channel: tell another channel by another item, or none, from now on; what
 * is asked for is forgotten.
 * hd_cq_count: entries that wait to be read. hd_cq_resize: room for so many entries. -EINVAL: more
 * are in it; -ENOMEM; -EOVERFLOW: it has been overrun. hd_cq_room: how many it takes.
 */
void hd_cq_notify(struct hd_cq *cq, bool solicited);
void hd_cq_notify_unread(struct hd_cq *cq, bool solicited);
void hd_cq_moderate(struct hd_cq *cq, uint32_t count, uint32_t us);
void hd_cq_set_channel(struct hd_cq *cq, struct hd_channel *channel, struct hd_channel_item *item);
uint32_t hd_cq_count(const struct hd_cq *cq);
int hd_cq_resize(struct hd_cq *cq, uint32_t size);
uint32_t hd_cq_room(const struct hd_cq *cq);

/* ---- channels -------------------------------------------------------------------------------- */

/*
 * A channel tells a program by a descriptor that something has happened: an eventfd that holds one
 * count for each item that waits in it, so that it polls readable exactly while there is something
 * to take, and may be set non-blocking by the program. An item is part of an object of the front
 * (or of a CQ's owner: hd_cq_notify), and may wait several times. A channel has a lock of its own
 * (a leaf).
 *
 * hd_channel_open: a channel of this node; 0 and *out, -ENOMEM, -EMFILE. hd_channel_close:
 * nobody may use it any more.
 * hd_channel_fd: the descriptor, the same until close.
 * hd_channel_post: the item waits once more, behind the others. Any thread, with or
 * without the node's lock.
 * hd_channel_take: the oldest; -EAGAIN: none. *item->taken counts what was taken. Likewise.
 * hd_channel_forget: items with this counter wait no more; drop() is called for each, when it is
 * gone and no lock of ours is held; may be NULL. Returns the counter. Likewise.
 * hd_channel_wait: sleep until there is one, for at most so long (negative: no end), and make
 * progress in the node meanwhile. 0; -ETIMEDOUT; -ECANCELED: *stop (NULL: nothing) is set; -EAGAIN:
 * there is none and the program has set the descriptor non-blocking; -EINTR: a signal handler ran
 * that is not to restart calls; -ENOTRECOVERABLE. A point of cancellation. Called WITHOUT the lock.
 * hd_channel_sleep: the same without end, but leaves progress to the node's thread: for what comes
 * seldom, if ever.
 */
struct hd_channel_item {
	TAILQ_ENTRY(hd_channel_item) entry;
	void *owner;
	/* of the object that it is about; changed under the channel's lock alone */
	uint32_t *taken;
	uint32_t waiting; /* how often it is in the channel */
};
int hd_channel_open(struct hd_node *node, struct hd_channel **out);
void hd_channel_close(struct hd_channel *channel);
int hd_channel_fd(const struct hd_channel *channel);
void hd_channel_post(struct hd_channel *channel, struct hd_channel_item *item);
int hd_channel_take(struct hd_channel *channel, struct hd_channel_item **out);
uint32_t hd_channel_forget(struct hd_channel *channel, const uint32_t *taken,
			   void (*drop)(struct hd_channel_item *item));
int hd_channel_wait(struct hd_channel *channel, int timeout_ms, const atomic_bool *stop);
int hd_channel_sleep(struct hd_channel *channel);

/*
 * hd_node_sleep: poll(2) of descriptors of any kind, with progress in the node meanwhile, which
 * makes those of its channels and of event queues readable: returns how many are ready (0:
 * timeout_ms is over; negative: no end), -EINTR, as hd_channel_wait or with any signal,
 * -ENOTRECOVERABLE. fds has room for one more than count at its end, for our use. WITHOUT the lock;
 * a point of cancellation.
 * hd_channel_tend: whoever waits for this channel sleeps there from now on (or by false: polls its
 * descriptor), so the node's thread need not be called for it. With the lock.
 *
 * hd_busy_polled: hd_busy_poll_over of a wait that a signal is to end. One that comes while we look
 * is seen by its handler alone, and the sleep that follows would not end; so where a handler is set
 * up to interrupt calls, no habit of looking comes about. With the lock of the object.
 */
struct pollfd;
struct hd_busy_poll;
struct hd_busy_polling;
void hd_busy_polled(struct hd_busy_poll *poll, const struct hd_busy_polling *wait);
int hd_node_sleep(struct hd_node *node, struct pollfd *fds, unsigned long count, int timeout_ms,
		  bool any_signal);
void hd_channel_tend(struct hd_channel *channel, bool on);

/*
 * A notifier: a thread that waits at a channel and calls call(arg), without any lock, as long as
 * there is something in it: that takes it.
 * hd_notifier_open: 0 and *out, -ENOMEM, -EAGAIN. hd_notifier_close: call is not called any
 * more, and has returned, unless it is what closes the notifier. Before hd_channel_close; both
 * WITHOUT the node's lock.
 */
struct hd_notifier;
int hd_notifier_open(struct hd_channel *channel, void (*call)(void *arg), void *arg,
		     struct hd_notifier **out);
void hd_notifier_close(struct hd_notifier *notifier);

/* hd_thread_start: a thread of ours, which gets no signals of the program's: 0, -EAGAIN. */
int hd_thread_start(pthread_t *thread, void *(*fn)(void *), void *arg);

/* ---- counters -------------------------------------------------------------------------------- */

/*
 * Values may be read without the lock (relaxed atomics); wait as hd_cq_wait: -ETIMEDOUT, -EIO once
 * the error value moved, or -EINTR: a signal handler ran.
 */
int hd_cntr_open(struct hd_node *node, struct hd_cntr **out);
/* before it is used: it counts the bytes of what completes */
void hd_cntr_by_bytes(struct hd_cntr *cntr);
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
 * hd_cntr_arm: as hd_cq_arm; -EAGAIN also when a value has changed since the last
 * hd_cntr_poll or hd_cntr_arm.
 * hd_cntr_poll: the program is about to read both values: makes progress.
 */
int hd_cntr_arm(struct hd_cntr *cntr);
void hd_cntr_poll(struct hd_cntr *cntr);

/*
 * hd_cntr_add and the others above are the program's own doing. hd_cntr_event, hd_cntr_event_set
 * and hd_cntr_event_error change a counter because something has happened. hd_cntr_completed: an
 * operation of so many bytes has ended well. hd_cntr_events: a sum that moves with everything that
 * happens, errors as well, and with nothing that the program does itself.
 */
void hd_cntr_event(struct hd_cntr *cntr, uint64_t n);
void hd_cntr_completed(struct hd_cntr *cntr, uint64_t bytes);
void hd_cntr_event_set(struct hd_cntr *cntr, uint64_t v);
void hd_cntr_event_error(struct hd_cntr *cntr);
uint64_t hd_cntr_events(struct hd_cntr *cntr);

/*
 * A trigger: something to be done when a counter reaches a threshold. The front's, in memory of the
 * front; in use from hd_cntr_trigger until fire returns 0, or hd_trigger_cancel. fire is called
 * with the node's lock held, from the top of progress or of a call that changes the counter, those
 * of one counter in the order of their thresholds, equal ones in the order of hd_cntr_trigger. It
 * may post, and do what the engine allows under the lock, but not wait; it returns 0, and the
 * trigger may be gone by then, or -EAGAIN: there was no room, call again.
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
 * hd_cntr_trigger: puts it in place; fires it before it returns when the threshold is reached
 * already. A counter with triggers is in use, so that hd_cntr_close answers -EBUSY.
 * hd_trigger_cancel: takes one away that is in use.
 */
void hd_cntr_trigger(struct hd_cntr *cntr, struct hd_trigger *t);
void hd_trigger_cancel(struct hd_trigger *t);

/* ---- wait sets ------------------------------------------------------------------------------- */

/*
 * CQs and counters of any nodes, and event queues, slept on together. A set belongs to no node and
 * has a lock of its own: all these are called WITHOUT a node's lock, from any thread.
 *
 * hd_wset_open: 0 and *out, -ENOMEM, -EMFILE. hd_wset_close: -EBUSY while it has members or
 * sleepers. hd_wset_used: would it be?
 * hd_cq_join, hd_cntr_join, hd_evq_join: once in the life of the object, before the program has it;
 * *_leave: before it is closed. Threads that sleep on the set meanwhile take notice.
 * hd_wset_wait: as hd_cq_wait: 0: a CQ has an entry, a counter has changed since hd_cntr_poll, or
 * an event queue an event. -EINTR: a signal handler ran.
 * hd_wset_signal: wake its waiters once; hd_cq_signal on a member does the same.
 * hd_wset_fd, hd_wset_arm: as hd_cq_fd and hd_cq_arm.
 */
int hd_wset_open(struct hd_wset **out);
int hd_wset_close(struct hd_wset *set);
bool hd_wset_used(struct hd_wset *set);
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
 * A wake set: a mutex and a condition variable that are signalled for a wait set, by a thread of
 * its own. Its members' nodes need a lock.
 * hd_wake_set_open: 0 and *out, -ENOMEM, -EAGAIN. hd_wake_set_close: before the set is.
 * hd_wake_set_get: both belong to the wake set.
 * hd_wake_set_arm: about to wait for the condition, with the mutex held: as hd_cq_arm; rings
 * once after an answer of 0.
 */
struct hd_wake_set;
int hd_wake_set_open(struct hd_wset *set, struct hd_wake_set **out);
void hd_wake_set_close(struct hd_wake_set *wake_set);
void hd_wake_set_get(struct hd_wake_set *wake_set, pthread_mutex_t **mutex, pthread_cond_t **cond);
int hd_wake_set_arm(struct hd_wake_set *wake_set);

#endif
