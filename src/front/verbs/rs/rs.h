/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * rsocket(7): streams over a queue pair of an id. Both ends are ours. A stream is cut into
 * messages, each into a block of registered memory of the receiver's, and its sender knows how many
 * of those are free (credit); so what has been sent arrives without the other program. The
 * immediate data of a message says what it is, and gives back credit.
 *
 *	write    credit, and a block of the sender's, or few enough bytes to be sent inline → posted
 *	read     blocks that have arrived, oldest first → emptied, posted again, which is credit for
 *	         the other end
 *
 * The number of an rsocket is a descriptor of its own, rs.fd, which wakes its sleepers (rs/wait.c).
 * Locks: rs.lock is taken before all of the front's and engine's, and nobody holds two; it is given
 * up while a thread sleeps. It is none of those that fork knows, as locks are made while it is
 * held; so a child touches no rsocket of its parent's.
 *
 * The files, lowest first: each calls those above it in this list alone (ci/rooms).
 *
 *	defaults.c  what nobody has set
 *	name.c      names, as programs have them
 *	change.c    ringing for who sleeps
 *	table.c     rsockets by number
 *	maps.c      memory that the other end writes
 *	receive.c   blocks that have come
 *	stream.c    the sending half, and what both stand on
 *	dest.c      whom datagrams go to
 *	dgram.c     names and queue pair of datagram rsockets
 *	route.c     the path of a stream
 *	step.c      what happens
 *	wait.c      sleeping for that
 *	watch.c     sleeping for several
 *	set.c       sets of them
 *	bytes.c     what programs send and receive by streams,
 *	datagram.c  and by datagrams
 *	iomap.c     riomap
 *	options.c   options
 *	rs.c        life
 *	callers.c   who calls a listener
 *	connect.c   connections
 *	close.c     rclose
 *	io.c        the calls that send and receive
 *	poll.c      rpoll
 *	repoll.c    repoll_wait
 */
#ifndef HEDDLE_FRONT_VERBS_RS_H
#define HEDDLE_FRONT_VERBS_RS_H

#include "base/busy_poll.h"
#include "front/verbs/cm/cm.h"

#include <poll.h>
#include <rdma/rsocket.h>
#include <sys/epoll.h>

#define RS_BLOCK 16384	    /* bytes of a message, at most */
#define RS_SMALL 1024	    /* those that need no block to be sent: the device's inline data */
#define RS_LEAST_BLOCKS 4   /* each way */
#define RS_MOST_BLOCKS 1024 /* the same */
/* messages that are no data, and need no credit: receives and places in the send queue for them */
#define RS_CONTROL 8
#define RS_MOST_MAPS 4096 /* RDMA_IOMAPSIZE */
/* that rclose waits for what has been sent, unless SO_LINGER says otherwise */
#define RS_CLOSE_MS 10000
#define RS_WATCHED 3 /* descriptors that a sleeper polls for one */

enum rs_state {
	RS_OPEN,
	RS_LISTENING,
	RS_ADDRESSING, /* rconnect, and its steps */
	RS_ROUTING,
	RS_CONNECTING,
	RS_ACCEPTED, /* by us: the caller has not heard of it */
	RS_CONNECTED,
	RS_OVER, /* it did not come about, or has been disconnected */
	RS_DATAGRAM,
};

/*
 * Immediate data: what it is in the highest four bits, and credit that goes
 * back in the lowest sixteen.
 */
enum rs_kind {
	RS_DATA,
	RS_CREDIT,
	RS_FIN, /* nothing more comes; with a byte: nor is anything read any more */
	RS_MAP, /* struct rs_map_wire: memory that may be written, riomap */
};

/* Settings, from rsetsockopt or the files in /etc/rdma/rsocket. */
struct rs_options {
	int sndbuf, rcvbuf, sq_size, rq_size, inline_size, iomaps;
	int reuse, v6only, nodelay, keepalive, oob_inline, broadcast, keep_idle, keep_count, keep_interval;
	/*
	 * kept and told, and nothing else; at first what a datagram holds, for programs
	 * make theirs as long as this
	 */
	int maxseg;
	int tos, tclass; /* of IPv4, of IPv6 */
	struct linger linger;
};

struct rs_arrived {
	uint32_t block, len;
};

/* What is told of a place in the table; network byte order. len 0: it is free again. */
struct rs_map_wire {
	__be32 index, key;
	__be64 offset, addr, len;
};

/* One end's memory that the other may write. */
struct rs_map {
	uint64_t offset, addr, len;
	uint32_t key;	   /* for the other end; theirs: 0: the place is free */
	struct ibv_mr *mr; /* ours; NULL: the place is free */
	bool shown;	   /* the other end knows of it */
};

struct rs_dgram; /* rs/dgram.c */

/* How far its connection has come, and how it came to its end. */
struct rs_conn {
	enum rs_state state;
	int err; /* positive: told once, rs_conn_err */
	bool eof, shut_read, shut_write;
	bool deaf; /* the other end has shut both ways: nothing can be sent to it */
	bool met;  /* it has been connected, perhaps no longer */
	/* the other end has gone; something else than that was the end of it */
	bool parted, broken;
};

/* Who sleeps: rs/wait.c. */
struct rs_waiting {
	uint32_t changes, rings, sleepers, to_wake;
	bool ring_again; /* something has happened since those were rung for who are not up yet */
	/* news for who reads; sends that found no room: the edges of EPOLLET */
	uint32_t came, refused;
	struct hd_busy_poll look;
};

/* What carries both directions once it is connected: rs/connect.c. */
struct rs_verbs {
	struct ibv_pd *pd;
	struct ibv_mr *mr; /* of the blocks of both directions */
	struct ibv_qp *qp; /* of a stream it is the id's */
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;  /* of both directions */
	bool armed, tended; /* the next completion is told of by the channel: rs/wait.c */
};

/* What comes: rs/receive.c. */
struct rs_inbound {
	char *mem; /* the blocks; those of struct rs_outbound are behind them */
	uint32_t blocks, posts;
	struct rs_arrived *arrived; /* a ring of `posts` */
	/* oldest; how many; bytes of the oldest that have been read */
	uint32_t first, count, taken;
	uint32_t owed;			  /* credit to be given back */
	struct sockaddr_storage *senders; /* datagrams: of what has arrived, a ring as that is */
};

/* What goes: rs/stream.c. */
struct rs_outbound {
	char *mem;
	uint32_t blocks, block, free; /* blocks; the next to be used; how many may be */
	/* of the queue; posted; completed; posted since one that will tell */
	uint32_t places, sent, done, untold;
	uint32_t credit, peer_block; /* what the other end takes: messages, and bytes of one */
	bool is_kept; /* the program has been told that there is none, and has sent nothing since */
};

/* riomap: rs/maps.c. */
struct rs_maps {
	struct rs_map *ours, *theirs; /* ours, as many as the other end takes; theirs: opt.iomaps */
	struct rs_map *locals;	      /* those that the other end does not know of */
	uint32_t count, local_count;
};

/* Of a listener: who has called, is connected, and has not been accepted: rs/callers.c. */
struct rs_callers {
	struct rs *first, **end; /* by rs.behind */
	int count, backlog;
	int err;     /* what kept one from being let in, positive: told once */
	bool served; /* by the thread */
	pthread_t thread;
};

/* The path that a program wants, until it is used: rs/route.c. */
struct rs_route {
	void *data; /* struct ibv_path_data, one or several; NULL: whatever path there is */
	size_t len;
};

struct rs {
	pthread_mutex_t lock;
	int users;	/* calls, and one while it is open: under the table's lock */
	uint32_t forks; /* rs_forks when it was made */
	/* upcall of table.c's, without a lock: nobody has it any more; rs.c frees it */
	void (*last)(struct rs *rs);
	int fd;
	bool closing, closed; /* rclose has begun; it waits for nothing any more */
	bool nonblocking, cloexec;
	uint32_t sets; /* that it is in */
	int family, type;
	struct rdma_event_channel *ch;
	struct rdma_cm_id *id;
	struct rs_options opt;
	struct rs_route route;
	struct rs_conn conn;
	struct rs_waiting wait;
	struct rs_verbs v;
	struct rs_inbound in;
	struct rs_outbound out;
	struct rs_maps maps;
	struct rs_dgram *dgram;
	struct rs_callers callers;
	/* the caller who comes after this one: of the listener's, with its lock */
	struct rs *behind;
};

/* ---- rs/table.c, rs/rs.c --------------------------------------------------------------------- */

/*
 * rs_forks: how often this process is a child of one with rsockets. rs_table_add: it can be
 * found by its number: 0, -ENOMEM. rs_get: one user more, who gives it back by rs_put; a
 * parent's too. All without a lock.
 */
uint32_t rs_forks(void);
int rs_table_add(struct rs *rs);
struct rs *rs_get(int fd);
void rs_put(struct rs *rs);

/*
 * rs_enter: the rsocket with this number, with its lock; NULL with errno: EBADF: there is none, or
 * rclose has begun, which may wait; EIO: it is a parent's. rs_leave gives both back; *rc as the
 * functions of sockets return it. rs_is: is this number an rsocket's?
 */
struct rs *rs_enter(int fd);
int rs_leave(struct rs *rs, int rc);
bool rs_is(int fd);

/*
 * rs_open: a new one, with an id of its own unless one is given, which moves to its channel; NULL
 * with errno, and the id has gone. One whose id was given has no number (fd is -1) until rs_number:
 * 0, -errno. rs_drop: it is no longer open: the last call that is in it frees it. All without its
 * lock.
 */
struct rs *rs_open(int family, int type, struct rdma_cm_id *id);
int rs_number(struct rs *rs);
void rs_drop(struct rs *rs);

/*
 * rs_next: the first open one with a number from *fd on, entered as by rs_enter; *fd is the one
 * behind it then. NULL: none.
 */
struct rs *rs_next(int *fd);

/* With the lock, from here on, but where it says otherwise. */

/* ---- rs/route.c ------------------------------------------------------------------------------ */

/*
 * rs_route_set, rs_route_get: RDMA_ROUTE: 0, -EINVAL: no such length, or no room for it;
 * -ENOMEM. rs_route_resolve: the id's address is known: go that way, or whatever way there is. 0 or
 * -errno. rs_route_drop: it goes.
 */
int rs_route_set(struct rs_route *route, const void *data, size_t len);
int rs_route_get(const struct rs_route *route, const struct rdma_cm_id *id, void *data, socklen_t *len);
int rs_route_resolve(struct rs_route *route, struct rdma_cm_id *id);
void rs_route_drop(struct rs_route *route);

/* ---- rs/step.c ------------------------------------------------------------------------------- */

/* rs_step: take in what has happened. */
void rs_step(struct rs *rs);
/*
 * rs_greet: connect or accept, with our greeting; the rsocket gets its queue pair and is in
 * that state. 0 or -errno.
 */
int rs_greet(struct rs *rs, enum rs_state state, int (*go)(struct rdma_cm_id *, struct rdma_conn_param *));

/* ---- rs/change.c, rs/wait.c ------------------------------------------------------------------ */

/*
 * rs_changed: somebody who sleeps may have to look. rs_bell_changed, rs_bell_up: for
 * something else that is slept for, by this descriptor; who sleeps counts in wait->sleepers,
 * and has heard wait->rings.
 */
void rs_changed(struct rs *rs);
void rs_bell_changed(struct rs_waiting *wait, int fd);
void rs_bell_up(struct rs_waiting *wait, int fd, uint32_t heard);

/*
 * rs_lie_down: about to sleep for what happens to it, with progress in `node`: fills p, which has
 * room for RS_WATCHED, and returns how many; 0: something has happened since rs->wait.changes was
 * `seen`, look again. *heard is for rs_get_up, when it is over.
 */
int rs_lie_down(struct rs *rs, struct hd_node *node, uint32_t seen, struct pollfd *p, uint32_t *heard);
void rs_get_up(struct rs *rs, uint32_t heard);

/*
 * rs_sleep_aside: sleep for it in a thread of ours, which makes no progress; calls:
 * also for events of its id.
 */
void rs_sleep_aside(struct rs *rs, bool calls);

/* rs_node: where it is; NULL: nowhere yet, and nothing will happen to it. */
struct hd_node *rs_node(const struct rs *rs);

/*
 * rs_wait: until something has happened, so long at most (negative: no end). The lock
 * is given up meanwhile. 0, -EAGAIN: it is not to wait; -ETIMEDOUT, -EINTR, -EBADF: it
 * has been closed meanwhile.
 */
int rs_wait(struct rs *rs, bool may_wait);
int rs_wait_for(struct rs *rs, int ms);

/* ---- rs/watch.c ------------------------------------------------------------------------------ */

/* What is slept for. */
struct rs_watched {
	struct rs *rs; /* whose user the caller is; NULL: none */
	uint32_t seen; /* rs->wait.changes when it was looked at */
	uint32_t ring;
	bool down; /* rs_lie_down has been called */
};

struct rs_watch {
	struct rs_watched *rs;
	size_t count;
	struct pollfd *on; /* the kernel's, then room for RS_WATCHED of each of rs, and one more */
	nfds_t kernels;
	struct hd_node *node; /* where it makes progress meanwhile; may be NULL */
};

/*
 * rs_events: what poll(2) would say; with its lock. rs_watch_sleep: until something has happened,
 * so long at most: 0, -errno; without a lock.
 */
short rs_events(struct rs *rs);
int rs_watch_sleep(struct rs_watch *w, int ms);

/* ---- rs/set.c -------------------------------------------------------------------------------- */

/*
 * Rsockets, and descriptors of the kernel's, as epoll(7) has them. Its number is the
 * kernel's set of the latter.
 */
struct rs_member {
	struct rs *rs; /* the set is a user of it, until rclose */
	uint32_t events;
	epoll_data_t data;
	/* what there was at the last look; rs->wait.came and .refused when it was told of */
	uint32_t there, came, refused;
	bool told; /* EPOLLONESHOT: nothing more is, until EPOLL_CTL_MOD */
};

struct rs_set {
	pthread_mutex_t lock; /* before those of rsockets */
	int users;	      /* calls, and one while it is open: under sets_lock */
	uint32_t forks;	      /* as of rsockets */
	struct rs_set *after;
	int fd, bell; /* the bell: members have come, or it is closed */
	bool closed;
	struct rs_waiting wait;
	struct rs_member *members;
	size_t count, room, next; /* next: where the next look begins; count: at the kernel's */
};

/*
 * rs_set_open: 0 and its number, -errno. rs_set_get: a user more, who gives it back by rs_set_put;
 * NULL with errno: EBADF, EINVAL: a descriptor of something else, EIO: a parent's. rs_set_is.
 * rs_set_close: false: there is no such set. rs_sets_leave: the rsocket is in none any more. All
 * without a lock.
 */
int rs_set_open(bool cloexec);
struct rs_set *rs_set_get(int fd);
void rs_set_put(struct rs_set *set);
bool rs_set_is(int fd);
bool rs_set_close(int fd);
void rs_sets_leave(struct rs *rs);

/*
 * With the set's lock. rs_set_change: epoll_ctl(2) for an rsocket, with its lock too: 0, -errno.
 * rs_set_look: what is there, at most so many; how many. watch: and enter who is to be slept for.
 */
int rs_set_change(struct rs_set *set, int op, struct rs *rs, const struct epoll_event *event);
int rs_set_look(struct rs_set *set, struct epoll_event *events, int most, struct rs_watch *watch);

/* ---- rs/stream.c, rs/receive.c, rs/bytes.c --------------------------------------------------- */

/* rs_fail: the connection is over; err (positive, or 0) will be told once. */
void rs_fail(struct rs *rs, int err);

/*
 * rs_equip: queue pair and blocks: 0, -errno. rs_unequip gives them back, of datagram
 * rsockets after rs_dgram_close.
 */
int rs_equip(struct rs *rs);
void rs_unequip(struct rs *rs);

/*
 * What the ends tell each other in the private data; 12 bytes. rs_hello_get: false: it is none.
 * rs_hello_heed: the other end has said this.
 */
#define RS_HELLO 12
struct rs_hello {
	uint32_t block, credit, maps;
};
void rs_hello_put(const struct rs *rs, uint8_t *to);
bool rs_hello_get(struct rs_hello *hello, const struct rdma_conn_param *p);
void rs_hello_heed(struct rs *rs, const struct rs_hello *hello);

/*
 * rs_completed: what a completion means. rs_may_send: would a byte be taken? rs_tell: a message
 * that is no data. 0, -errno.
 */
void rs_completed(struct rs *rs, const struct ibv_wc *wc);
bool rs_may_send(const struct rs *rs);
int rs_tell(struct rs *rs, enum rs_kind kind, const void *data, uint32_t len);
void rs_return_credit(struct rs *rs);

/*
 * rs_arrived: a message of this kind is in this block. rs_post_block: a receive. rs_post_receive:
 * one of this number, into this memory. 0, -errno.
 */
void rs_arrived(struct rs *rs, uint32_t block, uint32_t kind, uint32_t len);
int rs_post_block(struct rs *rs, uint32_t block);
int rs_post_receive(const struct rs_verbs *v, uint32_t number, char *to, uint32_t len);

/*
 * A piece of the program's data, in several segments. rs_gather copies as much as there is room
 * for, and goes on behind it.
 */
struct rs_piece {
	const struct iovec *iov;
	int count;
	size_t at; /* in the first */
};
uint32_t rs_gather(struct rs_piece *p, char *to, uint32_t room);
size_t rs_total(const struct iovec *iov, int count);

/*
 * rs_scatter: what has come, into all segments from byte `at` of them on; returns how much;
 * MSG_PEEK: it stays, MSG_TRUNC: it is not copied.
 */
size_t rs_scatter(struct rs *rs, const struct iovec *iov, int count, size_t at, int flags);

/* rs_stream_send, rs_stream_receive: bytes, or -errno. */
ssize_t rs_stream_send(struct rs *rs, const struct iovec *iov, int count, int flags);
ssize_t rs_stream_receive(struct rs *rs, const struct iovec *iov, int count, int flags);

/*
 * rs_conn_err: what is to be told of the connection, positive; it has been told by that.
 * rs_sendable: 0, or what keeps it from being sent, -errno.
 */
static inline int rs_conn_err(struct rs_conn *conn)
{
	int err = conn->err;

	conn->err = 0;
	return err;
}
int rs_sendable(struct rs_conn *conn);

/*
 * rs_post: post so many bytes from `from`, which are in the block if there is one (else they are
 * sent inline). 0, -errno.
 */
struct rs_message {
	enum rs_kind kind;
	const void *from;
	uint32_t len;
	bool block;
	/* addr and key: it is written there, and is no message; else NULL */
	const struct rs_map *far;
};
int rs_post(struct rs *rs, const struct rs_message *m);

/*
 * rs_has_place: is there one in the send queue? rs_block_used: the next block has been posted.
 * rs_sent: so is done what has this number of a send: RS_SEND, and RS_FROM_BLOCK if it had a block.
 */
#define RS_SEND (UINT64_C(1) << 63) /* in wr_id: a send, whose number is in the lower half */
#define RS_FROM_BLOCK (UINT64_C(1) << 62)
static inline bool rs_has_place(const struct rs_outbound *out)
{
	return out->sent - out->done < out->places;
}
static inline void rs_block_used(struct rs_outbound *out)
{
	out->block = (out->block + 1) % out->blocks;
	out->free--;
}
static inline void rs_sent(struct rs_outbound *out, uint64_t wr_id)
{
	out->done = (uint32_t)wr_id + 1;
	if (wr_id & RS_FROM_BLOCK)
		out->free++;
}

/* rs_block: the next block of the sender's, when out->free says that there is one. */
static inline char *rs_block(const struct rs_outbound *out)
{
	return out->mem + (size_t)out->block * RS_BLOCK;
}

/* ---- rs/dgram.c ------------------------------------------------------------------------------ */

/* What is to be received. */
struct rs_incoming {
	const struct iovec *iov;
	size_t count;
	int flags;
	struct sockaddr *from; /* may be NULL */
	socklen_t *from_len;
	bool truncated; /* it was longer; out */
};

/*
 * rs_dgram_bind: have this name (NULL: any, unless it has one) and a queue pair; rs_dgram_connect:
 * send there, hear of nobody else, or, of AF_UNSPEC, of everybody. 0, -errno.
 */
int rs_dgram_open(struct rs *rs);
int rs_dgram_bind(struct rs *rs, const struct sockaddr *addr);
int rs_dgram_connect(struct rs *rs, const struct sockaddr *addr);
void rs_dgram_close(struct rs *rs);

/*
 * rs_dgram_left: one with this name has been closed: who had the name before has
 * it again. Without a lock.
 */
void rs_dgram_left(const struct sockaddr *name);
const struct sockaddr *rs_dgram_peer(const struct rs_dgram *dgram); /* NULL: not connected */
void rs_dgram_step(struct rs *rs);
bool rs_dgram_may_send(const struct rs *rs);

/* rs_dgram_send: to NULL: whom it is connected with. Bytes, or -errno. */
ssize_t rs_dgram_send(struct rs *rs, const struct iovec *iov, int count, const struct sockaddr *to,
		      int flags);
ssize_t rs_dgram_receive(struct rs *rs, struct rs_incoming *in);

/* ---- the rest -------------------------------------------------------------------------------- */

/*
 * rs/maps.c: the other end has said this of its memory, of which that many pieces are remembered;
 * all mappings go.
 */
void rs_mapped(struct rs_maps *maps, uint32_t most, const void *data, uint32_t len);
void rs_unmap_all(struct rs_maps *maps);

/*
 * rs/defaults.c: what a new one has; is a call to look for what it waits for once more,
 * before it sleeps: as long as the file says, else as has been worth while; the most that
 * rpoll sleeps, -1: no end.
 */
void rs_defaults(struct rs_options *opt);
bool rs_look_on(const struct rs_waiting *wait, struct hd_busy_polling *looking);
int rs_wake_up_ms(void);

/*
 * rs_options_path (rs/options.c): the id is to go to addresses of this family as the option for
 * that says. 0, -errno.
 */
int rs_options_path(const struct rs_options *opt, struct rdma_cm_id *id, int family);

/*
 * rs/callers.c. rs_callers_serve: it listens; who calls is let in from now on, as long as no more
 * than the backlog (rs_callers_limit: another one) wait, and one more: 0, -errno. rs_callers_take:
 * the first, who is the program's from now on: 0, -EAGAIN: there is none; what kept one from being
 * let in. rs_callers_stop: nobody is let in any more, who waits is hung up on; the lock is given up
 * meanwhile. It may be no listener.
 */
int rs_callers_serve(struct rs *rs, int backlog);
void rs_callers_limit(struct rs *rs, int backlog);
int rs_callers_take(struct rs *rs, struct rs **caller);
void rs_callers_stop(struct rs *rs);

/*
 * rs/name.c. rs_name_out: as getsockname(2), of this name, as a socket of this family sees it.
 * rs_name_in: the other way, as rdma_cm has it: IPv4 that was mapped is IPv4. 0, -EINVAL: too
 * short; -EAFNOSUPPORT: none of this family.
 */
int rs_name_in(int family, const struct sockaddr *addr, socklen_t len, struct sockaddr_storage *out);
int rs_name_out(int family, const struct sockaddr *name, struct sockaddr *addr, socklen_t *addrlen);

#endif
