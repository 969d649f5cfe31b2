/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Static tracepoints on the way of a message, for bpftrace, perf and gdb: provider `heddle`, see
 * docs/tracing.md. Where nobody looks, each is one instruction that does nothing, and a note in the
 * object that says where its arguments are; nothing is computed for it. So give each what is at
 * hand there. Without <sys/sdt.h> they are nothing at all.
 */
#ifndef HD_BASE_TRACE_H
#define HD_BASE_TRACE_H

#include <stddef.h>
#include <stdint.h>

#ifdef HD_HAVE_SDT
#include <sys/sdt.h>
#define HD_TRACE(name, a, b, c, d) DTRACE_PROBE4(heddle, name, a, b, c, d)
#else
#define HD_TRACE(name, a, b, c, d) ((void)(a), (void)(b), (void)(c), (void)(d))
#endif

/*
 * The compiler takes a tracepoint for long code: small functions that have one are to be
 * told to be inline still.
 */
#define hd_traced __attribute__((always_inline))

/*
 * A program asks for something: also what is refused for want of room, and will be asked for again.
 * The length is 0 where it is not at hand.
 */
#define HD_TRACE_POST(ep, what, len, ctx) \
	HD_TRACE(post, (uint32_t)(ep), (uint32_t)(what), (uint64_t)(len), ctx)

/*
 * A packet goes into a link, or comes out of one: enum hd_pkt_kind, the endpoint that it names,
 * bytes behind its header.
 */
#define HD_TRACE_OUT(link, pkt, len) HD_TRACE(out, link, (pkt)->kind, (pkt)->dst, (uint64_t)(len))
#define HD_TRACE_IN(link, pkt, len) HD_TRACE(in, link, (pkt)->kind, (pkt)->dst, (uint64_t)(len))

/* A message has found its receive. */
#define HD_TRACE_MATCH(ep, ctx, tag, len) HD_TRACE(match, ep, ctx, (uint64_t)(tag), (uint64_t)(len))

/* A completion stands in a queue: enum hd_status. */
#define HD_TRACE_COMPLETE(cq, e) HD_TRACE(complete, cq, (e)->ctx, (e)->len, (e)->err)

/* What HD_TRACE_POST tells of. */
enum hd_trace_post {
	HD_TRACE_SEND,
	HD_TRACE_READ,
	HD_TRACE_WRITE,
	HD_TRACE_ATOMIC,
	HD_TRACE_RECV,
	HD_TRACE_FLUSH,
};

#endif
