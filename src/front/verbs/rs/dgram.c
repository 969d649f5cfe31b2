/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* Datagram rsockets: their names, their queue pair, and what has come there. */
#include "front/verbs/rs/dgram.h"
#include "base/clock.h"
#include "front/verbs/ops.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#define MOST_RECEIVES 4096

/* ---- life ------------------------------------------------------------------------------------ */

int rs_dgram_open(struct rs *rs)
{
	rs->dgram = calloc(1, sizeof(*rs->dgram));
	if (!rs->dgram)
		return -ENOMEM;
	TAILQ_INIT(&rs->dgram->dests);
	rs->conn.state = RS_DATAGRAM;
	return 0;
}

int rs_dgram_post_receive(struct rs *rs, uint32_t block)
{
	return rs_post_receive(&rs->v, block, rs_dgram_block_at(rs->in.mem, block), RS_DGRAM_BLOCK);
}

static uint32_t dgram_within(int wanted, uint32_t least, uint32_t most)
{
	return wanted < (int)least ? least : wanted > (int)most ? most : (uint32_t)wanted;
}

static int dgram_memory_open(struct rs *rs)
{
	size_t size;

	rs->in.posts = dgram_within(rs->opt.rq_size, RS_LEAST_BLOCKS, MOST_RECEIVES);
	rs->out.blocks = dgram_within(rs->opt.sndbuf / HV_MAX_DATAGRAM, RS_LEAST_BLOCKS, RS_MOST_BLOCKS);
	rs->out.places = dgram_within(rs->opt.sq_size, RS_LEAST_BLOCKS, RS_MOST_BLOCKS);
	rs->out.free = rs->out.blocks;
	size = (size_t)(rs->in.posts + rs->out.blocks) * RS_DGRAM_BLOCK;
	rs->in.mem = malloc(size);
	rs->in.arrived = calloc(rs->in.posts, sizeof(*rs->in.arrived));
	rs->in.senders = calloc(rs->in.posts, sizeof(*rs->in.senders));
	if (!rs->in.mem || !rs->in.arrived || !rs->in.senders)
		return -ENOMEM;
	rs->out.mem = rs_dgram_block_at(rs->in.mem, rs->in.posts);
	rs->v.mr = hv_ibv_reg_mr_iova2(rs->v.pd, rs->in.mem, size, (uintptr_t)rs->in.mem,
				       IBV_ACCESS_LOCAL_WRITE);
	return rs->v.mr ? 0 : -errno;
}

static int qp_ready(struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = RDMA_UDP_QKEY };
	int rc = hv_ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY);

	attr.qp_state = IBV_QPS_RTR;
	if (!rc)
		rc = hv_ibv_modify_qp(qp, &attr, IBV_QP_STATE);
	attr.qp_state = IBV_QPS_RTS;
	if (!rc)
		rc = hv_ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN);
	return -rc;
}

static int dgram_qp_open(struct rs *rs, struct ibv_context *context)
{
	struct ibv_qp_init_attr attr = { .qp_type = IBV_QPT_UD,
					 .cap = { rs->out.places, rs->in.posts, 1, 1, RS_SMALL } };

	rs->v.channel = hv_ibv_create_comp_channel(context);
	if (!rs->v.channel)
		return -errno;
	rs->v.cq = hv_ibv_create_cq(context, (int)(rs->out.places + rs->in.posts), rs, rs->v.channel, 0);
	if (!rs->v.cq)
		return -errno;
	attr.send_cq = attr.recv_cq = rs->v.cq;
	rs->v.qp = hv_ibv_create_qp(rs->v.pd, &attr);
	return rs->v.qp ? qp_ready(rs->v.qp) : -errno;
}

static int dgram_equip(struct rs *rs)
{
	struct hv_context *ctx = hv_cm_context();
	int rc;

	rs->v.pd = ctx ? hv_ibv_alloc_pd(&ctx->pub.context) : NULL;
	if (!rs->v.pd)
		return -errno;
	rc = dgram_memory_open(rs);
	if (!rc)
		rc = dgram_qp_open(rs, &ctx->pub.context);
	for (uint32_t i = 0; !rc && i < rs->in.posts; i++)
		rc = rs_dgram_post_receive(rs, i);
	return rc;
}

/*
 * ---- several with one name ----------------------------------------------------------------------
 *
 * SO_REUSEADDR, as UDP has it on Linux: of those with the same name the last one to be bound has
 * what comes from others than those whom the earlier ones know. So it takes over the service by
 * which the name is found. Whoever has asked before goes on with the queue pair that he was told
 * of: servers connect an rsocket to who has called, and bind the next one.
 */

static bool dgram_is_named(const struct rs *rs, const struct sockaddr *name)
{
	return rs->type == SOCK_DGRAM && rs->v.cq && rs->opt.reuse &&
	       rs_dest_is_same(&rs->id->route.addr.src_storage, name);
}

/* It gets another id, which has its name and nothing else. NULL with errno. */
static struct rdma_cm_id *dgram_hand_over(struct rs *from, struct rdma_event_channel *to)
{
	struct rdma_cm_id *service = from->id, *id;

	if (rdma_create_id(from->ch, &id, from, RDMA_PS_UDP))
		return NULL;
	if (rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, &from->opt.v6only, sizeof(int)) ||
	    rdma_migrate_id(service, to)) {
		rdma_destroy_id(id);
		return NULL;
	}
	id->route.addr.src_storage = service->route.addr.src_storage;
	from->id = id;
	from->dgram->handed = hd_now_ns();
	return service;
}

/*
 * Who has the service of this name lets us have it; our own lock is given up meanwhile. 0, -errno.
 */
static int dgram_inherit(struct rs *rs, const struct sockaddr *name)
{
	struct rdma_cm_id *service = NULL;
	struct rs *from;
	int rc = -EADDRINUSE;

	pthread_mutex_unlock(&rs->lock);
	for (int fd = 0; !service && (from = rs_next(&fd));) {
		if (from != rs && dgram_is_named(from, name) && !from->dgram->handed) {
			service = dgram_hand_over(from, rs->ch);
			rc = service ? 0 : -errno;
		}
		rs_leave(from, 0);
	}
	pthread_mutex_lock(&rs->lock);
	if (!service)
		return rc;
	service->context = rs;
	rdma_destroy_id(rs->id);
	rs->id = service;
	return rc;
}

/* If nobody else has it. */
static void have_back(struct rs *rs, const struct sockaddr *name)
{
	if (!rdma_bind_addr(rs->id, (struct sockaddr *)(uintptr_t)name) && !rdma_listen(rs->id, 0))
		rs->dgram->handed = 0;
	else
		memcpy(&rs->id->route.addr.src_storage, name, hv_sockaddr_size(name));
}

/* The one that has handed it over last. */
void rs_dgram_left(const struct sockaddr *name)
{
	uint64_t last = 0;
	struct rs *rs;

	for (int fd = 0; (rs = rs_next(&fd)); rs_leave(rs, 0))
		if (dgram_is_named(rs, name) && rs->dgram->handed > last)
			last = rs->dgram->handed;
	for (int fd = 0; last && (rs = rs_next(&fd)); rs_leave(rs, 0))
		if (dgram_is_named(rs, name) && rs->dgram->handed == last)
			have_back(rs, name);
}

/* The service first, as it may be another's name: then nothing has changed. */
static int name_it(struct rs *rs, struct sockaddr *name)
{
	if (!rdma_bind_addr(rs->id, name) && !rdma_listen(rs->id, 0))
		return 0;
	return errno == EADDRINUSE && rs->opt.reuse ? dgram_inherit(rs, name) : -errno;
}

/* What the id stands for goes before the queue pair, so that nobody is told of it any more. */
void rs_dgram_close(struct rs *rs)
{
	if (!rs->dgram)
		return;
	rs_dests_drop(rs->dgram);
	if (rs->v.qp)
		hv_ibv_destroy_qp(rs->v.qp);
	rs->v.qp = NULL;
	free(rs->in.senders);
	rs->in.senders = NULL;
}

int rs_dgram_bind(struct rs *rs, const struct sockaddr *addr)
{
	struct sockaddr_storage any = { .ss_family = (sa_family_t)rs->family };
	int rc;

	if (rs->v.cq)
		return addr ? -EINVAL : 0;
	rc = name_it(rs, addr ? (struct sockaddr *)(uintptr_t)addr : (struct sockaddr *)&any);
	if (rc || rs->v.cq) /* another thread was faster, while the lock was given up */
		return rc ? rc : -EINVAL;
	rc = dgram_equip(rs);
	if (rc) {
		rs_dgram_close(rs);
		rs_unequip(rs);
	}
	return rc;
}

int rs_dgram_connect(struct rs *rs, const struct sockaddr *addr)
{
	int rc = rs_dgram_bind(rs, NULL);

	if (rc)
		return rc;
	memset(&rs->dgram->peer, 0, sizeof(rs->dgram->peer));
	memcpy(&rs->dgram->peer, addr, hv_sockaddr_size(addr));
	return 0;
}

const struct sockaddr *rs_dgram_peer(const struct rs_dgram *dgram)
{
	return dgram->peer.ss_family ? (const struct sockaddr *)&dgram->peer : NULL;
}

/* ---- what has happened ----------------------------------------------------------------------- */

static void arrived(struct rs *rs, const struct ibv_wc *wc)
{
	uint32_t block = (uint32_t)wc->wr_id, place = (rs->in.first + rs->in.count) % rs->in.posts;
	struct rs_dest *from = NULL;

	if (wc->status == IBV_WC_SUCCESS && wc->byte_len >= HV_GRH + RS_DGRAM_HEAD)
		from = rs_dest_from(rs, wc, rs_dgram_block_at(rs->in.mem, block));
	if (!from || (rs_dgram_peer(rs->dgram) && !rs_dest_is_peer(rs->dgram, from))) {
		(void)rs_dgram_post_receive(rs, block);
		return;
	}
	rs->in.arrived[place] =
		(struct rs_arrived){ block, (uint32_t)(wc->byte_len - HV_GRH - RS_DGRAM_HEAD) };
	rs->in.senders[place] = from->addr;
	rs->in.count++;
	rs->wait.came++;
}

static void completed(struct rs *rs, const struct ibv_wc *wc)
{
	if (!(wc->wr_id & RS_SEND)) {
		arrived(rs, wc);
		return;
	}
	rs_sent(&rs->out, wc->wr_id);
}

void rs_dgram_step(struct rs *rs)
{
	struct ibv_wc wc;

	if (!rs->v.cq)
		return;
	while (hv_poll_cq(rs->v.cq, 1, &wc) == 1) {
		completed(rs, &wc);
		rs_changed(rs);
	}
	if (rs->dgram->asking || hd_evq_has(hv_cm_channel_of(rs->ch)->evq))
		rs_dgram_events(rs);
}

bool rs_dgram_may_send(const struct rs *rs)
{
	return !rs->v.cq || (!rs->dgram->asking && rs->out.free && rs_has_place(&rs->out));
}
