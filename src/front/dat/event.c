/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * What completions of the engine's mean in uDAPL: DAT_EVENT of dat2/dat.h, and dat_ib_extensions.h
 * where the base has no words.
 */
#include "front/dat/dat_front.h"

#include <dat2/dat_ib_extensions.h>
#include <errno.h>
#include <stdlib.h>

/* ---- status ---------------------------------------------------------------------------------- */

static DAT_DTO_COMPLETION_STATUS received_status(enum hd_status err)
{
	switch (err) {
	case HD_S_OK:
		return DAT_DTO_SUCCESS;
	case HD_S_LENGTH:
		return DAT_DTO_ERR_LOCAL_LENGTH;
	case HD_S_PROTECTION:
	case HD_S_ACCESS:
	case HD_S_RANGE:
		return DAT_DTO_ERR_LOCAL_PROTECTION;
	default:
		return DAT_DTO_ERR_FLUSHED;
	}
}

static DAT_DTO_COMPLETION_STATUS sent_status(enum hd_status err)
{
	switch (err) {
	case HD_S_OK:
		return DAT_DTO_SUCCESS;
	case HD_S_CANCELLED:
	case HD_S_REFUSED: /* the other end has parted */
		return DAT_DTO_ERR_FLUSHED;
	case HD_S_PROTECTION:
		return DAT_DTO_ERR_LOCAL_PROTECTION;
	case HD_S_ACCESS:
	case HD_S_RANGE:
		return DAT_DTO_ERR_REMOTE_ACCESS;
	case HD_S_LENGTH:
	case HD_S_INVALID:
	case HD_S_OPERATIONAL: /* the memory of its receive */
		return DAT_DTO_ERR_REMOTE_RESPONDER;
	case HD_S_RNR:
		return DAT_DTO_ERR_RECEIVER_NOT_READY;
	default:
		return DAT_DTO_ERR_TRANSPORT;
	}
}

/* ---- events ---------------------------------------------------------------------------------- */

static DAT_IB_EXTENSION_EVENT_DATA *extend(DAT_EVENT *out, DAT_IB_EXT_TYPE type)
{
	DAT_IB_EXTENSION_EVENT_DATA *x = (DAT_IB_EXTENSION_EVENT_DATA *)out->event_extension_data;

	out->event_number = (DAT_EVENT_NUMBER)DAT_IB_DTO_EVENT;
	x->type = type;
	x->status = out->event_data.dto_completion_event_data.status ? DAT_IB_OP_ERR : DAT_OP_SUCCESS;
	return x;
}

static void fill_datagram(const struct hd_cqe *e, DAT_EVENT *out)
{
	out->event_data.dto_completion_event_data.operation = (DAT_DTOS)DAT_IB_DTO_RECV_UD;
	extend(out, DAT_IB_UD_RECV)->remote_ah.qpn = (DAT_UINT32)e->tag; /* who sent it: ud.c */
}

static void fill_received(const struct hd_cqe *e, DAT_EVENT *out)
{
	DAT_DTO_COMPLETION_EVENT_DATA *dto = &out->event_data.dto_completion_event_data;

	dto->status = received_status(e->err == HD_S_LENGTH && e->buf == hu_gone ? HD_S_PROTECTION : e->err);
	dto->operation = DAT_DTO_RECEIVE;
	dto->transfered_length = (DAT_SEG_LENGTH)(e->flags & HD_C_RMA ? e->tag : e->len);
	if (!(e->flags & HD_C_IMM))
		return;
	if (e->imm & HD_IMM_TAKEN_BACK) {
		dto->operation = DAT_DTO_RECEIVE_WITH_INVALIDATE;
		dto->rmr_context = (DAT_RMR_CONTEXT)e->imm;
		return;
	}
	if (e->flags & HD_C_RMA) {
		dto->operation = (DAT_DTOS)DAT_IB_DTO_RECV_IMMED;
		extend(out, DAT_IB_RDMA_WRITE_IMMED_DATA)->val.immed.data = (uint32_t)e->imm;
	} else {
		dto->operation = (DAT_DTOS)DAT_IB_DTO_RECV_MSG_IMMED;
		extend(out, DAT_IB_RECV_IMMED_DATA)->val.immed.data = (uint32_t)e->imm;
	}
}

static void fill_bound(const struct hd_cqe *e, DAT_EVENT *out)
{
	out->event_number = DAT_RMR_BIND_COMPLETION_EVENT;
	out->event_data.rmr_completion_event_data =
		(DAT_RMR_BIND_COMPLETION_EVENT_DATA){ .rmr_handle = hu_tagged_object(e->tag),
						      .user_cookie.as_64 = (uintptr_t)e->ctx,
						      .status = e->err ? DAT_RMR_OPERATION_FAILED
								       : DAT_RMR_BIND_SUCCESS };
	if (e->err == HD_S_CANCELLED)
		out->event_data.rmr_completion_event_data.status = DAT_DTO_ERR_FLUSHED;
}

static void fill_sent(const struct hd_cqe *e, DAT_EVENT *out)
{
	DAT_DTO_COMPLETION_EVENT_DATA *dto = &out->event_data.dto_completion_event_data;

	dto->status = sent_status(e->err);
	dto->operation = (DAT_DTOS)(e->tag & HU_TAG_OPERATION);
	dto->transfered_length = (DAT_SEG_LENGTH)e->len;
	switch ((int)dto->operation) {
	case DAT_DTO_BIND_MW:
		fill_bound(e, out);
		break;
	case DAT_IB_DTO_RDMA_WRITE_IMMED:
		extend(out, DAT_IB_RDMA_WRITE_IMMED);
		break;
	case DAT_IB_DTO_FETCH_ADD:
		extend(out, DAT_IB_FETCH_AND_ADD);
		break;
	case DAT_IB_DTO_CMP_SWAP:
		extend(out, DAT_IB_CMP_AND_SWAP);
		break;
	case DAT_IB_DTO_SEND_UD:
		extend(out, DAT_IB_UD_SEND);
		break;
	default:
		break;
	}
}

/* What came without an error. The bytes that a write has written are in its tag. */
static void count_received(struct hu_ep *ep, const struct hd_cqe *e)
{
	DAT_EP_COUNTERS which = DCNT_EP_RECV;

	if (hu_unlikely(hu_ep_is_ud(ep)))
		which = DCNT_EP_RECV_UD;
	else if (hu_unlikely(e->flags & HD_C_RMA))
		which = DCNT_EP_RECV_RDMA_IMM;
	else if (hu_unlikely(e->flags & HD_C_IMM && !(e->imm & HD_IMM_TAKEN_BACK)))
		which = DCNT_EP_RECV_IMM;
	ep->counts[which]++;
	ep->counts[which + 1] += e->flags & HD_C_RMA ? e->tag : e->len;
}

bool hu_event_fill(struct hu_evd *evd, const struct hd_cqe *e, DAT_EVENT *out)
{
	struct hu_ep *ep;

	if (!e->flags) {
		*out = ((struct hu_notice *)e->ctx)->event;
		free(e->ctx);
		return true;
	}
	ep = hu_ep_of(evd->o.ia, e->ep);
	if (!ep)
		return false;
	*out = (DAT_EVENT){ .event_number = DAT_DTO_COMPLETION_EVENT, .evd_handle = evd };
	out->event_data.dto_completion_event_data = (DAT_DTO_COMPLETION_EVENT_DATA){ .ep_handle = ep };
	out->event_data.dto_completion_event_data.user_cookie.as_64 = (uintptr_t)e->ctx;
	if (!(e->flags & HD_C_RECV)) {
		fill_sent(e, out);
	} else {
		hu_ep_reaped(ep);
		if (hu_likely(!e->err))
			count_received(ep, e);
		fill_received(e, out);
		if (hu_unlikely(hu_ep_is_ud(ep)))
			fill_datagram(e, out);
	}
	return true;
}
