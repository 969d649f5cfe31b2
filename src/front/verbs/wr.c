/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * ibv_wr_post(3): work requests that are built one call at a time. They are kept as struct
 * ibv_send_wr until ibv_wr_complete, which posts all of them or none.
 */
#include "front/verbs/newer.h"
#include "front/verbs/opcode.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/*
 * One that is being built. Segments and inline data lie with it, so that nothing
 * moves when there are more.
 */
struct built {
	struct ibv_send_wr wr;
	struct ibv_sge sge[HV_MAX_SGE];
	char data[HV_MAX_INLINE];
};

struct hv_build {
	pthread_mutex_t lock; /* from ibv_wr_start to ibv_wr_complete or ibv_wr_abort */
	struct built **all;   /* kept from one list to the next */
	uint32_t count, room;
	int err; /* the first thing that was wrong, or 0 */
};

/* ---- requests -------------------------------------------------------------------------------- */

static struct hv_qp *qp_of(struct ibv_qp_ex *pub)
{
	return hv_container(pub, struct hv_qp, pub);
}

static struct built *last(struct ibv_qp_ex *pub)
{
	struct hv_build *b = qp_of(pub)->build;

	return b->count && !b->err ? b->all[b->count - 1] : NULL;
}

static int grow(struct hv_build *b)
{
	uint32_t n = b->room ? b->room * 2 : 8;
	struct built **all = realloc(b->all, n * sizeof(struct built *));

	if (!all)
		return ENOMEM;
	memset(all + b->room, 0, (n - b->room) * sizeof(struct built *));
	b->all = all;
	b->room = n;
	return 0;
}

/*
 * A further request; NULL: no memory, which ibv_wr_complete will tell. Whether its data is inline
 * the setter says, not wr_flags.
 */
static struct ibv_send_wr *wr_add(struct ibv_qp_ex *pub, enum ibv_wr_opcode opcode)
{
	struct hv_build *b = qp_of(pub)->build;
	struct built *n;

	if (b->count == b->room && !b->err)
		b->err = grow(b);
	if (b->err)
		return NULL;
	n = b->all[b->count];
	if (!n)
		n = b->all[b->count] = malloc(sizeof(*n));
	if (!n) {
		b->err = ENOMEM;
		return NULL;
	}
	b->count++;
	n->wr = (struct ibv_send_wr){ .wr_id = pub->wr_id,
				      .sg_list = n->sge,
				      .opcode = opcode,
				      .send_flags = pub->wr_flags & ~(unsigned)IBV_SEND_INLINE };
	return &n->wr;
}

static void remote(struct ibv_send_wr *wr, uint32_t rkey, uint64_t addr)
{
	wr->wr.rdma.remote_addr = addr;
	wr->wr.rdma.rkey = rkey;
}

static void wr_send(struct ibv_qp_ex *qp)
{
	wr_add(qp, IBV_WR_SEND);
}

static void wr_send_imm(struct ibv_qp_ex *qp, __be32 imm)
{
	struct ibv_send_wr *wr = wr_add(qp, IBV_WR_SEND_WITH_IMM);

	if (wr)
		wr->imm_data = imm;
}

static void wr_send_inv(struct ibv_qp_ex *qp, uint32_t rkey)
{
	struct ibv_send_wr *wr = wr_add(qp, IBV_WR_SEND_WITH_INV);

	if (wr)
		wr->invalidate_rkey = rkey;
}

static void wr_local_inv(struct ibv_qp_ex *qp, uint32_t rkey)
{
	struct ibv_send_wr *wr = wr_add(qp, IBV_WR_LOCAL_INV);

	if (wr)
		wr->invalidate_rkey = rkey;
}

static void wr_bind_mw(struct ibv_qp_ex *qp, struct ibv_mw *mw, uint32_t rkey,
		       const struct ibv_mw_bind_info *info)
{
	struct ibv_send_wr *wr = wr_add(qp, IBV_WR_BIND_MW);

	if (!wr)
		return;
	wr->bind_mw.mw = mw;
	wr->bind_mw.rkey = rkey;
	wr->bind_mw.bind_info = *info;
}

static void wr_rdma_read(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t addr)
{
	struct ibv_send_wr *wr = wr_add(qp, IBV_WR_RDMA_READ);

	if (wr)
		remote(wr, rkey, addr);
}

static void wr_rdma_write(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t addr)
{
	struct ibv_send_wr *wr = wr_add(qp, IBV_WR_RDMA_WRITE);

	if (wr)
		remote(wr, rkey, addr);
}

static void wr_rdma_write_imm(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t addr, __be32 imm)
{
	struct ibv_send_wr *wr = wr_add(qp, IBV_WR_RDMA_WRITE_WITH_IMM);

	if (!wr)
		return;
	remote(wr, rkey, addr);
	wr->imm_data = imm;
}

static void wr_atomic(struct ibv_qp_ex *qp, enum ibv_wr_opcode opcode, uint32_t rkey, uint64_t addr,
		      uint64_t compare_add, uint64_t swap)
{
	struct ibv_send_wr *wr = wr_add(qp, opcode);

	if (!wr)
		return;
	wr->wr.atomic.remote_addr = addr;
	wr->wr.atomic.rkey = rkey;
	wr->wr.atomic.compare_add = compare_add;
	wr->wr.atomic.swap = swap;
}

static void wr_atomic_cmp_swp(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t addr, uint64_t compare,
			      uint64_t swap)
{
	wr_atomic(qp, IBV_WR_ATOMIC_CMP_AND_SWP, rkey, addr, compare, swap);
}

static void wr_atomic_fetch_add(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t addr, uint64_t n)
{
	wr_atomic(qp, IBV_WR_ATOMIC_FETCH_AND_ADD, rkey, addr, n, 0);
}

/* ---- what belongs to them -------------------------------------------------------------------- */

static void wr_refuse(struct ibv_qp_ex *qp, int err)
{
	if (!qp_of(qp)->build->err)
		qp_of(qp)->build->err = err;
}

static void wr_set_sge_list(struct ibv_qp_ex *qp, size_t count, const struct ibv_sge *list)
{
	struct built *b = last(qp);

	if (!b)
		return;
	if (count > HV_MAX_SGE) {
		wr_refuse(qp, EINVAL);
		return;
	}
	memcpy(b->sge, list, count * sizeof(*list));
	b->wr.num_sge = (int)count;
}

static void wr_set_sge(struct ibv_qp_ex *qp, uint32_t lkey, uint64_t addr, uint32_t length)
{
	const struct ibv_sge sge = { addr, length, lkey };

	wr_set_sge_list(qp, 1, &sge);
}

static void wr_set_inline_data_list(struct ibv_qp_ex *qp, size_t count, const struct ibv_data_buf *list)
{
	struct built *b = last(qp);
	size_t len = 0;

	if (!b)
		return;
	for (size_t i = 0; i < count; i++) {
		if (list[i].length > sizeof(b->data) - len) {
			wr_refuse(qp, EINVAL);
			return;
		}
		if (list[i].length)
			memcpy(b->data + len, list[i].addr, list[i].length);
		len += list[i].length;
	}
	b->sge[0] = (struct ibv_sge){ .addr = (uintptr_t)b->data, .length = (uint32_t)len };
	b->wr.num_sge = 1;
	b->wr.send_flags |= IBV_SEND_INLINE;
}

static void wr_set_inline_data(struct ibv_qp_ex *qp, void *addr, size_t length)
{
	const struct ibv_data_buf buf = { addr, length };

	wr_set_inline_data_list(qp, 1, &buf);
}

static void wr_set_ud_addr(struct ibv_qp_ex *qp, struct ibv_ah *ah, uint32_t qpn, uint32_t qkey)
{
	struct built *b = last(qp);

	if (!b)
		return;
	b->wr.wr.ud.ah = ah;
	b->wr.wr.ud.remote_qpn = qpn;
	b->wr.wr.ud.remote_qkey = qkey;
}

static void wr_set_xrc_srqn(struct ibv_qp_ex *qp, uint32_t number)
{
	struct built *b = last(qp);

	if (b)
		b->wr.qp_type.xrc.remote_srqn = number;
}

static void wr_atomic_write(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t addr, const void *value)
{
	struct ibv_send_wr *wr = wr_add(qp, IBV_WR_ATOMIC_WRITE);

	if (!wr)
		return;
	remote(wr, rkey, addr);
	wr_set_inline_data(qp, (void *)(uintptr_t)value, 8);
}

/*
 * struct ibv_send_wr has no members for it, and no program posts one by that: its length, and its
 * placement and selectivity as the engine has them, lie where an atomic operation has its operands.
 */
static void wr_flush(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t addr, size_t len, uint8_t type,
		     uint8_t level)
{
	wr_atomic(qp, HV_WR_FLUSH, rkey, addr, level == HV_FLUSH_MR ? 0 : len,
		  type | (level == HV_FLUSH_MR ? HD_FLUSH_REGION : 0));
}

/* ---- what the devices do not have: the list that holds it is refused whole ------------------- */

static void wr_send_tso(struct ibv_qp_ex *qp, void *header, uint16_t len, uint16_t mss)
{
	wr_refuse(qp, EOPNOTSUPP);
}

/* ---- the list -------------------------------------------------------------------------------- */

static void wr_start(struct ibv_qp_ex *pub)
{
	struct hv_build *b = qp_of(pub)->build;

	pthread_mutex_lock(&b->lock);
	b->count = 0;
	b->err = 0;
}

static void wr_abort(struct ibv_qp_ex *pub)
{
	pthread_mutex_unlock(&qp_of(pub)->build->lock);
}

/* Would all of them be taken? */
static int check_all(struct hv_qp *qp, const struct hv_build *b)
{
	int rc = b->err;

	for (uint32_t i = 0; i < b->count && !rc; i++) {
		rc = hv_send_check(qp, &b->all[i]->wr);
		if (!rc)
			rc = hv_send_foresee(qp, &b->all[i]->wr);
	}
	return !rc && hv_qp_left(qp) < b->count ? ENOMEM : rc;
}

static int wr_complete(struct ibv_qp_ex *pub)
{
	struct hv_qp *qp = qp_of(pub);
	struct hv_build *b = qp->build;
	int rc = EIO;

	if (hv_enter(qp->ctx)) {
		rc = check_all(qp, b);
		for (uint32_t i = 0; i < b->count && !rc; i++)
			rc = hv_post_send_one(qp, &b->all[i]->wr);
		hv_leave(qp->ctx);
	}
	pthread_mutex_unlock(&b->lock);
	return hv_tell(rc);
}

/* ---- the object ------------------------------------------------------------------------------ */

static uint64_t wr_offered(const struct hv_qp *qp)
{
	uint64_t all = 0;

	for (int i = 0; i < HV_OPCODES; i++)
		if (hv_opcodes[i].transports & qp->transport)
			all |= hv_opcodes[i].build;
	return all;
}

int hv_build_open(struct hv_qp *qp, uint64_t send_ops)
{
	struct ibv_qp_ex *pub = &qp->pub;

	if (send_ops & ~wr_offered(qp))
		return EOPNOTSUPP;
	qp->build = calloc(1, sizeof(*qp->build));
	if (!qp->build)
		return ENOMEM;
	pthread_mutex_init(&qp->build->lock, NULL);
	pub->wr_send = wr_send;
	pub->wr_send_imm = wr_send_imm;
	pub->wr_rdma_read = wr_rdma_read;
	pub->wr_rdma_write = wr_rdma_write;
	pub->wr_rdma_write_imm = wr_rdma_write_imm;
	pub->wr_atomic_cmp_swp = wr_atomic_cmp_swp;
	pub->wr_atomic_fetch_add = wr_atomic_fetch_add;
	pub->wr_set_ud_addr = wr_set_ud_addr;
	pub->wr_set_sge = wr_set_sge;
	pub->wr_set_sge_list = wr_set_sge_list;
	pub->wr_set_inline_data = wr_set_inline_data;
	pub->wr_set_inline_data_list = wr_set_inline_data_list;
	pub->wr_bind_mw = wr_bind_mw;
	pub->wr_local_inv = wr_local_inv;
	pub->wr_send_inv = wr_send_inv;
	pub->wr_send_tso = wr_send_tso;
	pub->wr_set_xrc_srqn = wr_set_xrc_srqn;
	pub->wr_atomic_write = wr_atomic_write;
	qp->newer.wr_flush = wr_flush;
	pub->wr_start = wr_start;
	pub->wr_complete = wr_complete;
	pub->wr_abort = wr_abort;
	return 0;
}

void hv_build_close(struct hv_qp *qp)
{
	struct hv_build *b = qp->build;

	if (!b)
		return;
	for (uint32_t i = 0; i < b->room; i++)
		free(b->all[i]);
	free(b->all);
	pthread_mutex_destroy(&b->lock);
	free(b);
}
