/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * What two engines say to each other. Nothing else is in this file, so that the protocol can be
 * read in one sitting; docs/wire.md tells it in prose. Every transport carries the same packets: a
 * fixed header and a payload whose length the transport's own framing knows. All integers are
 * little endian.
 *
 *	 0        1        2                 4                                  8
 *	+--------+--------+-----------------+----------------------------------+
 *	| kind   | flags  | gen             | dst: endpoint index at target    |
 *	+--------+--------+-----------------+----------------------------------+
 *	| src: endpoint index at sender     | op: operation id; or ssn         |
 *	+-----------------------------------+----------------------------------+
 *	| tag: by kind                      : of queue pairs: msn, queue       |
 *	+----------------------------------------------------------------------+
 *	| imm: by kind                      : of queue pairs: imm, epoch       |
 *	+----------------------------------------------------------------------+
 *	| payload …
 */
#ifndef HD_ENGINE_WIRE_H
#define HD_ENGINE_WIRE_H

#include <assert.h>
#include <stdint.h>

#define HD_WIRE_MAGIC 0x656c6464u /* "ddle" */
#define HD_WIRE_VERSION 12

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "packets travel as they stand in memory");

enum hd_pkt_kind {
	HD_PKT_NONE = 0,
	HD_PKT_HELLO, /* first packet of a link, each way: struct hd_hello */
	HD_PKT_USE,   /* from the connecting end: this link carries the data from here on */
	/* struct hd_announce[]: endpoints of the sender and the ports they listen on */
	HD_PKT_ANNOUNCE,
	/*
	 * the endpoint `src` of generation `gen` has been closed; gen 0: the program ends in order,
	 * and leaves what it has open
	 */
	HD_PKT_GONE,
	HD_PKT_EAGER, /* a whole message: tag, imm; op when HD_PKT_F_ACK asks for an ACK */
	HD_PKT_RTS,   /* a message is ready: struct hd_rts; op names it at the sender */
	/* send it in frames: op the sender's, imm the receiver's operation, tag bytes wanted */
	HD_PKT_CTS,
	HD_PKT_DATA, /* one frame: op the receiver's operation, tag the offset */
	/* op the sender's operation is finished: imm is enum hd_status, below HD_STATUS_WIRE */
	HD_PKT_FIN,
	/* op the sender's operation was matched and its data delivered (or discarded) */
	HD_PKT_ACK,
	/*
	 * the endpoint `src` asks the service `dst` for a connection: struct
	 * hd_connect; op names the request
	 */
	HD_PKT_CONNECT,
	HD_PKT_ACCEPT, /* op the caller's request: struct hd_accept says who takes it */
	HD_PKT_REJECT, /* op the caller's request: imm a positive errno; payload: private data */
	/*
	 * the caller, to the endpoint that has accepted: imm generation of
	 * `src`, tag the token of ACCEPT
	 */
	HD_PKT_READY,
	/*
	 * `src` is connected to `dst` no longer (imm: a word of the fronts), or asks no
	 * longer (op: the request)
	 */
	HD_PKT_LEAVE,
	HD_PKT_WRITE, /* write memory: struct hd_rma; op names it at the sender */
	HD_PKT_READ,  /* read memory: struct hd_rma, answered with DATA to op */
	/* change memory and say what it held: struct hd_atomic; op names it at the sender */
	HD_PKT_ATOMIC,
	/*
	 * op the sender's atomic operation has been carried out: what the memory held,
	 * where that was asked for
	 */
	HD_PKT_RESULT,
	/*
	 * write memory in one segment: tag where, imm the key, payload the data;
	 * op names it at the sender
	 */
	HD_PKT_PUT,
	/* `src` asks the front of the endpoint `dst` something; op names the question */
	HD_PKT_ASK,
	HD_PKT_TOLD, /* op the sender's question: imm 0 or a positive errno, payload the answer */
	/* `src` says something of the second path between it and `dst`: imm is enum hd_path_word */
	HD_PKT_PATH,
	/*
	 * `src` asks the queue pair `dst` where it stands with it, or answers (tag: gen of the
	 * question): op is enum hd_epoch_word
	 */
	HD_PKT_EPOCH,
	/*
	 * say when what was written here before can be seen: struct hd_rma; imm is enum hd_flush;
	 * op names it at the sender
	 */
	HD_PKT_FLUSH,
	HD_PKT_KINDS,
	/* 0xf0 to 0xff belong to the transport that carries them; the engine never sees them. */
	HD_PKT_TRANSPORT = 0xf0,
};

/* Of messages and requests; those that HD_SEND_WIRE has are enum hd_send_flag as well. */
enum hd_pkt_flag {
	HD_PKT_F_TAGGED = 1 << 0, /* goes to the tagged queue, else to the untagged one */
	HD_PKT_F_IMM = 1 << 1,	  /* imm carries remote CQ data */
	/* answer ACK (EAGER) or FIN (RTS) once matched and delivered */
	HD_PKT_F_ACK = 1 << 2,
	/* wakes a completion channel that waits for solicited events only */
	HD_PKT_F_SOLICITED = 1 << 3,
	HD_PKT_F_DELIVERED = 1 << 6, /* answer once it is in the target's queue, matched or not */
	/* Of queue pairs alone. */
	/* qp.queue: it is for the receive queue with this number (XRC) */
	HD_PKT_F_QUEUE = HD_PKT_F_TAGGED,
	/* with IMM: qp.imm is the key of a window that the target takes back */
	HD_PKT_F_INVALIDATE = 1 << 4,
	HD_PKT_F_MSN = 1 << 5, /* EAGER: qp.msn is set */
	/* EAGER: ssn is set. ACK, FIN: it is the answer to that message */
	HD_PKT_F_SSN = 1 << 7,
};

enum hd_hello_flag {
	/* answer: another link to this node stands already, close this one */
	HD_HELLO_F_MERGED = 1 << 0,
	HD_HELLO_F_REFUSED = 1 << 1, /* answer: not welcome; imm is a positive errno */
};

enum hd_cts_flag {
	/* the beginning alone, so much of it; another CTS follows, or FIN */
	HD_CTS_F_PART = 1 << 0,
};

enum hd_fin_flag { /* beside HD_PKT_F_SSN */
	/* from an initiator: op is the number of a READ of its own that it takes back */
	HD_FIN_F_BACK = 1 << 0,
};

enum hd_flush { /* InfiniBand's placement types, and above them the selectivity level: annex A19 */
	HD_FLUSH_GLOBAL = 1 << 0,     /* every processor and device of the host sees it */
	HD_FLUSH_PERSISTENT = 1 << 1, /* and it survives when the power fails */
	HD_FLUSH_REGION = 1 << 8,     /* of all of the region, wherever the segment lies and ends */
};

enum hd_path_word {
	HD_PATH_SAYS_REARM = 1, /* I am ready to migrate */
	HD_PATH_SAYS_MIGRATE,	/* I have, and so should you */
};

enum hd_epoch_word {
	HD_EPOCH_ASKS = 1, /* which of your requests is the first that I have not answered? */
	HD_EPOCH_STANDS,   /* imm is its packet sequence number (PSN) */
	HD_EPOCH_OVER,	   /* none of mine to you is under way, or will be */
};

/*
 * What a reliable queue pair's request says of its sender: how often to wait for a receive (7:
 * without end); for how long the target may not be ready (0: without end, else 2^(timeout - 1) ms);
 * and the PSN at which its epoch begins for the target's: see qp/epoch.c.
 */
struct hd_pkt_epoch {
	uint32_t rnr_retry : 3;
	uint32_t timeout : 5;
	uint32_t psn : 24;
};
static_assert(sizeof(struct hd_pkt_epoch) == 4, "an epoch is one word");

/* What a datagram of a queue pair says for the global routing header in front of it. */
struct hd_pkt_grh {
	uint8_t mark_low; /* the mark of the GID that was addressed, 14 bits; 0 in all: not said */
	uint8_t traffic_class;
	uint8_t hop_limit;     /* 0: not said */
	uint8_t global : 1;    /* the sender wants such a header */
	uint8_t ipv6 : 1;      /* its GID is of IPv6 */
	uint8_t mark_high : 6; /* of the mark */
};
static_assert(sizeof(struct hd_pkt_grh) == 4, "what is said for a header is one word");

/* The same of one to a group, which is no GID of a port. */
struct hd_cast_grh {
	uint8_t traffic_class;
	uint8_t hop_limit;
	uint8_t global : 1;
	uint8_t ipv6 : 1;
	uint8_t zero_high : 6;
	uint8_t zero;
};
static_assert(sizeof(struct hd_cast_grh) == 4, "and one word to a group");

/* A queue pair's message or request, in the place of tag and imm. */
struct hd_pkt_qp {
	uint32_t msn; /* with F_MSN: the newest message from `dst` that `src` has accepted */
	union {
		uint32_t queue;	       /* with F_QUEUE */
		struct hd_pkt_grh grh; /* datagrams */
	};
	uint32_t imm; /* immediate data, or the key of a window (F_INVALIDATE) */
	union {
		struct hd_pkt_epoch epoch; /* reliable ones; unreliable ones have 0 */
		uint32_t qkey;		   /* datagrams */
	};
};

struct hd_pkt {
	union {
		struct {
			uint8_t kind;
			uint8_t flags;
			/*
			 * generation of the target endpoint: a message for
			 * its predecessor is dropped
			 */
			uint16_t gen;
			uint32_t dst;
		};
		uint64_t to; /* hd_pkt_to */
	};
	union {
		struct {
			uint32_t src;
			union {
				uint32_t op;
				/*
				 * with F_SSN: counts up from message to message of the queue pair;
				 * an answer stands for all up to it
				 */
				uint32_t ssn;
				struct hd_cast_grh cast_grh; /* hd_cast_head */
			};
		};
		uint64_t from; /* hd_pkt_from */
	};
	union {
		struct {
			uint64_t tag;
			uint64_t imm;
		};
		struct hd_pkt_qp qp;
	};
};
static_assert(sizeof(struct hd_pkt) == 32 && sizeof(struct hd_pkt_qp) == 16,
	      "the header of a packet is 32 bytes");

/*
 * The first two words of a header that is copied at once, into a ring, say: a processor hands what
 * it has just stored to a load only if one store has all of it; else the load waits until the cache
 * has those stores, and all before them. hd_pkt_put: that copy, word by word.
 */
static inline uint64_t hd_pkt_to(uint8_t kind, uint8_t flags, uint16_t gen, uint32_t dst)
{
	return (uint64_t)dst << 32 | (uint32_t)gen << 16 | (uint32_t)flags << 8 | kind;
}
static inline uint64_t hd_pkt_from(uint32_t src, uint32_t op)
{
	return (uint64_t)op << 32 | src;
}
static inline void hd_pkt_put(struct hd_pkt *to, const struct hd_pkt *pkt)
{
	/* relaxed: so that the compiler makes no longer words of them */
	__atomic_store_n(&to->to, pkt->to, __ATOMIC_RELAXED);
	__atomic_store_n(&to->from, pkt->from, __ATOMIC_RELAXED);
	__atomic_store_n(&to->tag, pkt->tag, __ATOMIC_RELAXED);
	__atomic_store_n(&to->imm, pkt->imm, __ATOMIC_RELAXED);
}

/* queue pairs of a node, by index, that hd_link_ops.accept has rows for */
#define HD_ACK_ROWS 4096u
#define HD_PUT_MAX 4096 /* payload bytes of a PUT */
#define HD_ASK_MAX 512	/* of ASK and of TOLD */

/* A node's name on the wire: random, drawn when it opens; no two nodes share one. */
struct hd_node_id {
	uint64_t word[2];
};

/*
 * What is said to a group is no packet of a link: nobody has greeted the others. Each datagram
 * begins with this. kind is EAGER, flags are of IMM and SOLICITED; dst is the sender's number
 * (hd_ep_number; 0: it has none), tag tells groups at one address apart; a queue pair's has
 * cast_grh, qp.imm and qp.qkey; gen is 0. The sender's further keys follow, then the payload.
 */
struct hd_cast_head {
	uint32_t magic;
	uint16_t version;
	uint16_t more;		/* further keys, below HD_CAST_KEYS */
	struct hd_node_id node; /* whose endpoint `src` sends */
	uint64_t key;		/* digest of the sender's authorization key; 0: it has none */
	struct hd_pkt pkt;
};
static_assert(sizeof(struct hd_cast_head) == 64, "the head of a datagram has no holes");

#define HD_CAST_KEYS 64 /* of one sender to groups */
struct hd_cast_key {
	uint64_t key;
	uint32_t src; /* endpoint of the sender's node that has it */
	uint32_t zero;
};
static_assert(sizeof(struct hd_cast_key) == 16, "a further key has no holes");

#define HD_HELLO_ADDRS 16   /* addresses of a node that its HELLO can carry */
#define HD_HELLO_ADVERT 192 /* bytes for the transports' own adverts */

/*
 * Payload of HELLO. Header: dst = the slot of the name that is called, tag = digest of the
 * authorization key that the endpoint of that name must have, 0: none (caller only); op =
 * generation of the endpoint that was called, imm = its index (answer only).
 */
struct hd_hello {
	uint32_t magic;
	uint16_t version;
	uint16_t addr_count;
	struct hd_node_id id;
	uint64_t incarnation; /* start time; tells a restarted node from its predecessor in logs */
	uint8_t called[16];   /* the address that the caller connected to, IPv4 as mapped IPv6 */
	/* first credit of the receiver of this HELLO, in units (see HD_UNIT) */
	uint32_t window;
	uint16_t called_port; /* host order */
	uint16_t advert_len;
	uint8_t addr[HD_HELLO_ADDRS][16];
	uint8_t advert[HD_HELLO_ADVERT]; /* {u8 transport number, u8 length, bytes} repeated */
};
static_assert(sizeof(struct hd_hello) == 504, "HELLO is 504 bytes");

/* An endpoint that can be called by name. addr all zero: every address of the HELLO. */
struct hd_announce {
	uint32_t index;
	uint16_t gen;
	uint16_t port; /* host order */
	uint8_t addr[16];
	uint16_t slot; /* of its name, see bound_port.h */
	uint16_t zero[3];
	uint64_t key; /* digest of its authorization key; 0: it has none */
};
static_assert(sizeof(struct hd_announce) == 40, "an announcement is 40 bytes");

/*
 * Payload of RTS; `offer` is what the sender's transport wrote so that the receiver's can
 * fetch the message itself.
 */
#define HD_OFFER_MAX 104
struct hd_rts {
	uint64_t len;
	uint8_t offer[HD_OFFER_MAX]; /* offer_len = payload length - 8; 0: frames only */
};
static_assert(sizeof(struct hd_rts) == 112, "RTS is at most 112 bytes");

/*
 * Private data of a connection, at the end of CONNECT and ACCEPT; as much as the payload is long.
 */
#define HD_CM_PRIVATE 256

/* Payload of CONNECT. */
struct hd_connect {
	uint64_t number; /* of the service in its name space; 0: the one that is called */
	uint32_t space;	 /* name space: 0 TCP ports */
	uint16_t type;	 /* of the endpoint: enum hd_ep_type */
	uint16_t zero;
	uint64_t word;		 /* of the fronts */
	struct hd_announce from; /* the endpoint that asks */
	uint8_t data[HD_CM_PRIVATE];
};
static_assert(sizeof(struct hd_connect) == 24 + sizeof(struct hd_announce) + HD_CM_PRIVATE,
	      "CONNECT has no holes");

/*
 * Payload of ACCEPT. The endpoint may be in another node than the service: the caller
 * goes there and says READY.
 */
struct hd_accept {
	struct hd_node_id node;
	/* addr all zero: it is at the address at which the service was called */
	struct hd_announce ep;
	uint64_t token; /* comes back in READY */
	uint64_t word;	/* of the fronts */
	uint8_t data[HD_CM_PRIVATE];
};
static_assert(sizeof(struct hd_accept) == 32 + sizeof(struct hd_announce) + HD_CM_PRIVATE,
	      "ACCEPT has no holes");

/*
 * A piece of a target's memory: a key and a place in what it opens, counted as
 * that region was registered.
 */
struct hd_rma_seg {
	uint64_t addr;
	uint64_t len;
	uint64_t key;
};

/*
 * The payload of WRITE and READ begins with this and `count` segments, as long as all of it
 * together. A WRITE goes on with its offer (as in RTS; offer_len bytes, perhaps none), or
 * with its data: all of it.
 */
#define HD_RMA_SEGS 8
struct hd_rma {
	uint8_t count;
	uint8_t offer_len;
	/*
	 * WRITE: bytes that its initiator has written by itself, which its completion counts too:
	 */
	uint16_t done_high;
	uint32_t done; /* done_high << 32 | done */
};
static_assert(sizeof(struct hd_rma) == 8 && sizeof(struct hd_rma_seg) == 24, "segments follow without a gap");

/*
 * Atomic operations. What each makes of an element a, with operand b and comparand c:
 *
 *	MIN, MAX          the smaller, the greater of a and b
 *	SUM, PROD         a + b, a * b
 *	LOR, LAND, LXOR   1 or 0
 *	BOR, BAND, BXOR   by bits
 *	READ, WRITE       a, b
 *	MSWAP             the bits of b where c has ones
 *	CSWAP             b if c == a		CSWAP_NE          b if c != a
 *	CSWAP_LE          b if c <= a		CSWAP_LT          b if c < a
 *	CSWAP_GE          b if c >= a		CSWAP_GT          b if c > a
 *
 * Types that are not numbers on a line have no order (MIN, MAX, CSWAP_LE to _GT), and
 * only integers have bits.
 */
enum hd_atomic_op {
	HD_ATOMIC_MIN,
	HD_ATOMIC_MAX,
	HD_ATOMIC_SUM,
	HD_ATOMIC_PROD,
	HD_ATOMIC_LOR,
	HD_ATOMIC_LAND,
	HD_ATOMIC_BOR,
	HD_ATOMIC_BAND,
	HD_ATOMIC_LXOR,
	HD_ATOMIC_BXOR,
	HD_ATOMIC_READ,
	HD_ATOMIC_WRITE,
	HD_ATOMIC_CSWAP, /* from here on with a comparand */
	HD_ATOMIC_CSWAP_NE,
	HD_ATOMIC_CSWAP_LE,
	HD_ATOMIC_CSWAP_LT,
	HD_ATOMIC_CSWAP_GE,
	HD_ATOMIC_CSWAP_GT,
	HD_ATOMIC_MSWAP,
	HD_ATOMIC_OPS,
};

/* as C on the target's machine has them; signed and unsigned integers, real and complex numbers */
enum hd_atomic_type {
	HD_ATOMIC_I8,
	HD_ATOMIC_U8,
	HD_ATOMIC_I16,
	HD_ATOMIC_U16,
	HD_ATOMIC_I32,
	HD_ATOMIC_U32,
	HD_ATOMIC_I64,
	HD_ATOMIC_U64,
	HD_ATOMIC_F,
	HD_ATOMIC_D,
	HD_ATOMIC_FC,
	HD_ATOMIC_DC,
	HD_ATOMIC_LD,
	HD_ATOMIC_LDC,
	HD_ATOMIC_I128,
	HD_ATOMIC_U128,
	HD_ATOMIC_TYPES,
};

enum hd_atomic_how {
	HD_ATOMIC_BASE,	   /* operands; nothing comes back but that it is done */
	HD_ATOMIC_FETCH,   /* operands, but for READ; the old values come back */
	HD_ATOMIC_COMPARE, /* operands and comparands; the old values come back */
	HD_ATOMIC_HOWS,
};

/*
 * The payload of ATOMIC: this, `segs` of struct hd_rma_seg, whose lengths make up count elements
 * and divide into whole ones, then count operands, then count comparands.
 */
struct hd_atomic {
	uint8_t how, op, type; /* the enums above */
	uint8_t segs;	       /* 1 to HD_RMA_SEGS */
	uint32_t count;	       /* elements: 1 to HD_ATOMIC_BYTES of them */
};
static_assert(sizeof(struct hd_atomic) == 8, "segments follow without a gap");

/* memory that one operation changes, so that it is one packet and one answer */
#define HD_ATOMIC_BYTES 2048u
#define HD_ATOMIC_PAYLOAD \
	(sizeof(struct hd_atomic) + HD_RMA_SEGS * sizeof(struct hd_rma_seg) + 2 * HD_ATOMIC_BYTES)

/* bytes of one DATA frame, so that messages of one link take turns */
#define HD_FRAME_MAX (128u << 10)

/*
 * Credit. A message is charged in units of 64 bytes: its payload and HD_UNIT_MESSAGE for the
 * bookkeeping that it needs while it waits, so that one number counts bytes and messages. Grants
 * are cumulative and wrap; windows stay below 2^31 units.
 */
#define HD_UNIT 64u
/* bytes granted to a new peer where there is room: a quarter of it may go in one message */
#define HD_WINDOW_FIRST (256u << 10)
#define HD_UNIT_MESSAGE 4u
#define HD_UNITS_RTS 6u /* a request to send, with its offer */
/* a READ, a FLUSH, or a WRITE without its data, until it has been carried out */
#define HD_UNITS_RMA 16u

static inline uint32_t hd_units(uint64_t len)
{
	return HD_UNIT_MESSAGE + (uint32_t)((len + HD_UNIT - 1) / HD_UNIT);
}

#endif
