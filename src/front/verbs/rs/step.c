/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* What happens to a stream rsocket: events of its id, and completions of its queue pair. */
#include "front/verbs/ops.h"
#include "front/verbs/rs/rs.h"

#include <errno.h>

#define BATCH 16 /* completions read at once */

/* ---- events of the id ------------------------------------------------------------------------ */

int rs_greet(struct rs *rs, enum rs_state state, int (*go)(struct rdma_cm_id *, struct rdma_conn_param *))
{
	uint8_t hello[RS_HELLO];
	struct rdma_conn_param p = {
		.private_data = hello, .private_data_len = RS_HELLO, .retry_count = 7, .rnr_retry_count = 7
	};
	int rc = rs_equip(rs);

	if (rc)
		return rc;
	rs_hello_put(rs, hello);
	rs->conn.state = state;
	return go(rs->id, &p) ? -errno : 0;
}

static int established(struct rs *rs, const struct rdma_cm_event *e)
{
	struct rs_hello hello;

	if (rs->conn.state == RS_CONNECTING) {
		if (!rs_hello_get(&hello, &e->param.conn))
			/* whoever has accepted it knows nothing of rsockets */
			return -ECONNREFUSED;
		rs_hello_heed(rs, &hello);
	}
	rs->conn.state = RS_CONNECTED;
	rs->conn.met = true;
	return 0;
}

/*
 * What is no answer: of the engine a negative errno, of InfiniBand a positive code. Who
 * hangs up at once refuses.
 */
static int step_reason(const struct rdma_cm_event *e)
{
	if (e->status == -ECONNRESET || e->status == -ENOTCONN)
		return -ECONNREFUSED;
	return e->status < 0 ? e->status : -ECONNABORTED;
}

static void happened(struct rs *rs, const struct rdma_cm_event *e)
{
	int rc = 0;

	switch (e->event) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		rs->conn.state = RS_ROUTING;
		rc = rs_route_resolve(&rs->route, rs->id);
		break;
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		rc = rs_greet(rs, RS_CONNECTING, rdma_connect);
		break;
	case RDMA_CM_EVENT_ESTABLISHED:
		rc = established(rs, e);
		break;
	case RDMA_CM_EVENT_DISCONNECTED:
		rs->conn.parted = true;
		break;
	case RDMA_CM_EVENT_TIMEWAIT_EXIT:
		break;
	case RDMA_CM_EVENT_REJECTED:
		rc = -ECONNREFUSED;
		break;
	default:
		rc = step_reason(e);
		break;
	}
	if (rc)
		rs_fail(rs, -rc);
}

static void take_events(struct rs *rs)
{
	struct rdma_cm_event *e;

	while (!rdma_get_cm_event(rs->ch, &e)) {
		happened(rs, e);
		rdma_ack_cm_event(e);
		rs_changed(rs);
	}
}

/* ---- completions ----------------------------------------------------------------------------- */

static void take_completions(struct rs *rs)
{
	struct ibv_wc wc[BATCH];
	int n;

	do {
		n = hv_poll_cq(rs->v.cq, BATCH, wc);
		for (int i = 0; i < n; i++)
			rs_completed(rs, &wc[i]);
		if (n > 0)
			rs_changed(rs);
	} while (n == BATCH);
	if (n < 0 && rs->conn.state != RS_OVER)
		rs_fail(rs, EIO);
}

/* The other end has gone: what it had sent before is here. */
static void step_part(struct rs *rs)
{
	take_completions(rs);
	if (rs->conn.state != RS_OVER)
		rs_fail(rs, rs->conn.eof ? 0 : ECONNRESET);
}

void rs_step(struct rs *rs)
{
	if (rs->type == SOCK_DGRAM) {
		rs_dgram_step(rs);
		return;
	}
	if (rs->conn.state == RS_LISTENING || rs->conn.state == RS_OPEN)
		return;
	if (rs->v.cq)
		take_completions(rs);
	if (!rs->v.cq || hd_evq_has(hv_cm_channel_of(rs->ch)->evq))
		take_events(rs);
	if (rs->conn.parted && rs->conn.state != RS_OVER)
		step_part(rs);
	if (rs->conn.state == RS_CONNECTED)
		rs_return_credit(rs);
}
