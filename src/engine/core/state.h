/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * What core keeps of a node. Each room keeps a structure of its own, which begins with
 * that of the room below it:
 *
 *	hd_core ⊂ hd_events ⊂ hd_names ⊂ hd_links ⊂ hd_regions ⊂ hd_rqs ⊂ hd_xfers ⊂ hd_qps ⊂ hd_eps
 *	⊂ hd_conns ⊂ hd_node
 *
 * so that a room sees of a node what lies below it, and the function of that name gives it for
 * nothing. The whole is in node/node.h, at the top. A member is written by the room that keeps it;
 * others read it. Under the node's lock unless a member says otherwise.
 */
#ifndef HD_ENGINE_STATE_H
#define HD_ENGINE_STATE_H

#include "base/busy_poll.h"
#include "base/macros.h"
#include "engine/core/turn.h"
#include "engine/engine.h"
#include "engine/transport.h"

#include <pthread.h>
#include <sys/queue.h>

#define HD_MAX_PORTS 4 /* transports in one node */

/* What the node's thread wants of the next turn that the program makes: bits of hd_auto.asks. */
enum hd_thread_ask {
	HD_ASK_ROUSE = 1,    /* it sleeps untimed: to be woken, so that it stands back */
	HD_ASK_WATCHDOG = 2, /* watchdog.c */
};

/* Watching over a program that goes away without saying so: watchdog.c. */
struct hd_watchdog {
	bool handed;	  /* what arrives wakes the thread, */
	uint64_t turn;	  /* since this turn of the program's */
	unsigned empty;	  /* turns in a row that brought the program nothing since */
	unsigned credit;  /* how often it may still be in vain */
	uint32_t written; /* hd_core.written as it was after the last turn */
	unsigned hopes;	  /* how often lingering may be in vain */
	unsigned pause;	  /* turns with news until the next time; 0: every time */
	unsigned next_pause;
};

/* Automatic progress: thread.c. */
struct hd_auto {
	pthread_t thread;
	bool runs;
	_Atomic bool stop; /* set without the lock at exit */
	/* enum hd_thread_ask: what the next poll of the program has to do for it */
	unsigned asks;
	bool watches; /* sleeps at the epoll set while it stands back */
	struct hd_watchdog watchdog;
	bool away;	/* stands back from the program's polling: `wake` brings it here */
	bool parked;	/* until hd_auto_back */
	bool wanted;	/* the program has asked for notice of something, and may sleep now */
	bool stands_in; /* for a program that has asked, and looks by this habit; for this time */
	struct hd_busy_poll look;
	struct hd_busy_polling looking;
	unsigned vigils;      /* how often the thread may still be woken though the program polls */
	pthread_mutex_t lock; /* a leaf: for `called` */
	pthread_cond_t wake;
	bool called;
	int sleepers; /* threads of the program that sleep for all of the node: hd_channel_wait */
	int besides;  /* those that leave it to another one, which polls */
};

enum hd_count {
	HD_COUNT_LINKS,	      /* that came up */
	HD_COUNT_BROKEN,      /* that ended by an error while they had a peer */
	HD_COUNT_LEFT,	      /* likewise, of a program that had ended in order: hd_peer_exits */
	HD_COUNT_CALLS_AGAIN, /* calls to an endpoint that were made once more */
	HD_COUNT_SLEEPS,
	HD_COUNT_REFUSED, /* sends, -EAGAIN, for want of credit */
	HD_COUNT_STALLS,  /* of send queues, for want of credit or room */
	HD_COUNT_RNR,	  /* requests that found no receive */
	HD_COUNTS
};

#define HD_EIGHTH 7u

struct hd_core {
	struct hd_gate gate; /* first: hd_gate_of */
	/* every turn of progress */
	struct hd_port *active[HD_MAX_PORTS + 1]; /* NULL behind the last */
	int active_count;
	uint32_t turns;	     /* in those whose HD_EIGHTH is 0 now_and_then is called */
	bool news;	     /* a turn has brought something since hd_offer_look */
	uint64_t offer_look; /* hd_ticks(): when to call that again; 0: at once */
	/*
	 * the program's thread that made the last turns, hd_thread_self; relaxed, a hint: nodes.c
	 */
	_Atomic uintptr_t poller;
	/* hd_ticks(): look at epoll and timers then; 0: at once, hd_node_hurry */
	uint64_t slow_due;
	uint64_t slow_step;
	const struct hd_turn_ops *turn_ops;
	LIST_HEAD(, hd_publish) publishing;
	TAILQ_HEAD(, hd_push) pushing;
	/* 1 << enum hd_turn_work: what is due, or to be looked at once in a turn */
	unsigned work;
	uint32_t awaiting_count; /* for how many hd_turn_ops.look is to look */
	/* links with something that would be lost with this process: hd_node_gathers */
	uint32_t gathering;
	bool closing;
	bool stilled; /* by nodes_lock: a fork of this process has the node's lock */
	/* reasons to be woken by peers; sleep_seq is odd while above 0 */
	int arms;
	struct hd_node_page *page; /* what others see of it; mapped by name */
	/* turns of progress made by the program: written with the lock, by plain stores */
	_Atomic uint64_t program_turns;
	/* the rest */
	uint64_t meets_until; /* hd_ticks(): hd_node_meets */
	int crowd;	      /* hd_node_crowd */
	int processors;	      /* that this process may run on, as it was when the node was made */
	struct hd_node_attr attr;
	struct hd_port *ports[HD_MAX_PORTS];
	int port_count;
	/* writes and atomic operations of peers that have been carried out, for watchdog.c */
	uint32_t written;
	uint32_t storing; /* how many of them are coming in */
	/* event queues that are about to take the lock; the node is not freed before */
	_Atomic int pins;
	/* what is put off, handed in, or timed */
	TAILQ_HEAD(, hd_deferred) deferred;
	_Atomic(struct hd_crosswork *)
		crosswork; /* the latest first; whoever makes it not empty writes wake_fd */
	struct hd_timers timers;
	/* descriptors */
	int epoll_fd;
	int wake_fd;
	struct hd_watch wake_watch;
	struct hd_watch timer_watch; /* a timerfd, for programs that poll descriptors of ours */
	bool timer_fd_set;
	/* ports are being armed: what they stir up now they look at themselves */
	bool arming;
	/* of the epoll_wait being handled: so that a removed watch is not called */
	struct hd_watch **batch;
	int batch_count;
	struct hd_auto worker;
	LIST_ENTRY(hd_core) all; /* of the process: with nodes_lock */
	/*
	 * what has become of it, for the last lines of the log: counted off
	 * the usual way, by hd_count
	 */
	uint64_t counts[HD_COUNTS];
	bool past_said;
};

/* hd_node_of: the node whose room has this member in its state. */
#define hd_node_of(ptr, state, member) ((struct hd_node *)hd_container(ptr, state, member))

/*
 * hd_core: of this node. Of one that is const it is to be read alone, as what the others give is.
 * hd_core_node: the node that it is the first of.
 */
static inline struct hd_core *hd_core(const struct hd_node *node)
{
	return (struct hd_core *)node;
}

static inline struct hd_node *hd_core_node(struct hd_core *core)
{
	return (struct hd_node *)core;
}

/* hd_count: one more of these, with the lock. */
static inline void hd_count(struct hd_node *node, enum hd_count what)
{
	hd_core(node)->counts[what]++;
}

#endif
