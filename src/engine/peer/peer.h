/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* Other nodes between the engine's files: destinations, peers and their credit, greetings, authorization keys. */
#ifndef HD_ENGINE_PEER_H
#define HD_ENGINE_PEER_H

#include "engine/internal.h"

/* dest.c */
void hd_dest_bind(struct hd_dest *dest, struct hd_peer *peer, uint32_t remote, uint16_t gen);
void hd_dest_unbind(struct hd_dest *dest);
void hd_dest_fail(struct hd_dest *dest, int err);
int hd_dest_connect(struct hd_dest *dest);
void hd_dest_again(struct hd_dest *dest, int err);
uint32_t hd_dest_source_id(const struct hd_dest *dest);
struct hd_dest *hd_dest_by_id(struct hd_node *node, uint32_t id);
void hd_dest_unref(struct hd_dest *dest);
void hd_dest_stand_in(struct hd_dest *dest, struct hd_node *node);
struct hd_dest *hd_dest_at(struct hd_peer *peer, uint32_t remote, uint16_t gen);
void hd_dest_gone(struct hd_peer *peer, uint32_t index, uint16_t gen);
/* hd_dest_same: two destinations may be names of one endpoint. */
static inline bool hd_dest_same(const struct hd_dest *a, const struct hd_dest *b)
{
	return a == b || (a->state == HD_DEST_BOUND && b->state == HD_DEST_BOUND && a->peer == b->peer &&
			  a->remote == b->remote);
}
int hd_dest_announced(struct hd_peer *peer, const struct hd_announce *list, size_t count);
void hd_dests_close(struct hd_node *node);

/*
 * key.c. hd_ep_face: the face of this endpoint that has the key (0: none), or NULL. hd_faces_open: the further faces that `attr` asks for.
 * hd_faces_close: they close. hd_key_group: what stands for all sources with this key in receive queues, 0 when it is not in use here.
 * hd_remote_key: the key of the peer's endpoint `index`, 0: none, or it is not known.
 */
struct hd_ep *hd_ep_face(struct hd_ep *ep, uint64_t key);
int hd_faces_open(struct hd_ep *ep, const struct hd_ep_attr *attr);
void hd_faces_close(struct hd_ep *ep);
uint32_t hd_key_group(const struct hd_node *node, uint64_t key);
uint32_t hd_key_source_group(void *node, uint32_t src);
uint32_t hd_key_message_group(const struct hd_wnode *w);
void hd_keys_close(struct hd_node *node);
static inline uint64_t hd_remote_key(const struct hd_peer *peer, uint32_t index)
{
	return index < peer->remote_count ? peer->remote_keys[index] : 0;
}

/* peer.c */
struct hd_peer *hd_peer_make(struct hd_node *node, const struct hd_node_id *id);
struct hd_peer *hd_peer_find(struct hd_node *node, const struct hd_node_id *id);
void hd_peer_drop(struct hd_peer *peer, int err);
struct hd_peer *hd_peer_self(struct hd_node *node);
uint32_t hd_peer_first_window(const struct hd_node *node);
int hd_peer_remote(struct hd_peer *peer, uint32_t index);
void hd_peer_establish(struct hd_peer *peer, struct hd_link *link);
void hd_peer_fail(struct hd_peer *peer, int err);
void hd_peer_queue_fail(struct hd_peer *peer, const struct hd_dest *dest, int err);
void hd_peer_send(struct hd_peer *peer, const struct hd_pkt *pkt, const void *data, size_t len);
void hd_peer_answer(struct hd_peer *peer, const struct hd_pkt *pkt, const void *data, size_t len,
		    uint32_t units);
void hd_peer_busy(struct hd_peer *peer);
int hd_peer_progress(struct hd_peer *peer);
void hd_peer_gate(struct hd_peer *peer);
static inline bool hd_peer_can(const struct hd_peer *peer, uint32_t units)
{
	return peer->rx_granted - peer->rx_spent >= units;
}

/*
 * hd_peer_charge: the peer spends `units` on a message to us. False: more than it was granted. rx_granted is what we have published,
 * so the sum of all windows is what the memory for waiting messages can grow to.
 */
static inline bool hd_peer_charge(struct hd_peer *peer, uint32_t units)
{
	if (hd_unlikely(!hd_peer_can(peer, units)))
		return false;
	peer->rx_spent += units;
	return true;
}
void hd_peer_regrant(struct hd_peer *peer);
void hd_peer_grow(struct hd_peer *peer);
void hd_peer_announce(struct hd_peer *peer, const struct hd_ep *only);
void hd_ep_describe(const struct hd_ep *ep, struct hd_announce *out);
static inline void hd_peer_free_units(struct hd_peer *peer, uint32_t units)
{
	peer->rx_freed += units;
	if (hd_unlikely((uint32_t)(peer->rx_freed + peer->window - peer->rx_granted) >= peer->grant_step))
		hd_peer_regrant(peer);
}

/*
 * advert.c. hd_adverts_write: the adverts of our own HELLO, of HD_HELLO_ADVERT bytes at most; returns their length. hd_advert_find: the
 * first of our transports that this HELLO advertises and that may carry data, with its advert, which lies in the HELLO; NULL: none.
 *
 * hd_process_watch: the peer whose HELLO this is is on this host, perhaps: have its links orphaned when its process is dead. Nothing
 * happens where that cannot be known, or is watched for already. hd_process_forget: no longer.
 */
struct hd_advert {
	const uint8_t *at;
	size_t len;
};
uint16_t hd_adverts_write(struct hd_node *node, uint8_t *out);
struct hd_port *hd_advert_find(struct hd_node *node, const struct hd_hello *h, struct hd_advert *out);
void hd_process_watch(struct hd_peer *peer, const struct hd_hello *h);
void hd_process_forget(struct hd_peer *peer);

/* hello.c */
void hd_hello_initiate(struct hd_link *link, struct hd_dest *dest);
void hd_hello_detach(struct hd_link *link);
void hd_hello_choose(struct hd_peer *peer, struct hd_link *link);
void hd_hello_finish(struct hd_peer *peer, struct hd_link *link);
void hd_hello_end(struct hd_peer *peer);
int hd_hello_deliver(struct hd_link *link, const struct hd_pkt *pkt, const void *payload, size_t len);
void hd_hello_fallen(struct hd_link *link);

#endif
