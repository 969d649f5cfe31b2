/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Queue pairs between the engine's files: pair.c who talks with whom, and how that ends; agree.c in which of their lives; line.c what is
 * sent; arrive.c what arrives, and hold.c what of it has to wait.
 *
 * The line of a paired endpoint is a ring of what has been posted and not been told of, by numbers that run on:
 *
 *	head ────────── next ────────── tail
 *	 under way, or    wait to be
 *	 ended            started
 *
 * An eager message that has left is a slot and nothing else: its number is the packet's `op`, and one answer (HD_PKT_F_RUN) stands for
 * all up to that number.
 */
#ifndef HD_ENGINE_PAIR_H
#define HD_ENGINE_PAIR_H

#include "engine/internal.h"
#include "engine/message/message.h"
#include "engine/pair/relay.h"

#include <errno.h>

enum hd_slot_state {
	HD_SLOT_WAITS, /* op is to be started */
	HD_SLOT_SENT,  /* an eager message, answered by its number; no op */
	HD_SLOT_UNDER, /* op is under way */
	HD_SLOT_ENDED, /* err says how */
};

enum hd_slot_way {		 /* what others have to know of one under way */
	HD_WAY_ORDERED = 1 << 0, /* the other end carries it out, in order */
	HD_WAY_READS = 1 << 1,	 /* a fence waits for it */
	HD_WAY_REACH = 1 << 2,	 /* we carry it out: nothing may overtake it */
};

struct hd_slot {
	void *ctx;
	struct hd_op *op;
	uint64_t len, tag;
	uint32_t flags, cqe_flags; /* enum hd_send_flag, enum hd_cqe_flag */
	int32_t err;		   /* positive errno */
	uint16_t units; /* HD_SLOT_SENT: credit that it took; or would have, where it was announced */
	uint8_t state, way;
};

struct hd_held;
struct hd_late;

enum hd_awaits { /* that messages are accepted: accept.c */
	HD_AWAITS_NO,
	HD_AWAITS_QUIETLY, /* in node->awaiting; when the node last went to sleep nobody waited for it */
	HD_AWAITS,	   /* in node->awaiting */
	HD_AWAITS_NEVER,   /* nothing is answered */
};

enum hd_grace {
	HD_GRACE_NONE,
	HD_GRACE_RUNS,
	HD_GRACE_OVER
};

#define HD_PAIR_HEAD 64		/* hd_ep_attr.head at most */
#define HD_PAIR_COMING 16	/* long messages that come in at the same time */
#define HD_PAIR_SETTLE_NS 20000 /* how often to look whether somebody still copies through a window */
#define HD_TAG_TAKE_BACK 1	/* tag of a message that takes back the window whose key is in imm */

/* The number of the queue that is named stands in the upper bits of tag, beside a length in bytes where there is one. */
#define HD_NAME_SHIFT 40
#define HD_NAME_BYTES ((UINT64_C(1) << HD_NAME_SHIFT) - 1)
static inline uint64_t hd_name_tag(uint64_t imm)
{
	return imm >> 32 << HD_NAME_SHIFT;
}

struct hd_pair {
	struct hd_ep *ep;
	/* sending: every post */
	struct hd_slot *slots;
	struct hd_dest *dest; /* the other end, referenced and followed; or NULL */
	uint32_t mask, max;
	uint32_t head, next, tail;
	uint32_t units;			     /* of all slots */
	uint32_t ordered, reading, reaching; /* under way, by enum hd_slot_way */
	int err;			     /* it has failed: a positive errno */
	uint32_t word;			     /* upper half of imm of what is sent: see hd_word_make */
	uint32_t life; /* our life to the other end, as its row in the page has it: hd_agree_say */
	bool stuck;    /* something was wrong here: nothing behind it is started */
	bool halted;   /* and it has been told of, with all that was behind: hd_ep_halted */
	bool pushing, paused, finishing, told_drained;
	bool lossy; /* HD_EP_DROP was asked for: nothing is answered, no error of the other end counts */
	uint8_t wire_flags; /* enum hd_pkt_flag that each message has, and */
	uint8_t wire_named; /* HD_PKT_F_TAGGED: each thing that is sent names a queue, HD_EP_NAMES; or 0 */
	bool plain;   /* it has one other end, no name of a queue and no space in front of what it receives */
	bool settles; /* the next one waits for `settle`, because somebody copies through a window of ours */
	struct hd_mr *const *regions; /* hd_ep_regions */
	/* the rest */
	uint32_t sq_psn, sq_base; /* the packet sequence number of slot sq_base */
	struct hd_timer settle;
	struct hd_dest *nobody; /* hd_ep_to: so that all sends come to line.c */
	struct hd_follow follow;
	struct hd_op *framed;  /* the write whose frames leave, before those of others: frames.c */
	struct hd_peer *lined; /* in lined->lines, because its link or its credit was short; or NULL */
	TAILQ_ENTRY(hd_pair) line_entry;
	/* accept.c */
	enum hd_awaits awaits;
	uint64_t look_due;    /* hd_ticks(): not before that */
	uint64_t accept_seen; /* what the other end's row said when we last looked */
	TAILQ_ENTRY(hd_pair) await_entry;
	/* receiving */
	bool ready; /* hd_ep_pair has been called */
	bool deaf;  /* nobody answered when the other end was called */
	/*
	 * agree.c. `from` of from_peer may come: what it sends is looked at no longer. NULL: nobody yet, or no longer. rq_psn: number that the
	 * requests of the other end's life begin with, when `taken` is rq_base. met_gen: its generation (hd_remote.gen) that we have agreed with
	 * last, for which our answers are; 0: with none.
	 */
	const struct hd_peer *from_peer;
	uint32_t from;
	uint32_t rq_psn;
	uint64_t rq_base;
	uint16_t met_gen;
	/* hold.c: a request of this endpoint in this generation has been given up, so that all behind it is refused; peer NULL: of nobody */
	const struct hd_peer *broken_peer;
	uint32_t broken_src;
	uint16_t broken_gen;
	bool asking, told; /* the other end has been asked where it stands; it stands at told_psn */
	uint32_t told_psn;
	uint16_t first_gen; /* our own since we were opened: older packets are for another endpoint */
	bool starved;	    /* in rq->starved: the first that is held needs a receive */
	/* Long ones that are coming in, by the order in which they came: what is behind them is held, but for further messages. */
	uint32_t transfers, turn_first, turn_next;
	struct hd_op *coming[HD_PAIR_COMING]; /* by turn; NULL: it has ended */
	int spoiled;			      /* the last one of them to end has failed: a positive errno */
	uint32_t qkey, rnr_timer_us;
	uint32_t head_len;
	uint64_t domain;	/* hd_ep_attr */
	struct hd_pair *turned; /* HD_EP_NAMES: whose queue, CQ and zone the endpoint has now; NULL: its own */
	LIST_ENTRY(hd_pair) turned_entry;
	LIST_HEAD(, hd_pair) turned_here; /* HD_EP_NAMED */
	struct hd_rq *own_rq;		  /* what it has of its own, while it is turned */
	struct hd_cq *own_cq;
	uint32_t own_zone;
	uint64_t (*head_fill)(void *owner, const struct hd_sender *from, void *at);
	TAILQ_HEAD(, hd_held) held;
	struct hd_timer timer; /* of the first held one */
	TAILQ_ENTRY(hd_pair) starved_entry;
	uint32_t ack_op, ack_to; /* the newest message accepted and its endpoint, while `acks` or `unsaid` */
	bool acks;		 /* a packet is to say so */
	bool unsaid;		 /* our row says so, and no message has carried it yet */
	struct hd_link *saying;	 /* our row of this link is to say so; NULL: it does */
	uint32_t saying_units;	 /* of the messages that it is to say so of */
	LIST_ENTRY(hd_pair) saying_entry; /* node->accepting */
	uint64_t taken;			  /* hd_ep_taken */
	struct hd_ep_mark mark;
	LIST_ENTRY(hd_pair) marked; /* node->marked, while mark.passed */
	bool taking; /* the first that is held waits until nobody copies through the window that it takes back */
	/* both */
	bool collapsed;	       /* it has failed, and everything posted has been told so */
	struct hd_chore chore; /* hd_pair_kick */
	struct hd_asks *asks;  /* ask.c; NULL: nothing is answered */
	/* grace.c */
	uint32_t grace_ms; /* hd_pair_attr */
	enum hd_grace grace_state;
	struct hd_timer grace;
	STAILQ_HEAD(, hd_late) late; /* receives whose sender has gone */
	/* silence.c: slot `unanswered` has been the first of the line since then, by hd_now_ns(); 0: nothing was under way */
	uint32_t unanswered;
	uint64_t unanswered_since;
	/* relay.c: its requests for queues of others, or NULL; what leaves by it, and the way that it is part of, or NULL */
	struct hd_relay *relay;
	struct hd_carried *carries;
	struct hd_route *route;
	/* path.c: the second path, AF_UNSPEC: there is none; the other end is rearmed; the second is the first as soon as that can be */
	struct sockaddr_storage path_addr;
	enum hd_path path;
	enum hd_path_word path_unsaid; /* to be said when the other end is reached; 0: nothing */
	bool path_other, path_moves;
};

/*
 * The upper half of imm: bits 0 to 2 how often to wait for a receive (7: no end), 3 to 7 for how long the target may not be ready (0: no
 * end, else 2^(n - 1) ms), the rest the packet sequence number at which the sender's life begins for the target's: see agree.c.
 */
#define HD_WORD_PATIENCE 0xffu
#define HD_PSN_SHIFT 8
#define HD_PSN_MASK 0xffffffu
static inline uint32_t hd_word_make(uint32_t rnr_retry, uint32_t timeout_ms)
{
	/* to a power of two, downwards: who asks for the longest time that is allowed does not get more */
	uint32_t code = timeout_ms ? 32 - (uint32_t)__builtin_clz(timeout_ms) : 0;

	return (rnr_retry < 7 ? rnr_retry : 7) | (code < 31 ? code : 31) << 3;
}

static inline uint32_t hd_word_ms(uint32_t word)
{
	uint32_t code = word >> 3 & 31;

	return code ? 1u << (code - 1) : 0;
}

/* The upper half of a row's word (hd_link_ops.accept): the endpoint that the answer is for, in which of its lives. */
#define HD_ROW_LIFE 20 /* bits of an index */
static inline uint32_t hd_row_for(uint32_t index, uint16_t gen)
{
	return (uint32_t)gen << HD_ROW_LIFE | index;
}

static inline uint16_t hd_remote_gen(const struct hd_peer *peer, uint32_t index)
{
	return index < peer->remote_count ? peer->remotes[index].gen : 0;
}

/*
 * All that follows is called with the node's lock, and blocks nowhere; errors are negative errnos, but `int err` among the arguments is a
 * positive one, or 0.
 */

/* ---- pair.c ---- */

/*
 * hd_pair_open: with the endpoint: 0, or negative, and what there is goes with it. hd_pair_close: before anything else of it is taken down. hd_pair_free: after that.
 */
int hd_pair_open(struct hd_ep *ep, const struct hd_ep_attr *attr);
void hd_pair_close(struct hd_ep *ep);
void hd_pair_free(struct hd_ep *ep);

/* hd_pair_kick: have it looked at when this turn of progress is over. hd_pair_fail_soon: and have it fail then, if it has not. */
void hd_pair_kick(struct hd_pair *p);
void hd_pair_fail_soon(struct hd_pair *p, int err);

/* hd_pair_event: tell the front. hd_pair_offended: the other end did what it may not: the front is told, and the pair fails (HD_EP_STRICT). */
void hd_pair_event(const struct hd_pair *p, uint32_t code, int err);
void hd_pair_offended(struct hd_ep *ep, int err);

/* hd_pair_judge: what the other end asked of the endpoint, perhaps a queue pair, was refused with this errno. */
static inline void hd_pair_judge(struct hd_ep *ep, int err)
{
	if (hd_unlikely(ep->pair != NULL) && err != ENOMEM)
		hd_pair_offended(ep, err);
}

/* hd_pair_is_bound: the other end is known, and a link leads to it. hd_pair_is_open: and it may come. */
bool hd_pair_is_bound(const struct hd_pair *p);
bool hd_pair_is_open(const struct hd_pair *p);

/* hd_pair_took: a receive has left its queue for this endpoint, perhaps a queue pair. */
static inline void hd_pair_took(struct hd_ep *ep)
{
	if (hd_unlikely(ep->pair != NULL))
		ep->pair->taken++;
}

/* hd_sender_of: who a message came from, by hd_cqe.src. */
void hd_sender_of(const struct hd_node *node, uint32_t src, struct hd_sender *out);

/* ---- line.c ---- */

/* hd_line_room: 0; -EAGAIN: the line is full; -ENOTCONN: the other end has not been named, and it has not failed; -ENOTRECOVERABLE: in
 * a child. */
int hd_line_room(const struct hd_ep *ep);

/*
 * hd_line_send: as hd_send. hd_line_post: take over an operation, which is freed where it fails: 0, -EAGAIN. Either may start it, or end it,
 * before it returns.
 */
int hd_line_send(struct hd_ep *ep, const struct hd_send_args *a);
int hd_line_post(struct hd_op *op);

/* hd_line_ended: one of the line's operations has ended, and is freed after this. */
void hd_line_ended(struct hd_op *op, int err);

/* hd_line_spoil: it is to fail with err in its turn, if it has not left yet, else at once. */
void hd_line_spoil(struct hd_op *op, int err);
extern const struct hd_op_kind hd_failed_kind; /* failed.c: what it is until then; the errno is in its imm */

/* hd_line_uses: is there a request with a segment of this region in the line? *op is the first such; it stays the line's. */
bool hd_line_uses(const struct hd_pair *p, const struct hd_mr *mr, struct hd_op **op);

/* hd_line_push: start what can be. hd_lines_push: of all that wait for this peer's link or credit; how many have started something. */
void hd_line_push(struct hd_pair *p);
int hd_lines_push(struct hd_peer *peer);

/* hd_line_retire: tell of what has ended and has nothing before it. */
void hd_line_retire(struct hd_pair *p);
/* hd_line_leave: it waits for no link any more. */
void hd_line_leave(struct hd_pair *p);

/*
 * hd_line_accepted: messages up to number `last` have been accepted, but that one has not if err is above 0; true: that is news.
 * hd_line_answered: a packet says so, as the functions of dispatch.h.
 */
bool hd_line_accepted(struct hd_pair *p, uint32_t last, int err);
int hd_line_answered(struct hd_link *link, const struct hd_pkt *pkt);

/*
 * hd_line_lost: the other end has gone, and answers nothing any more. hd_line_unreached: who is called does not answer: what has not been
 * started fails. hd_line_overdue: the first of the line fails for want of an answer. hd_line_drop: forget all; err above 0: each is told of with it.
 */
void hd_line_lost(struct hd_pair *p, int err);
void hd_line_overdue(struct hd_pair *p);
void hd_line_unreached(struct hd_pair *p, int err);
void hd_line_drop(struct hd_pair *p, int err);

/* hd_line_lull: it is to pause: tell when nothing is under way. hd_line_go_on: no longer halted. */
void hd_line_lull(struct hd_pair *p);
void hd_line_go_on(struct hd_pair *p);

/* ---- accept.c ---- */

/*
 * hd_accept_soon: this is the newest message that has been accepted: true: our row says so at the end of what is polled now, or by
 * hd_accept_say, or when there are so many that their sender may be waiting; false: there is none, so a packet has to. hd_accept_say: now.
 * hd_accepts_say: all do.
 */
#define HD_ACCEPT_UNITS 128u /* a sixteenth of what may have left and not been accepted: see line.c */
bool hd_accept_first(struct hd_pair *p, struct hd_link *link, const struct hd_pkt *pkt, uint32_t units);
void hd_accept_say_now(struct hd_pair *p);
static inline bool hd_accept_soon(struct hd_pair *p, struct hd_link *link, const struct hd_pkt *pkt,
				  uint32_t units)
{
	if (p->saying != link || p->ack_to != pkt->src)
		return hd_accept_first(p, link, pkt, units);
	p->ack_op = pkt->op;
	p->unsaid = true;
	p->saying_units += units;
	if (hd_unlikely(p->saying_units >= HD_ACCEPT_UNITS))
		hd_accept_say_now(p);
	return true;
}

static inline void hd_accept_say(struct hd_pair *p)
{
	if (hd_unlikely(p->saying != NULL))
		hd_accept_say_now(p);
}

void hd_accepts_say_now(struct hd_node *node);
static inline void hd_accepts_say(struct hd_node *node)
{
	if (hd_unlikely(!LIST_EMPTY(&node->accepting)))
		hd_accepts_say_now(node);
}

/*
 * hd_accept_await: a message with these flags (enum hd_send_flag) is about to leave. hd_accept_leave: nothing is awaited any more.
 * hd_accept_heed: what has left already is waited for from now on, by something that has come behind it.
 */
void hd_accept_join(struct hd_pair *p, uint32_t flags);
static inline void hd_accept_await(struct hd_pair *p, uint32_t flags)
{
	if (hd_unlikely(p->awaits < HD_AWAITS))
		hd_accept_join(p, flags);
}
void hd_accept_leave(struct hd_pair *p);
void hd_accept_roused(struct hd_pair *p);
static inline void hd_accept_heed(struct hd_pair *p)
{
	if (hd_unlikely(p->awaits == HD_AWAITS_QUIETLY))
		hd_accept_roused(p);
}

/*
 * hd_accept_carried: the other end's message says in passing what it has accepted. hd_accept_look: at what its row says; true: there was
 * news. hd_accepts_look: at all rows that somebody waits for, or some of them; how many had news. hd_accepts_arm: the node is about to sleep:
 * its page says whether that is to be woken for them.
 */
void hd_accept_carried(struct hd_pair *p, const struct hd_pkt *pkt);
bool hd_accept_look(struct hd_pair *p);
int hd_accepts_look(struct hd_node *node, bool all);
void hd_accepts_arm(struct hd_node *node);

/* hd_line_idle: the other end, if nothing is under way to it, so that what needs no packet may be done at once; else NULL. */
static inline struct hd_dest *hd_line_idle(struct hd_pair *p)
{
	if (hd_unlikely(p->ordered))
		hd_accept_look(p);
	return p->head == p->tail && !p->paused && !p->stuck && !p->err ? p->dest : NULL;
}

/* ---- arrive.c ---- */

/* A request that has come, and the credit that it holds. */
struct hd_arrival {
	struct hd_peer *peer;
	const struct hd_pkt *pkt;
	const void *payload;
	size_t len;
	uint32_t units;
};

/*
 * hd_arrive: a message or request for a queue pair, as the functions of dispatch.h; payload is read once. hd_arrive_message: the same of an
 * eager message that has been charged. hd_arrive_cast: a datagram to a group
 * that the endpoint is a member of.
 */
int hd_arrive(struct hd_link *link, struct hd_ep *ep, const struct hd_pkt *pkt, const void *payload,
	      size_t len);
int hd_arrive_message(struct hd_link *link, struct hd_ep *ep, const struct hd_pkt *pkt, const void *payload,
		      size_t len);
void hd_arrive_cast(struct hd_ep *ep, const struct hd_pkt *pkt, const struct hd_sender *from,
		    const void *payload, size_t len);

/* hd_arrive_ack: send the acknowledgement that is due. hd_arrive_refuse: a request is answered with this errno, and its credit goes back. */
void hd_arrive_ack(struct hd_pair *p);
void hd_arrive_refuse(struct hd_peer *peer, const struct hd_pkt *pkt, uint32_t units, int err);

/* hd_arrive_spoil: a write, perhaps to a queue pair, is refused: if it brings immediate data, the receive that it would have used up fails as well. */
void hd_arrive_spoil(struct hd_ep *ep, struct hd_peer *peer, const struct hd_pkt *pkt, int err);

/* ---- coming.c ---- */

/* hd_coming_begin, hd_coming_end: a long transfer into the memory of op's endpoint has begun, has ended. Of other endpoints: nothing. */
void hd_coming_begin(struct hd_op *op);
void hd_coming_end(struct hd_op *op);

/*
 * hd_coming_lets: may another message, or write, come in beside those that do? Not behind a write that will use up a receive at its end; no
 * write beside what is copied in no order.
 */
bool hd_coming_lets(const struct hd_pair *p, bool a_write);

/*
 * hd_coming_turn: a message or write has come in, or failed with *err: may it end, with *err as it is then? False: those before it
 * first; hd_coming_finish completes it when they have.
 */
bool hd_coming_turn(struct hd_op *op, int *err);
void hd_coming_finish(struct hd_pair *p);

/* ---- hold.c ---- */

/* hd_hold_resume: let in what was held, as far as that can be now. hd_hold_posted: this queue has one receive more. */
void hd_hold_resume(struct hd_pair *p);
void hd_hold_posted(struct hd_rq *rq);

/* hd_hold_unstarve: the first that is held does not wait for a receive of its queue any more. hd_hold_timed: hd_pair.timer's. */
void hd_hold_unstarve(struct hd_pair *p);
void hd_hold_timed(struct hd_timer *timer);

/*
 * What is held is let in no more. hd_hold_refuse_all: nothing of it. hd_hold_over: our life has ended, and what came for it is refused; `reset`:
 * the next one has begun. hd_hold_forget: the peer is gone, and with it what it had sent. hd_hold_outdated: the peer's endpoint begins anew,
 * or has ended: it knows nothing any more of what nobody has let in.
 */
void hd_hold_refuse_all(struct hd_pair *p);
void hd_hold_over(struct hd_pair *p, bool reset);
void hd_hold_forget(struct hd_ep *ep, const struct hd_peer *peer);
void hd_hold_outdated(struct hd_pair *p, struct hd_peer *peer, uint32_t src);

/*
 * hd_hold_end: one that was let in is answered with this errno, with what follows for the endpoint: it fails, or (ENOBUFS, ETIMEDOUT) refuses
 * what its sender has sent behind it. hd_hold_is_broken: was something of this sender given up, and has it not begun anew since?
 */
void hd_hold_end(struct hd_pair *p, struct hd_peer *peer, const struct hd_pkt *pkt, uint32_t units, int err);
bool hd_hold_is_broken(const struct hd_pair *p, const struct hd_peer *peer, uint32_t src);

/* ---- named.c ---- */

/*
 * hd_named_turn: the endpoint receives from the queue with this number from now on, until something else is named: nothing is coming in
 * meanwhile. False: there is none, or it is of another domain. hd_named_home: from its own; what it holds back is to be looked at again.
 * hd_named_is_owed: something of what it has brought to its queue waits there, so it must not turn to that number yet. It is kicked when that has
 * been received.
 * hd_named_gone: an endpoint that can be named closes: whoever has turned to it goes home, and fails if something is coming in.
 */
bool hd_named_turn(struct hd_pair *p, uint32_t number);
bool hd_named_is_owed(const struct hd_pair *p, uint32_t number);
void hd_named_home(struct hd_pair *p);
void hd_named_forget(struct hd_pair *p);
void hd_named_gone(struct hd_pair *p);

/* ---- agree.c ---- */

/* hd_agree_met: have we agreed with the life that `src` of this peer has? */
enum hd_met {
	HD_MET_NEVER,
	HD_MET_NOW,
	HD_MET_BEFORE, /* the other end has begun anew since */
};
enum hd_met hd_agree_met(const struct hd_pair *p, const struct hd_peer *peer, uint32_t src);

/*
 * hd_agree: may what `src` of this peer sends come in, the first of it that this life sees? True: it may, and all that follows. False: not yet,
 * perhaps never. hd_agree_no_more: nobody may.
 */
bool hd_agree(struct hd_pair *p, struct hd_peer *peer, const struct hd_pkt *pkt);
void hd_agree_no_more(struct hd_pair *p);

/* hd_agree_say: our own life to the other end begins with the next request that has not been answered. hd_agree_row: hd_page_ep.life. */
void hd_agree_say(struct hd_pair *p);
uint32_t hd_agree_row(const struct hd_pair *p);

/*
 * hd_agree_renewed: an endpoint of the peer's has begun anew, hd_remote.gen says so, or has ended, and nobody is bound to it.
 * hd_agree_heard: LIFE has come, as the functions of dispatch.h.
 */
void hd_agree_renewed(struct hd_peer *peer, uint32_t index);
int hd_agree_heard(struct hd_link *link, const struct hd_pkt *pkt, const void *payload, size_t len);

/* ---- path.c ---- */

/*
 * hd_path_heard: PATH has come, as the functions of dispatch.h. hd_path_bound: the other end has been reached. hd_path_lost: it is lost, or
 * cannot be reached: true: nothing was under way, and it is called by the other path next. hd_path_run: a turn of progress is over.
 * hd_path_reset: it begins anew.
 */
int hd_path_heard(struct hd_link *link, const struct hd_pkt *pkt, const void *payload, size_t len);
void hd_path_bound(struct hd_pair *p);
bool hd_path_lost(struct hd_pair *p);
void hd_path_run(struct hd_pair *p);
void hd_path_reset(struct hd_pair *p);

#endif
