/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * The shared-memory transport's own structures; only src/transport/shm includes this. Everything
 * is protected by the lock of the node that it belongs to, as engine/transport.h says, unless
 * its member says otherwise.
 *
 * Its files, lowest first: each calls those above it in this list alone (ci/rooms).
 *
 *	map.c      the memory that is shared, made, checked and mapped
 *	record.c   what is said to make a link
 *	wake.c     sleeping and waking: packets lie in rings (ring.h)
 *	poke.c     the other process's memory as a file
 *	gone.c     whether the other process is no more
 *	may.c      whether each side may copy from and to the other's memory
 *	hot.c      which links are polled
 *	fetch.c    copies of long messages that are under way, and how they end
 *	life.c     a link is made, lives and ends
 *	send.c     packets that go out
 *	copy.c     long messages, copied by both ends
 *	offer.c    the sender's half of that
 *	chunk.c    the receiver's: messages that he fetches each by itself, with the sender's help,
 *	row.c      several in one call,
 *	get.c     and which of the two
 *	direct.c   one-sided operations: what we do to the other side's regions, and they to ours
 *	request.c  the address at which others join, and asking there
 *	greet.c    how the link is made then
 *	join.c     letting in
 *	link.c     a link's operations, and packets that come in
 *	shm.c      the table, the port, and polling its links
 */
#ifndef HD_SHM_SHM_H
#define HD_SHM_SHM_H

#include "base/idmap.h"
#include "base/macros.h"
#include "engine/transport.h"
#include "transport/shm/ring.h"

#include <sys/socket.h>
#include <sys/types.h>
#include <unistd.h>

extern const struct hd_transport hd_shm_transport;

enum hd_shm_state {
	HD_SHM_REQUESTING, /* joining: the join socket's queue is full, try again */
	HD_SHM_JOINING,	   /* joining: JOIN is sent, WELCOME must come */
	HD_SHM_GREETING,   /* joined: somebody has come in, JOIN must come */
	HD_SHM_WAITING,	   /* joined: WELCOME is sent, READY must come */
	HD_SHM_LIVE,	   /* packets flow */
	HD_SHM_ENDING,	   /* the other side is gone; what it had sent is being delivered */
	HD_SHM_STATES,
};

/* What we know of the copies that we help with, by the other side's index. */
struct hd_shm_help {
	TAILQ_ENTRY(hd_shm_help) entry; /* link->helps while offer is set */
	struct hd_offer *offer;		/* NULL: free */
	uint64_t len;
	uint32_t gen;
	uint32_t helped; /* chunks finished by us */
	int count;
	struct iovec iov[HD_SHM_SEGS]; /* addresses in the other process */
};

TAILQ_HEAD(hd_shm_gets, hd_get);
TAILQ_HEAD(hd_shm_helps, hd_shm_help);

#define HD_SHM_PORTION 32

/* The other process: gone.c, poke.c. */
struct hd_shm_peer {
	struct hd_node_page *page; /* its node's, read-only; NULL: not yet */
	pid_t pid;		   /* 0: it is not visible from here */
	bool probed;		   /* a read of its memory has shown that it is that process */
	/* hd_shm_born() of it, where there was no pidfd of it; 0: not known */
	uint64_t born;
	int poke_fd; /* its memory as a file; -1: not open */
	bool poke_tried;
	bool poke_forces;      /* hd_shm_poke_forces: not for writes */
	int wake;	       /* its eventfd */
	struct hd_watch pidfd; /* fd -1: there is none */
};

/* Long messages. */
struct hd_shm_copying {
	struct hd_shm_gets gets; /* what we fetch, oldest first */
	struct hd_shm_gets row;	 /* what we fetch without help, several in one call, oldest first */
	uint64_t row_bytes;
	struct hd_shm_helps helps; /* what we help with, oldest first */
	struct hd_shm_help *help;  /* [HD_SHM_COPIES], made on first use */
	/* of the messages that we fetch, and of those that the other side does: [HD_SHM_COPIES] */
	struct hd_shm_copy *ours, *theirs;
	/* numbers of the offers that stand, at hd_shm_offer_index: ours, and the other side's */
	_Atomic uint32_t *offered, *offers_there;
	uint32_t used; /* bit i: copy i of ours is in use */
	/* hd_now_ns(): that long a helper has kept us waiting; 0: none does */
	uint64_t kept_since;
	uint32_t gen[HD_SHM_COPIES];
	struct hd_idmap offers; /* struct hd_offer by the number that the other side names it by */
};

/* One-sided operations that are to come behind what was sent. */
struct hd_shm_fence {
	uint32_t token;	  /* of our last FENCE */
	uint32_t marked;  /* tx.head when it had been sent */
	uint32_t awaited; /* token that somebody wants to be woken for */
	bool awaits;
};

/* Does the other node poll? */
struct hd_shm_liveness {
	uint32_t heard, turns_seen;  /* rx.tail and its count of turns when we last looked, */
	uint64_t heard_at, turns_at; /* hd_ticks(), */
	uint64_t lively_at;	     /* and when we last found that it does; */
	bool lively;		     /* the last look did */
};

/* How it comes about: join.c, greet.c. */
struct hd_shm_setup {
	struct hd_timer timer;
	struct hd_patience patience; /* until we give up */
	struct hd_shm_advert advert; /* joining: where */
	struct hd_node_id whose;     /* joining: whom; zero: whoever is there */
	struct hd_node_id join_id;   /* joined: who has come in, from WAITING on */
	int mem_fd;		     /* joining: until it is handed over */
};

/* How it ends. */
struct hd_shm_ending {
	uint32_t drain; /* packets that may still be delivered */
	int err;
	const char *why;
};

struct hd_shm_link {
	struct hd_link base; /* first */

	/* for every packet that goes out */
	_Alignas(64) struct hd_shm_tx tx;
	const _Atomic uint32_t *peer_sleep; /* sleep_seq of the other node's page */
	_Atomic uint64_t *accept;	    /* hd_link_ops.accept: our rows */
	uint32_t woken;			    /* in which sleep we have woken it */
	bool hot;			    /* in port->hot; else in port->cold once it is live */
	bool starved; /* the ring was full when we last wanted to send; own->starved tells */
	bool fenced;  /* we must order a message before the look at peer_sleep ourselves */

	/* for every packet that comes in */
	_Alignas(64) struct hd_shm_rx rx;
	uint32_t idle;	  /* polls in a row that found nothing */
	uint32_t place;	  /* in port->hot or port->cold */
	uint32_t portion; /* packets delivered by one poll, at most */
	bool attention;	  /* there is more to do than to look at the ring: link.c */

	/* for every one-sided operation of ours, and the rest */
	_Alignas(64) struct hd_shm_side *own, *other;
	enum hd_shm_state state;
	bool reaches; /* it is live, and we can copy directly: hd_shm_may_look */
	struct hd_shm_peer peer;
	struct hd_shm_fence fence;
	struct hd_shm_liveness liveness;
	struct hd_shm_copying copying;

	int side; /* which of mem->side is ours */
	struct hd_shm_mem *mem;
	_Atomic uint64_t *accepted; /* and the other side's */
	bool counted;		    /* in port->live */
	bool unmet;		    /* in port->unmet */
	uint32_t grant_seen;	    /* what was granted when we last looked */
	struct hd_watch sock;	    /* fd -1: closed */
	struct hd_shm_setup setup;
	struct hd_shm_ending ending;
	TAILQ_ENTRY(hd_shm_link) pending_join; /* port->pending_joins while GREETING or WAITING */
	TAILQ_ENTRY(hd_shm_link) unmet_entry;  /* port->unmet while `unmet` */
	LIST_ENTRY(hd_shm_link) entry;	       /* port->all */
};

struct hd_shm_cold {
	const _Atomic uint32_t *seq;
	uint32_t want;
	struct hd_shm_link *link;
};

/* Whoever may be in the middle of a copy from or to memory of ours: gone.c. */
struct hd_shm_process {
	pid_t pid;   /* 0: it is not visible from here */
	int pidfd;   /* -1: there is none */
	bool probed; /* this word was found in its memory: */
	uint64_t probe_addr, probe_value;
	uint64_t born; /* 0: not known */
};

/*
 * The memory of a link that we closed while the other side was copying from or to a region of ours,
 * kept until it has finished.
 */
struct hd_shm_late {
	struct hd_shm_mem *mem;
	const struct hd_shm_side *other;
	struct hd_shm_process who; /* its pidfd is ours, -1: there is none */
	LIST_ENTRY(hd_shm_late) entry;
};

struct hd_shm_port {
	struct hd_port base; /* first */

	/*
	 * upcall: what links of ours can do, [1] those that are `fenced`: link.c's, for
	 * greet.c and life.c below it
	 */
	const struct hd_link_ops *link_ops;

	/* every turn of progress */
	struct hd_shm_link **hot; /* links with recent traffic: all of them are polled */
	struct hd_shm_cold *cold; /* the others: a few of them are looked at, in turn */
	uint32_t hot_count, cold_count, cold_next;
	uint32_t room; /* entries of hot and of cold; at least links */

	LIST_HEAD(, hd_shm_link) all;
	uint32_t links; /* in all */
	uint32_t live;	/* those of them in hot or cold; above 0 the port is active */
	bool barrier;	/* membarrier(2) works */
	LIST_HEAD(, hd_shm_late) late;
	/* of our table of regions, for which a peer that copies was waited last, less 1 */
	uint32_t held_row;
	uint64_t held_since; /* hd_now_ns(): since then */

	struct hd_watch join_watch; /* fd -1: nobody has asked for an advert yet */
	struct hd_timer join_timer;
	struct hd_shm_advert advert;
	TAILQ_HEAD(, hd_shm_link) pending_joins;
	uint32_t pending_join_count;
	/* joined, and live: nobody's yet when they were looked at last */
	TAILQ_HEAD(, hd_shm_link) unmet;
};

static inline struct hd_shm_link *hd_shm_link_of(struct hd_link *link)
{
	return (struct hd_shm_link *)link;
}

static inline struct hd_shm_port *hd_shm_port_of(struct hd_shm_link *link)
{
	return (struct hd_shm_port *)link->base.port;
}

/* ---- map.c ---- */

/*
 * hd_shm_mem_make: memory for a link of side 0, mapped, and its sealed
 * memfd. 0 or a negative errno.
 */
int hd_shm_mem_make(struct hd_shm_mem **mem, int *fd);

/*
 * hd_shm_mem_map: check and map what somebody has handed over. -EPROTO: it is not what it should
 * be. fd stays the caller's.
 */
int hd_shm_mem_map(int fd, struct hd_shm_mem **mem);
void hd_shm_mem_unmap(struct hd_shm_mem *mem);

/* hd_shm_map_forked: nothing of what the parent has mapped is here. */
void hd_shm_map_forked(void);

/* hd_shm_page_map: check and map another node's page, read-only. -EPROTO as above. */
int hd_shm_page_map(int fd, const struct hd_node_id *id, struct hd_node_page **page);
void hd_shm_page_unmap(struct hd_node_page *page);

/* ---- record.c ---- */

struct hd_shm_record {
	struct hd_shm_hello hello;
	int fd[HD_SHM_HELLO_FDS];
	int fds;
};

/*
 * hd_shm_record_send: 0 or a negative errno; descriptors stay the caller's. hd_shm_record_recv: 0;
 * -EAGAIN: nothing there; -ECONNRESET: the other side has hung up; -EPROTO: not a record; -EMFILE:
 * not all of its descriptors could be taken. Those that were are the caller's, for
 * hd_shm_record_close_fds; -1 stands for one that he has taken over. hd_shm_record_check: what
 * every record must satisfy: `min` descriptors, and the pidfd if it says so. 0, -EPROTO, -EACCES.
 */
int hd_shm_record_send(int sock, const struct hd_shm_record *r);
int hd_shm_record_recv(int sock, struct hd_shm_record *r);
void hd_shm_record_close_fds(struct hd_shm_record *r);
int hd_shm_record_check(const struct hd_shm_record *r, enum hd_shm_hello_step step, int min,
			const uint8_t nonce[16]);

/* ---- wake.c ---- */

/*
 * hd_shm_barrier_init: register for other processes' barriers; false:
 * membarrier(2) does not work here.
 */
bool hd_shm_barrier_init(void);

/*
 * hd_shm_barrier: everything before it here is visible to whoever we have not seen the newest
 * stores of. false: it failed.
 */
bool hd_shm_barrier(void);

/* hd_shm_wake: the other node sleeps in this one: write to its eventfd. */
void hd_shm_wake(struct hd_shm_link *link, uint32_t seq);

/*
 * hd_shm_asleep: something has been published: its count, in which the other node sleeps and has
 * not been woken, or 0. The compiler must not move the load up; that the processor does not is the
 * sleeper's business, unless `fenced`.
 */
static inline uint32_t hd_shm_asleep(const struct hd_shm_link *link, bool fenced)
{
	uint32_t seq;

	if (fenced)
		atomic_thread_fence(memory_order_seq_cst);
	else
		atomic_signal_fence(memory_order_seq_cst);
	seq = atomic_load_explicit(link->peer_sleep, memory_order_relaxed);
	return hd_unlikely((seq & 1) && seq != link->woken) ? seq : 0;
}

/*
 * hd_shm_wake_check: something has been published that the other node must
 * see; wake it if it sleeps.
 */
static inline void hd_shm_wake_check(struct hd_shm_link *link, bool fenced)
{
	uint32_t seq = hd_shm_asleep(link, fenced);

	if (hd_unlikely(seq))
		hd_shm_wake(link, seq);
}

/* ---- poke.c ---- */

/*
 * hd_shm_poke_forces: does a write by /proc/PID/mem go to pages that are protected? Tried once in a
 * process, on a page of its own.
 */
bool hd_shm_poke_forces(void);

/* ---- gone.c ---- */

/*
 * hd_shm_born: when that process began, in ticks of the kernel's; 0: cannot be known.
 * hd_shm_probe_word: is this word in that process's memory? 0, ESRCH: not that, or there is no such
 * process; or another positive errno. hd_shm_probe_page: the same of the word that the other node's
 * page speaks of.
 * hd_shm_is_gone: the process at the other end is dead, or has become another program: it is in
 * the middle of nothing. hd_shm_process_of, hd_shm_process_is_gone: the same later, when there
 * may be no link any more.
 */
uint64_t hd_shm_born(pid_t pid);
int hd_shm_probe_word(pid_t pid, uint64_t addr, uint64_t want);
int hd_shm_probe_page(const struct hd_shm_peer *peer);
void hd_shm_process_of(const struct hd_shm_peer *peer, struct hd_shm_process *p);
bool hd_shm_process_is_gone(const struct hd_shm_process *p);
bool hd_shm_is_gone(const struct hd_shm_peer *peer);

/* ---- may.c ---- */

/*
 * hd_shm_copy_init: ask the kernel to let peers copy from and to this
 * process, if it restricts that.
 */
void hd_shm_copy_init(void);

/*
 * hd_shm_probe: find out whether we reach the other process, and say so in the link's memory.
 * False: another one has its number here.
 */
bool hd_shm_probe(struct hd_shm_link *link);

/*
 * hd_shm_we_can, hd_shm_they_can: may this side, or the other, copy from and to the other's
 * memory, as far as is known?
 */
bool hd_shm_we_can(const struct hd_shm_link *l);
bool hd_shm_they_can(const struct hd_shm_link *l);

/* hd_shm_refused: for good: the link falls back to what the other side can do, or to packets. */
void hd_shm_refused(struct hd_shm_link *l, int error);

/* hd_shm_may_look: its state has changed, or whether we can copy: set `reaches`. */
void hd_shm_may_look(struct hd_shm_link *link);

/* hd_shm_link_show: write what `heddle info` shows about this link into its row. */
void hd_shm_link_show(struct hd_shm_link *link);

/* ---- hot.c ---- */

/* hd_shm_poll_reserve: room for one link more. 0, or -ENOMEM. */
int hd_shm_poll_reserve(struct hd_shm_port *port);

/*
 * hd_shm_poll_add: from now on the link is polled; hot, until it proves idle.
 * hd_shm_poll_drop takes it out again.
 */
void hd_shm_poll_add(struct hd_shm_link *link);
void hd_shm_poll_drop(struct hd_shm_link *link);

/*
 * hd_shm_heat: poll this live link in every turn. hd_shm_cool: it is hot, and is no longer to be.
 */
void hd_shm_heat(struct hd_shm_link *link);
void hd_shm_cool(struct hd_shm_link *link);

/* ---- fetch.c ---- */

/* As hd_link_ops.unget and settled. */
int hd_shm_unget(struct hd_link *link, struct hd_get *get, bool wait);
bool hd_shm_settled(struct hd_link *link);

/*
 * hd_shm_copy_stop: forget every get and every request for help; hd_shm_settled tells when nobody
 * writes to the buffers any more.
 * hd_shm_copy_end: waits for that.
 */
void hd_shm_copy_stop(struct hd_shm_link *link);
void hd_shm_copy_end(struct hd_shm_link *link);

/* ---- life.c ---- */

/*
 * hd_shm_link_make: an empty link of this port, without an engine's part yet, or NULL.
 * hd_shm_link_free frees all it holds.
 */
struct hd_shm_link *hd_shm_link_make(struct hd_shm_port *port);
void hd_shm_link_free(struct hd_shm_link *link);

/*
 * hd_shm_link_missed: likewise, and whoever has joined by it may be nobody's caller any more.
 * hd_shm_link_met: it is none of port->unmet.
 */
void hd_shm_link_missed(struct hd_shm_link *l);
void hd_shm_link_met(struct hd_shm_link *l);

/*
 * hd_shm_link_ready: the memory is there: set up rings and operations.
 * hd_shm_link_live: both sides are ready.
 */
void hd_shm_link_ready(struct hd_shm_link *link);
void hd_shm_link_live(struct hd_shm_link *link);

/*
 * hd_shm_watch_begin: watch this descriptor, 0 or a negative errno. hd_shm_watch_end: no longer, if
 * it is watched; it stays open.
 */
int hd_shm_watch_begin(struct hd_node *node, struct hd_watch *watch, int fd,
		       void (*fn)(struct hd_watch *, uint32_t));
void hd_shm_watch_end(struct hd_node *node, struct hd_watch *watch);

/*
 * hd_shm_hang_up: close the UNIX socket, which the other side notices at once, and no
 * longer wait for its own end.
 */
void hd_shm_hang_up(struct hd_shm_link *link);

/*
 * hd_shm_link_end: the other side is gone: deliver what it had sent, then report the
 * link down with err and why.
 */
void hd_shm_link_end(struct hd_shm_link *link, int err, const char *why);

/* hd_shm_link_fail: the link is broken at once. */
void hd_shm_link_fail(struct hd_shm_link *link, int err, const char *why);

/* hd_shm_fd_close: -1: there is none. */
static inline void hd_shm_fd_close(int fd)
{
	if (fd >= 0)
		close(fd);
}

/* ---- send.c ---- */

/* As hd_link_ops.send and its like; `fenced`: for links that are. */
int hd_shm_send(struct hd_link *link, const struct hd_pkt *pkt, const void *buf, size_t len);
int hd_shm_sendv(struct hd_link *link, const struct hd_pkt *pkt, const struct iovec *iov, int count,
		 size_t len);
int hd_shm_send_fenced(struct hd_link *link, const struct hd_pkt *pkt, const void *buf, size_t len);
int hd_shm_sendv_fenced(struct hd_link *link, const struct hd_pkt *pkt, const struct iovec *iov, int count,
			size_t len);
int hd_shm_put(struct hd_link *link, const struct hd_pkt *pkt, const struct iovec *iov, int count, size_t len,
	       struct hd_put *put);
int hd_shm_unput(struct hd_link *link, struct hd_put *put);
void hd_shm_warm(struct hd_link *link);

/* hd_shm_link_send: a packet of the transport's own; as hd_link_ops.send. */
int hd_shm_link_send(struct hd_shm_link *link, const struct hd_pkt *pkt, const void *buf, size_t len);

/*
 * hd_shm_room_made: has the other side read something since the ring was found full? Told once; who
 * finds it full again asks again.
 */
bool hd_shm_room_made(struct hd_shm_link *link);

/* ---- offer.c ---- */

/* As hd_link_ops.offer and unoffer. */
size_t hd_shm_offer(struct hd_link *link, struct hd_offer *o, void *blob);
void hd_shm_unoffer(struct hd_link *link, struct hd_offer *o);

/*
 * hd_shm_help_asked: a packet HD_SHM_PKT_HELP has come. 0, or -EPROTO: nobody
 * of ours can have sent it.
 */
int hd_shm_help_asked(struct hd_shm_link *link, const struct hd_pkt *pkt, const void *payload, size_t len);

/* ---- get.c ---- */

/* As hd_link_ops.get. */
int hd_shm_get(struct hd_link *link, struct hd_get *get);

/* ---- direct.c ---- */

int64_t hd_shm_direct(struct hd_link *link, const struct hd_direct *r);
int hd_shm_fence(struct hd_link *link, uint32_t *token);
bool hd_shm_passed(struct hd_link *link, uint32_t token);
bool hd_shm_polls(struct hd_link *link);
int hd_shm_settle(struct hd_port *port, uint32_t row);

/* hd_shm_fence_met: a packet HD_SHM_PKT_FENCE has come. */
void hd_shm_fence_met(struct hd_shm_link *link, const struct hd_pkt *pkt);

/* hd_shm_direct_arm: has a token been answered that somebody waits for? */
bool hd_shm_direct_arm(struct hd_shm_link *link);

/*
 * hd_shm_direct_shut: the link is about to be freed: the other side begins no more copies,
 * and its memory is kept for as long as it is in the middle of one. hd_shm_late_free
 * forgets all that is kept.
 */
void hd_shm_direct_shut(struct hd_shm_link *link);
void hd_shm_late_free(struct hd_shm_port *port);

/* ---- request.c ---- */

/*
 * hd_shm_join_address: where the node that has said this listens. hd_shm_join_socket: a socket for
 * either end, or a negative errno.
 */
struct sockaddr_un;
socklen_t hd_shm_join_address(struct sockaddr_un *sa, const uint8_t join_name[16]);
int hd_shm_join_socket(void);

/*
 * hd_shm_join_request: a socket that is connected to this join socket, or a negative errno;
 * -EAGAIN: too many wait there.
 */
int hd_shm_join_request(const struct hd_shm_advert *advert);

/*
 * hd_shm_join_process: a pidfd of the process whose join socket this is; as hd_transport.process.
 */
int hd_shm_join_process(const struct hd_shm_advert *advert);

/*
 * hd_shm_who: the kernel's word on who is at the other end of a UNIX socket; 0 or a negative errno.
 * hd_shm_pidfd: of this process; -ESRCH: there is none.
 */
int hd_shm_who(int sock, struct ucred *out);
int hd_shm_pidfd(pid_t pid);

/* ---- greet.c ---- */

#define HD_SHM_PENDING_JOINS 32 /* half-made links of those that joined us */

/*
 * hd_shm_pending_join_add: somebody is at the join socket with this socket, which is ours from now
 * on, unless the answer is negative.
 */
int hd_shm_pending_join_add(struct hd_shm_port *port, int fd);

/* hd_shm_pending_join_leave: who came in is a pending join no more. */
void hd_shm_pending_join_leave(struct hd_shm_link *link);

/*
 * hd_shm_join: begin a link to the node that wrote the advert. As hd_transport.connect;
 * whose NULL: whoever that is.
 */
int hd_shm_join(struct hd_shm_port *port, const struct hd_shm_advert *advert, const struct hd_node_id *whose,
		struct hd_shm_link **out);

/* ---- join.c ---- */

int hd_shm_join_open(struct hd_shm_port *port);
void hd_shm_join_close(struct hd_shm_port *port);

/* ---- link.c ---- */

/* As hd_shm_port.link_ops. */
extern const struct hd_link_ops hd_shm_link_ops[2];

/*
 * hd_shm_link_poll: deliver what has come, in a bounded portion; returns the number of
 * packets and other events.
 */
int hd_shm_link_poll(struct hd_shm_link *link);

/*
 * hd_shm_link_arm: is there something that the node must see before it sleeps? After the barrier.
 */
bool hd_shm_link_arm(struct hd_shm_link *link);

#endif
