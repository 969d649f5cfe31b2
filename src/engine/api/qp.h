/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Queue pairs: endpoints with one partner each, as those of verbs and of uDAPL. Rules that hold
 * for all calls: engine.h.
 */
#ifndef HD_ENGINE_API_QP_H
#define HD_ENGINE_API_QP_H

#include "engine/api/send.h"

/* ---- queue pairs ----------------------------------------------------------------------------- */

/*
 * Endpoints as ibv_modify_qp(3) and ibv_post_send(3) want them. Three kinds, of type
 * HD_EP_RDM but for the last:
 *
 *	HD_EP_NUMBERED | HD_EP_PAIRED | HD_EP_STRICT	reliable, with one other endpoint (RC)
 *		and | HD_EP_DROP			the same without any answer: what finds no
 *							receive is gone (UC)
 *	HD_EP_NUMBERED | HD_EP_DROP, HD_EP_DGRAM	with anybody (UD)
 *
 * Sends. hd_send, hd_rma and hd_atomic accept up to tx_size operations, whatever state the link is
 * in; -EAGAIN beyond that. `dest` is *hd_ep_to(ep) for paired endpoints; unpaired ones have
 * hd_ud_send and nothing else. They start and complete in posting order. `tag` is not sent: it
 * comes back in hd_cqe.tag of the completion, for the front's own use. Of `imm` the lower 32 bits
 * travel.
 * HD_SEND_FENCE: not before reads and atomic operations that were posted before have ended.
 * HD_SEND_GATED, ACKED and DELIVERED are the engine's own business here, and so is TAGGED. Reliable
 * sends complete when the message has been accepted, others when they have left.
 *
 * Arrivals. The other end's messages and one-sided operations are carried out one after the other.
 * What comes before hd_ep_pair, what finds no receive (a write with immediate data needs one too),
 * and all that is behind it, is held back, for as long as the sender's rnr_retry (times our
 * rnr_timer_us) and timeout say; then the sender gets HD_S_RNR or HD_S_TIMEOUT. Unreliable ones
 * drop instead. Receives are posted with tag 0, ignore 0, HD_RECV_COMPLETE.
 *
 * Errors of reliable ones, in hd_cqe.err: HD_S_ACCESS (key, protection domain, right), HD_S_RANGE,
 * HD_S_INVALID (atomics not on a multiple of 8), HD_S_OPERATIONAL (HD_RECV_FAULT), HD_S_LENGTH
 * (longer than the receive; there it is a receive completion with HD_S_LENGTH), HD_S_RNR (no
 * receive), HD_S_TIMEOUT, HD_S_REFUSED (nobody has the number, or it has failed, or is paired with
 * another), HD_S_LOST (the other node is gone). With HD_EP_STRICT the endpoint has failed then, and
 * so has the one that was offended, where HD_EV_EP_FAILED says so; what was behind completes with
 * HD_S_CANCELLED.
 */

/*
 * Named queues. With HD_EP_XRC (the two ends of a pair have it both, or neither) messages and
 * one-sided operations carry in the upper half of their imm the number of an endpoint of the other
 * node that is HD_EP_NUMBERED | HD_EP_XRC_QUEUE, and of the same domain as the endpoint that
 * receives. What arrives is received from that one's queue, completes in its receiving CQ with the
 * index of the endpoint that has received, and reaches the memory of its protection domain. A
 * number that there is not is an offence: HD_S_INVALID.
 */

/*
 * Queues of other nodes. An endpoint with hd_ep_attr.stray asks its front, as deferred work, for
 * the way to a queue that its node does not have, and keeps what names it waiting until the front
 * calls hd_ep_proxy: what names this queue leaves by `via`, a pair of the front's with HD_EP_XRC
 * whose other end is in the queue's node, and nothing else does; NULL: there is no such queue.
 * `via` may be closed at any time; when it has failed the front is asked again. The sender's
 * patience is counted there, its rights here. When the endpoint fails or is reset, its ways are
 * forgotten.
 */
void hd_ep_proxy(struct hd_ep *ep, uint32_t number, struct hd_ep *via);

/*
 * hd_ep_number: TCP port << 8 | slot, given by hd_ep_open: unique on the host; never 0, 1 or
 * 0xffffff. 0: it is not HD_EP_NUMBERED.
 */
uint32_t hd_ep_number(const struct hd_ep *ep);

/*
 * hd_name_set_number: the name of the endpoint with this number on the host that the address is of.
 */
void hd_name_set_number(struct sockaddr *name, uint32_t number);

/*
 * The states of a queue pair, those of ibv_modify_qp(3) with what the engine tells apart in them.
 * In this order: from RTS on what is posted is taken, from SQD_SQE on flushed.
 */
enum hd_qp_state {
	HD_QP_RESET, /* as it was opened */
	HD_QP_INIT,  /* nothing more to the engine: the front lets receives be posted */
	HD_QP_RTR,   /* what arrives is carried out */
	HD_QP_RTS,   /* and what is posted is started */
	/*
	 * a request has failed: nothing behind it is started; ERR or SQE when
	 * those before it have ended
	 */
	HD_QP_RTS_PENDING,
	HD_QP_SQD,	   /* draining: nothing is started, and something is under way */
	HD_QP_SQD_PENDING, /* the same, RTS_PENDING after it */
	HD_QP_SQD_DRAINED, /* nothing is under way */
	HD_QP_SQD_SQE,	   /* the same, SQE after it */
	HD_QP_SQE,	   /* what is posted is flushed, what arrives carried out */
	/*
	 * it has failed; at the end of this turn of progress everything is flushed, or when
	 * nobody copies to it any more
	 */
	HD_QP_ERR_FALLING,
	HD_QP_ERR,
	HD_QP_STATES
};

/*
 * hd_ep_state: where the state of an endpoint that is HD_EP_NUMBERED is to be read, with the lock,
 * as long as it is open. It changes by the calls below, and where one says so by what happens.
 */
const enum hd_qp_state *hd_ep_state(const struct hd_ep *ep);

#define HD_HOLDOFF_EVER UINT32_MAX
struct hd_qp_attr {
	/* address, port and slot of the other end; unpaired endpoints: NULL */
	const struct sockaddr *to;
	/* how long one of the other end's retries takes while we have no receive posted */
	uint32_t rnr_timer_us;
	uint32_t rnr_retry; /* of our sends: 0 to 6, 7: for ever */
	/*
	 * of our sends: how long the other end may not be ready for them, in all, as far as a power
	 * of two can be that. 0: for ever
	 */
	uint32_t timeout_ms;
	/*
	 * How long what we had under way when the other end went away waits before it completes in
	 * error; 0: not at all. A receive whose message was coming in then completes when the
	 * endpoint fails, or (0, and what is sent is answered) at once. HD_HOLDOFF_EVER: no end.
	 */
	uint32_t holdoff_ms;
	bool only_receives; /* hd_ep_pair: to RTR, and hd_ep_start follows; else to RTS */
	/* hd_ep_pair: what the other end gives hd_ep_set_psn; bits from 24 on do not count */
	uint32_t rq_psn;
};

/*
 * hd_ep_init: from RESET to INIT. hd_ep_pair: ready to receive: from `to` alone, or (NULL) from
 * everybody; what was held back is let in. hd_ep_start: from RTR to RTS. 0, -EINVAL (also: there is
 * no such transition from its state), -ENOMEM; -EISCONN: it is paired already.
 *
 * hd_ep_pair_tune: change the numbers; `to` is not looked at. hd_ep_allow: of the policy,
 * HD_EP_REMOTE_READ, HD_EP_REMOTE_WRITE, HD_EP_REMOTE_ATOMIC and HD_EP_REMOTE_FLUSH are these from
 * now on. hd_ep_set_qkey: datagrams must carry this number.
 */
int hd_ep_init(struct hd_ep *ep);
int hd_ep_pair(struct hd_ep *ep, const struct hd_qp_attr *attr);
int hd_ep_start(struct hd_ep *ep);
void hd_ep_pair_tune(struct hd_ep *ep, const struct hd_qp_attr *attr);
void hd_ep_allow(struct hd_ep *ep, uint32_t policy);

/*
 * Packet sequence numbers. Two reliable ends talk in the epochs that they mean: what the other end
 * sends waits, as if we were not ready, while its number, in its epoch, is not the one that we have
 * for it. hd_ep_set_psn: with which our requests begin, before any is posted; else 0.
 * hd_ep_psns: of the next request to be sent, and of the next to come; here a request is one
 * packet, and what the other end does to our memory without a receive is not counted.
 */
void hd_ep_set_psn(struct hd_ep *ep, uint32_t psn);
void hd_ep_psns(const struct hd_ep *ep, uint32_t *sq_psn, uint32_t *rq_psn);
void hd_ep_set_qkey(struct hd_ep *ep, uint32_t qkey);

/*
 * hd_ep_fail: what is posted, receives of its own queue as well, completes with HD_S_CANCELLED,
 * each kind in posting order, before this returns; so does what is posted from now on. The other
 * end gets HD_S_REFUSED. Once is enough.
 *
 * hd_ep_fall: the same for who must not wait (hd_ep_settle), in upcalls too. True: it has failed.
 * False: a process has been stopped in the middle of a copy to memory of it; what is posted stays
 * so until that is out of the copy, or dead: then all completes, and HD_EV_EP_OVER follows.
 *
 * hd_ep_reset: as it was when it was opened, with the same number: what is posted and held is
 * forgotten and completes nothing, not ready, for anybody. What has completed stays in its CQs.
 *
 * hd_ep_pause: to SQD: stop starting what is posted (HD_EV_EP_DRAINED follows when what was under
 * way has ended), or back. 0; -EINVAL: it cannot from its state. hd_ep_drain: that event follows
 * when everything posted has ended; perhaps at once.
 */
void hd_ep_fail(struct hd_ep *ep);
bool hd_ep_fall(struct hd_ep *ep);
void hd_ep_reset(struct hd_ep *ep);
int hd_ep_pause(struct hd_ep *ep, bool on);
int hd_ep_go_on(struct hd_ep *ep);
void hd_ep_drain(struct hd_ep *ep);

/*
 * hd_send_failed: an operation that is wrong here already: in its turn it completes with this
 * status. A reliable endpoint fails then; others, and those whose hd_window_bind was wrong, are in
 * SQE then. Answers as hd_send.
 *
 * SQE: what was posted behind has completed with HD_S_CANCELLED, and so does what is posted, until
 * hd_ep_go_on (0; -EINVAL: it is not in SQE). Receiving goes on.
 */
struct hd_failed_args {
	enum hd_status status;
	uint64_t tag;
	void *ctx;
	uint32_t flags; /* enum hd_send_flag: FENCE */
};
int hd_send_failed(struct hd_ep *ep, struct hd_dest *dest, const struct hd_failed_args *args);

/*
 * hd_ud_send: as hd_sendv, of an unpaired endpoint; head: grh, imm (with HD_SEND_IMM) and qkey, the
 * rest is 0. What cannot leave at once waits as a copy, whatever its flags: so its memory and
 * region are free on return. -ENOTCONN: it is not in RTS yet. hd_ud_lost: the same to where nobody
 * can be: it completes in its turn, as one that gets lost on its way.
 */
int hd_ud_send(struct hd_ep *ep, struct hd_dest *dest, const struct iovec *iov, int count,
	       struct hd_pkt_qp head, uint64_t tag, void *ctx, uint32_t flags);
int hd_ud_lost(struct hd_ep *ep, uint64_t tag, void *ctx, uint32_t flags);

/*
 * A second path to the other end of a pair, ibv_modify_qp(3). hd_ep_path_load: it is at this
 * address, too; -EINVAL. hd_ep_path_set: HD_PATH_REARM becomes HD_PATH_ARMED when the other end is
 * rearmed as well; HD_PATH_MIGRATED of one that is armed migrates, at both ends, else nothing is
 * armed any more; -EINVAL: there is no second path. hd_ep_path: what it has become. An armed pair
 * whose link is lost, or cannot be made, while nothing is under way, goes on by its second path;
 * what is under way then fails as it does without one.
 */
enum hd_path {
	HD_PATH_MIGRATED,
	HD_PATH_REARM,
	HD_PATH_ARMED
};
int hd_ep_path_load(struct hd_ep *ep, const struct sockaddr *to);
int hd_ep_path_set(struct hd_ep *ep, enum hd_path path);
enum hd_path hd_ep_path(const struct hd_ep *ep);

/* ---- questions ------------------------------------------------------------------------------- */

/*
 * A front asks the front of an endpoint of another node (or of its own) something: up to HD_ASK_MAX
 * bytes there, as many back. Both have to be processes of one user on one host, for all that the
 * kernel says: others are asked nothing, and answered EACCES.
 *
 * hd_ep_ask: by an endpoint that is not paired and not unreliable. told is called once, with the
 * node's lock, out of the middle of the engine, so it may post nothing: err is 0, and the answer
 * lies in `answer`; or it is a positive errno, the other front's or ECONNREFUSED (nobody answers
 * there), ECONNRESET (the node is gone), EACCES (it is not this user's). The memory is the front's
 * again then. It is not called when `ep` closes before. 0, -EINVAL, -ENOMEM, or the destination
 * cannot be called. There is no time-out: who is asked, and lives, answers.
 *
 * hd_ep_attr.asked: answers: how many bytes it has written to q->answer, or a negative errno. It is
 * called as deferred work is, so it may post and close anything, its own endpoint among it.
 */
struct hd_ask {
	void (*told)(struct hd_ask *ask, int err);
	size_t len;
	_Alignas(8) unsigned char answer[HD_ASK_MAX];
	struct hd_work work; /* the engine's, and */
	int err;	     /* what the other front has answered */
};
int hd_ep_ask(struct hd_ep *ep, struct hd_dest *dest, const void *question, size_t len, struct hd_ask *ask);

struct hd_question {
	const void *data; /* aligned to 8 bytes */
	size_t len;
	/* the endpoint that asks: valid during the call, or as long as it is followed */
	struct hd_dest *from;
	unsigned char *answer; /* HD_ASK_MAX bytes */
};

#endif
