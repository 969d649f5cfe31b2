/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* ibv_create_ah(3), ibv_create_ah_from_wc(3): where datagrams go. */
#include "base/table.h"
#include "front/verbs/addr.h"
#include "front/verbs/entry.h"
#include "front/verbs/qp.h"

#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct hv_ah_dest {
	uint32_t qpn;
	struct hd_dest *dest;
	UT_hash_handle hh;
};

/* ---- destinations ---------------------------------------------------------------------------- */

int hv_ah_find(struct hv_ah *ah, uint32_t qpn, struct hd_dest **out)
{
	struct sockaddr_storage to;
	struct hv_ah_dest *d;
	int rc;

	HASH_FIND(hh, ah->dests, &qpn, sizeof(qpn), d);
	if (!d) {
		rc = hv_addr_resolve(ah->ctx, &ah->attr, qpn, &to);
		if (rc < 0)
			return rc;
		d = malloc(sizeof(*d));
		if (!d)
			return -ENOMEM;
		d->qpn = qpn;
		rc = hd_dest_get(ah->ctx->node, (struct sockaddr *)&to, &d->dest);
		if (rc < 0) {
			free(d);
			return rc;
		}
		HASH_ADD(hh, ah->dests, qpn, sizeof(d->qpn), d);
		if (!hd_is_in_table(&d->hh)) {
			hd_dest_put(d->dest);
			free(d);
			return -ENOMEM;
		}
	}
	ah->last_qpn = qpn;
	ah->last = d->dest;
	*out = d->dest;
	return 0;
}

static void dests_free(struct hv_ah *ah, bool live)
{
	struct hv_ah_dest *d, *next;

	HASH_ITER(hh, ah->dests, d, next) {
		HASH_DEL(ah->dests, d);
		if (live)
			hd_dest_put(d->dest);
		free(d);
	}
}

/* ---- the object ------------------------------------------------------------------------------ */

int hv_ah_attr_check(const struct hv_context *ctx, const struct ibv_ah_attr *attr)
{
	if (attr->port_num != 1 || attr->sl > 15)
		return EINVAL;
	if (attr->is_global && attr->grh.sgid_index >= ctx->port.gid_count)
		return EINVAL;
	if (ctx->device->index == HV_ETHERNET) /* IBV_QPF_GRH_REQUIRED */
		return attr->is_global ? 0 : EINVAL;
	return attr->dlid || attr->is_global ? 0 : EINVAL;
}

struct hd_pkt_grh hv_datagram_grh(const struct hv_context *ctx, const struct ibv_ah_attr *attr)
{
	const struct ibv_global_route *to = &attr->grh;
	uint16_t mark;

	if (!attr->is_global)
		return (struct hd_pkt_grh){ 0 };
	mark = hv_gid_mark(&to->dgid);
	return (struct hd_pkt_grh){
		.traffic_class = to->traffic_class,
		.hop_limit = to->hop_limit,
		.global = 1,
		.ipv6 = ctx->device->index == HV_ETHERNET &&
			!hv_gid_is_ipv4(ctx->port.gids[to->sgid_index].gid.raw),
		.mark_low = (uint8_t)mark,
		.mark_high = mark >> 8 & 0x3f,
	};
}

struct ibv_ah *hv_ibv_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr)
{
	struct hv_context *ctx = hv_context_of(pd->context);
	struct hv_ah *ah;
	int rc = hv_ah_attr_check(ctx, attr);

	if (rc)
		return hv_fail(rc);
	rc = HV_CHECK(pd);
	if (rc)
		return hv_fail(rc);
	ah = hv_object_new(ctx, HV_KIND_AH, sizeof(*ah));
	if (!ah)
		return NULL;
	ah->ctx = ctx;
	ah->pd = hv_pd_real(hv_pd_of(pd));
	ah->attr = *attr;
	ah->grh = hv_datagram_grh(ctx, attr);
	ah->pub.context = pd->context;
	ah->pub.pd = pd;
	if (!hv_enter(ctx)) {
		hv_object_free(ctx, ah);
		return hv_fail(EIO);
	}
	ah->pub.handle = ++ctx->next_handle;
	hv_object_show(ah, ah->pub.handle);
	hv_pd_of(pd)->users++;
	ctx->objects++;
	hv_leave(ctx);
	return &ah->pub;
}

int hv_ibv_destroy_ah(struct ibv_ah *pub)
{
	struct hv_context *ctx = hv_context_of(pub->context);
	struct hv_ah *ah = hv_ah_of(pub);
	int rc = HV_CHECK(pub);
	bool live;

	if (rc)
		return rc;
	live = hv_enter(ctx);
	dests_free(ah, live);
	if (live) {
		hv_pd_of(pub->pd)->users--;
		ctx->objects--;
		hv_leave(ctx);
	}
	hv_object_free(ctx, ah);
	return 0;
}

/* ---- the header in front of a datagram ------------------------------------------------------- */

/* An IPv4 header, as RoCE v2 leaves it in the last 20 of the 40 bytes. */
struct ipv4 {
	uint8_t version, tos;
	__be16 len, id, fragment;
	uint8_t ttl, protocol;
	__be16 check;
	uint8_t from[4], to[4];
};
static_assert(sizeof(struct ipv4) == 20 && sizeof(struct ibv_grh) == HV_GRH,
	      "what lies in front of a datagram");

static uint16_t checksum(const struct ipv4 *h)
{
	uint16_t words[10];
	uint32_t sum = 0;

	memcpy(words, h, sizeof(words));
	for (int i = 0; i < 10; i++)
		sum += words[i];
	sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t) ~(sum + (sum >> 16));
}

static uint8_t class_of(const struct ibv_grh *grh)
{
	return (uint8_t)(be32toh(grh->version_tclass_flow) >> 20);
}

bool hv_grh_write(const struct hv_context *ctx, const struct ibv_grh *grh, void *at)
{
	struct ipv4 ip = { .version = 0x45, .tos = class_of(grh), .ttl = grh->hop_limit, .protocol = 17 };
	char *to = at;

	if (ctx->device->index != HV_ETHERNET || !hv_gid_is_ipv4(grh->sgid.raw) ||
	    (!hv_gid_is_ipv4(grh->dgid.raw) && hv_gid_is_multicast(&grh->dgid))) {
		memcpy(to, grh, sizeof(*grh));
		return false;
	}
	memcpy(ip.from, grh->sgid.raw + 12, 4);
	if (hv_gid_is_ipv4(grh->dgid.raw))
		memcpy(ip.to, grh->dgid.raw + 12, 4);
	ip.check = checksum(&ip);
	memset(to, 0, HV_GRH - sizeof(ip));
	memcpy(to + HV_GRH - sizeof(ip), &ip, sizeof(ip));
	return true;
}

/* Of this port's GIDs of a family the one with this mark, or the first. NULL: there is none. */
static const union ibv_gid *gid_of_ours(const struct hv_context *ctx, bool ipv4, uint32_t mark)
{
	const struct hv_gid *gids = ctx->port.gids;
	int count = ctx->port.gid_count;

	for (int i = 0; i < count; i++)
		if (gids[i].mark == mark && hv_gid_is_ipv4(gids[i].gid.raw) == ipv4)
			return &gids[i].gid;
	for (int i = 0; i < count; i++)
		if (hv_gid_is_ipv4(gids[i].gid.raw) == ipv4)
			return &gids[i].gid;
	return NULL;
}

/* Who has chosen a GID of IPv6 sends from one, though his link may be of IPv4. */
static const void *ipv6_of_theirs(const struct hd_sender *from)
{
	for (unsigned i = 0; i < from->addr_count; i++)
		if (!hv_gid_is_ipv4(from->addrs[i]))
			return from->addrs[i];
	return NULL;
}

void hv_grh_fill(const struct hv_context *ctx, const struct hd_sender *from, struct ibv_grh *grh)
{
	const void *theirs = from->grh.ipv6 ? ipv6_of_theirs(from) : NULL;
	const union ibv_gid *ours =
		gid_of_ours(ctx, ctx->device->index == HV_ETHERNET && !theirs, hv_datagram_mark(&from->grh));

	if (!ours)
		ours = &ctx->port.gids[0].gid;
	else if (theirs)
		memcpy(&grh->sgid, theirs, sizeof(grh->sgid));
	grh->dgid = *ours;
}

/* The other way: IPv4, where it is a header of that whose sum is right. */
static void grh_read(const struct hv_context *ctx, const void *at, struct ibv_grh *out)
{
	struct ipv4 ip;

	memcpy(out, at, sizeof(*out));
	memcpy(&ip, (const char *)at + HV_GRH - sizeof(ip), sizeof(ip));
	if (ctx->device->index != HV_ETHERNET || be32toh(out->version_tclass_flow) >> 28 == 6 ||
	    ip.version != 0x45 || checksum(&ip) != 0)
		return;
	*out = (struct ibv_grh){ .version_tclass_flow = htobe32((uint32_t)ip.tos << 20),
				 .hop_limit = ip.ttl };
	out->sgid.raw[10] = out->sgid.raw[11] = out->dgid.raw[10] = out->dgid.raw[11] = 0xff;
	memcpy(out->sgid.raw + 12, ip.from, 4);
	memcpy(out->dgid.raw + 12, ip.to, 4);
}

static int gid_index(const struct hv_context *ctx, const union ibv_gid *gid)
{
	for (int i = 0; i < ctx->port.gid_count; i++)
		if (!memcmp(&ctx->port.gids[i].gid, gid, sizeof(*gid)))
			return i;
	return -1;
}

int hv_ibv_init_ah_from_wc(struct ibv_context *context, uint8_t port, struct ibv_wc *wc, struct ibv_grh *grh,
			   struct ibv_ah_attr *attr)
{
	struct hv_context *ctx = hv_context_of(context);
	struct ibv_grh header;
	int index;

	*attr = (struct ibv_ah_attr){
		.dlid = wc->slid, .sl = wc->sl, .src_path_bits = wc->dlid_path_bits, .port_num = port
	};
	if (!(wc->wc_flags & IBV_WC_GRH))
		return 0;
	grh_read(ctx, grh, &header);
	index = port == 1 ? gid_index(ctx, &header.dgid) : -1;
	if (index < 0) {
		errno = EINVAL;
		return -1;
	}
	attr->is_global = 1;
	attr->grh.dgid = header.sgid;
	attr->grh.sgid_index = (uint8_t)index;
	attr->grh.hop_limit = header.hop_limit;
	attr->grh.flow_label = be32toh(header.version_tclass_flow) & 0xfffff;
	attr->grh.traffic_class = class_of(&header);
	return 0;
}

struct ibv_ah *hv_ibv_create_ah_from_wc(struct ibv_pd *pd, struct ibv_wc *wc, struct ibv_grh *grh,
					uint8_t port)
{
	struct ibv_ah_attr attr;

	if (hv_ibv_init_ah_from_wc(pd->context, port, wc, grh, &attr))
		return NULL;
	return hv_ibv_create_ah(pd, &attr);
}

/* There are no MAC addresses: what they would be looked up for is done by the host. */
int hv_ibv_resolve_eth_l2_from_gid(struct ibv_context *context, struct ibv_ah_attr *attr, uint8_t mac[6],
				   uint16_t *vlan)
{
	struct hv_context *ctx = hv_context_of(context);
	struct sockaddr_storage to;

	if (ctx->device->index != HV_ETHERNET || !attr->is_global ||
	    attr->grh.sgid_index >= ctx->port.gid_count || hv_addr_of_gid(&attr->grh.dgid, &to) < 0) {
		errno = EINVAL;
		return -1;
	}
	memset(mac, 0, 6);
	if (vlan)
		*vlan = 0xffff;
	return 0;
}
