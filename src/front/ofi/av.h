/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * An address vector: an fi_addr_t is an index into `dest`, for both types of AV, so that a send
 * costs one load and one comparison. The way back, from the sender of a message to its
 * fi_addr_t, is an array too.
 *
 *	fi_addr_t ──► dest[i]  ──► struct hd_dest ── hd_dest_id() ──► by_id[id] = i
 *	              entry[i] : the address as inserted; next index with the same destination
 *
 * An address that was inserted twice has two indices and one destination; by_id then
 * names the older of them.
 *
 * Two kinds of addresses are not found so directly: those that name a receive context,
 * fi_rx_addr(3), whose destinations are made when they are first used; and all of an AV that has a
 * name (av_shared.h), whose arrays follow the table that processes share, and are brought up to
 * date first. Both are beyond `direct`, and so in far.c. The way back is a longer one, beyond
 * `direct_ids`, for shared AVs and those whose program has names of its own for senders
 * (av_user.c).
 */
#ifndef HEDDLE_FRONT_OFI_AV_H
#define HEDDLE_FRONT_OFI_AV_H

#include "front/ofi/ofi.h"

#define HD_FI_NO_INDEX UINT32_MAX

struct hd_fi_key;    /* auth_av.h */
struct hd_fi_av_set; /* coll/av_set.h */

struct hd_fi_av_entry {
	union hd_fi_addr addr;
	uint32_t id;   /* hd_dest_id */
	uint32_t next; /* another index with the same destination, or HD_FI_NO_INDEX */
	uint32_t gen;  /* shared AV: of the table's entry that this follows */
	/* destinations of receive contexts, by number; NULL until one is used */
	struct hd_dest **contexts;
	struct hd_fi_key *key; /* FI_AV_AUTH_KEY: inserted with it; else NULL */
	fi_addr_t user_id;     /* where user_ids is set: what completions call it */
};

struct hd_fi_av {
	struct fid_av fid;
	/* under the node's lock */
	struct hd_dest **dest; /* NULL where nothing is inserted */
	size_t direct;	       /* addresses below it are indices, and up to date */
	size_t direct_ids;     /* the same for by_id */
	size_t size;	       /* slots of dest and entry */
	struct hd_fi_av_entry *entry;
	uint32_t *by_id;
	size_t by_id_size;
	size_t lowest; /* no slot below it is free */
	struct hd_fi_domain *domain;
	struct hd_fi_eq *eq;
	bool async; /* FI_EVENT: insertions end with events */
	/*
	 * FI_AV_USER_ID: completions name senders by entry[].user_id; the way back is a longer one
	 */
	bool user_ids;
	bool users_unnamed; /* opened with it: nobody has an identifier until fi_av_set_user_id */
	uint32_t magic;
	enum fi_av_type type;
	int context_bits;	   /* of an address, at its upper end; 0: none */
	struct hd_fi_table *table; /* shared AV, or NULL */
	uint64_t version;	   /* of the table, when the arrays followed it last */
	_Atomic int users;	   /* endpoints, sets of its addresses */
	struct hd_fi_object object;
	/*
	 * authorization key of whom its addresses mean, but for those with
	 * one of their own; 0: none
	 */
	uint64_t key;
	struct hd_fi_key **keys; /* FI_AV_AUTH_KEY: those inserted, by slot (auth_av.c) */
	uint32_t key_count;	 /* slots */
	struct hd_fi_av *of;	 /* a view: of whom (av_view.c) */
	LIST_HEAD(, hd_fi_av) views;
	LIST_ENTRY(hd_fi_av) view;
	LIST_HEAD(, hd_fi_av_set) sets; /* fi_av_set(3), under the node's lock */
};

/*
 * The longer ways (far.c). hd_fi_av_follow brings a shared AV up to date; others
 * are. hd_fi_av_index: the index that an address means, or HD_FI_NO_INDEX;
 * brings a shared AV up to date.
 * hd_fi_av_forget: what is at this index goes: its references are given back. hd_fi_av_far_knows:
 * is a sender in the AV, whatever he is called?
 */
void hd_fi_av_follow(struct hd_fi_av *av);
struct hd_dest *hd_fi_av_far(struct hd_fi_av *av, fi_addr_t addr);
struct hd_dest *hd_fi_av_far_sender(struct hd_fi_av *av, fi_addr_t addr);
fi_addr_t hd_fi_av_far_source(struct hd_fi_av *av, uint32_t id);
bool hd_fi_av_far_knows(struct hd_fi_av *av, uint32_t id);
uint32_t hd_fi_av_index(struct hd_fi_av *av, fi_addr_t addr);
void hd_fi_av_forget(struct hd_fi_av *av, uint32_t index);

/*
 * av_user.c: hd_fi_av_call: from now on completions call what is at this index so, and others by
 * their user_id too. hd_fi_av_set_user_id is fi_av_set_user_id(3).
 */
void hd_fi_av_call(struct hd_fi_av *av, size_t index, fi_addr_t user_id);
int hd_fi_av_set_user_id(struct fid_av *fid, fi_addr_t addr, fi_addr_t user_id, uint64_t flags);

/*
 * av_view.c: hd_fi_av_view: the AV, or the view of it, whose addresses mean endpoints with this
 * key; made when it is first asked for. 0 or -FI_ENOMEM. What is inserted at an index, and removed,
 * has to be told to the views; they are closed with their AV.
 */
int hd_fi_av_view(struct hd_fi_av *av, uint64_t key, struct hd_fi_av **out);
int hd_fi_av_views_add(struct hd_fi_av *av, uint32_t index);
void hd_fi_av_views_forget(struct hd_fi_av *av, uint32_t index);
void hd_fi_av_views_close(struct hd_fi_av *av);

/* hd_fi_av_whole: the AV that the program knows. */
static inline struct hd_fi_av *hd_fi_av_whole(struct hd_fi_av *av)
{
	return av->of ? av->of : av;
}

/* hd_fi_av_dest: the destination at an fi_addr_t, or NULL. Caller holds the node's lock. */
HD_FI_INLINE struct hd_dest *hd_fi_av_dest(struct hd_fi_av *av, fi_addr_t addr)
{
	return addr < av->direct ? av->dest[addr] : hd_fi_av_far(av, addr);
}

/* hd_fi_av_near: the same, NULL also where it takes the longer way to find. */
HD_FI_INLINE struct hd_dest *hd_fi_av_near(const struct hd_fi_av *av, fi_addr_t addr)
{
	return addr < av->direct ? av->dest[addr] : NULL;
}

/* hd_fi_av_sender: the same where a sender is meant: contexts have no senders of their own. */
HD_FI_INLINE struct hd_dest *hd_fi_av_sender(struct hd_fi_av *av, fi_addr_t addr)
{
	return addr < av->direct ? av->dest[addr] : hd_fi_av_far_sender(av, addr);
}

/*
 * hd_fi_av_source: the fi_addr_t of a sender, or what the program calls him, or FI_ADDR_NOTAVAIL
 * when he was not inserted. Caller holds the node's lock.
 */
HD_FI_INLINE fi_addr_t hd_fi_av_source(struct hd_fi_av *av, uint32_t id)
{
	uint32_t index = id < av->direct_ids ? av->by_id[id] : HD_FI_NO_INDEX;

	return index == HD_FI_NO_INDEX ? hd_fi_av_far_source(av, id) : index;
}

/*
 * The table alone, which knows no engine. hd_fi_av_put stores a destination and its id at the
 * lowest free index, and returns that or -FI_ENOMEM; the reference stays the caller's business;
 * hd_fi_av_put_at does it at an index that is free. hd_fi_av_take removes and returns what is at
 * the index, or NULL. hd_fi_av_reserve makes room for `size` entries. Caller holds the node's lock.
 */
int hd_fi_av_reserve(struct hd_fi_av *av, size_t size);
int64_t hd_fi_av_put(struct hd_fi_av *av, struct hd_dest *dest, uint32_t id, const union hd_fi_addr *addr);
int hd_fi_av_put_at(struct hd_fi_av *av, size_t index, struct hd_dest *dest, uint32_t id,
		    const union hd_fi_addr *addr);
struct hd_dest *hd_fi_av_take(struct hd_fi_av *av, size_t index);
void hd_fi_av_free(struct hd_fi_av *av);

#endif
