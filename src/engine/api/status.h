/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * How operations end, and why queue pairs have failed: in completions, inside of the engine, and in
 * FIN on the wire. Calls answer with negative errnos, and connections, which are made by calls of
 * the system, tell of them in their events; what has been posted ends in one of these. Each front
 * has a way of its own to tell its programs: hv_wc_status, hd_fi_errno of hd_status_errno,
 * received_status and sent_status of dat/event.c.
 */
#ifndef HD_ENGINE_API_STATUS_H
#define HD_ENGINE_API_STATUS_H

#include <stdint.h>

/*
 * In the comment: the NAK syndrome or the retry counter by which InfiniBand says so, where it does.
 * New ones go before HD_STATUS_WIRE.
 */
enum hd_status {
	HD_S_OK,
	/* given up by who has posted it: cancelled, or flushed with its queue pair */
	HD_S_CANCELLED,
	/* longer than the receive, or than may be received (NAK: invalid request) */
	HD_S_LENGTH,
	/* no such key, of another domain, or without this right (NAK: remote access error) */
	HD_S_ACCESS,
	HD_S_RANGE,   /* not all of it is in the region (NAK: remote access error) */
	HD_S_INVALID, /* nothing that the target carries out (NAK: invalid request) */
	/* the memory of the target's receive is wrong (NAK: remote operational error) */
	HD_S_OPERATIONAL,
	HD_S_RNR,	  /* no receive was posted in time (RNR NAK retry counter) */
	HD_S_TIMEOUT,	  /* not ready, or no answer, in time (transport retry counter) */
	HD_S_REFUSED,	  /* the endpoint is gone, has failed, or takes nothing from us */
	HD_S_LOST,	  /* the peer is gone, or the link that leads to it is */
	HD_S_UNREACHABLE, /* no way leads to the peer's host */
	HD_S_NO_MEMORY,
	HD_S_PROTOCOL, /* the other end has said what makes no sense */
	HD_STATUS_WIRE,
	/* our own memory: its local key, its range, or it is gone */
	HD_S_PROTECTION = HD_STATUS_WIRE,
	HD_S_LOCAL_LENGTH,    /* longer than may be sent */
	HD_S_LOCAL_OPERATION, /* nothing that may be sent here */
	HD_S_NO_MESSAGE,      /* none waits that matches */
	HD_S_OVERRUN,	      /* completions were lost */
	HD_STATUSES,
};

/*
 * hd_status_of: of what a call has failed with, an errno, positive or negative; what it does not
 * know is HD_S_LOST, as links end by many errnos.
 * hd_status_heard: of what a peer says. hd_status_errno: the positive errno that means the same,
 * for programs that read one; 0 of HD_S_OK.
 */
enum hd_status hd_status_of(int err);
int hd_status_errno(enum hd_status status);
static inline enum hd_status hd_status_heard(uint64_t word)
{
	return word < HD_STATUS_WIRE ? (enum hd_status)word : HD_S_PROTOCOL;
}

#endif
