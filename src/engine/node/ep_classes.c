/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* See ep/class.h. */
#include "engine/node/ep_classes.h"
#include "engine/cm/cm.h"
#include "engine/qp/qp.h"

static int ep_unconnected_open(struct hd_ep *ep, const struct hd_ep_attr *attr)
{
	return 0;
}

static void ep_unconnected_end(struct hd_ep *ep)
{
}

static bool ep_unconnected_is_shown_to(const struct hd_ep *ep, struct hd_page_ep *what)
{
	return false;
}

static int ep_connected_open(struct hd_ep *ep, const struct hd_ep_attr *attr)
{
	return hd_conn_open(ep);
}

static int ep_numbered_open(struct hd_ep *ep, const struct hd_ep_attr *attr)
{
	int rc = hd_qp_open(ep, attr);

	return rc ? rc : hd_asks_open(ep, attr->asked);
}

static void ep_numbered_free(struct hd_ep *ep)
{
	hd_asks_close(ep);
	hd_qp_free(ep);
}

static int ep_connected_numbered_open(struct hd_ep *ep, const struct hd_ep_attr *attr)
{
	int rc = hd_conn_open(ep);

	return rc ? rc : ep_numbered_open(ep, attr);
}

static void ep_connected_numbered_close(struct hd_ep *ep)
{
	hd_conn_close(ep);
	hd_qp_close(ep);
}

static void ep_connected_numbered_free(struct hd_ep *ep)
{
	hd_conn_close(ep);
	ep_numbered_free(ep);
}

const struct hd_ep_class hd_ep_classes[HD_EP_CLASSES] = {
	[HD_EP_CLASS_UNCONNECTED] = { ep_unconnected_open, ep_unconnected_end, ep_unconnected_end,
				      hd_group_take, ep_unconnected_is_shown_to },
	[HD_EP_CLASS_CONNECTED] = { ep_connected_open, hd_conn_close, hd_conn_close, hd_group_take,
				    hd_conn_is_shown_to },
	[HD_EP_CLASS_NUMBERED] = { ep_numbered_open, hd_qp_close, ep_numbered_free, hd_group_hold,
				   hd_qp_is_shown_to },
	[HD_EP_CLASS_CONNECTED_NUMBERED] = { ep_connected_numbered_open, ep_connected_numbered_close,
					     ep_connected_numbered_free, hd_group_hold, hd_qp_is_shown_to },
};
