/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Authorization keys: fi_endpoint(3), fi_domain(3), fi_av(3). A key is bytes of the program's, 1 to
 * HD_FI_AUTH_MAX of them, of which the engine is told a digest. An endpoint has one key, its own or
 * its domain's; or, in a domain with FI_AV_AUTH_KEY, all that are in its AV when it is enabled.
 *
 * An address of an AV means an endpoint with a certain key. In a domain with FI_AV_AUTH_KEY, which
 * one is said when the address is inserted; in others it is the domain's. An endpoint with a key of
 * its own sees its AV through a view: the same addresses, with that key (av_view.c).
 */
#ifndef HEDDLE_FRONT_OFI_AUTH_H
#define HEDDLE_FRONT_OFI_AUTH_H

#include "front/ofi/ep.h"
#include "front/ofi/newer.h"
#include "front/ofi/offer.h"

#define HD_FI_AUTH_MAX 256 /* bytes of a key */
#define HD_FI_AUTH_KEYS 64 /* of one AV */

/*
 * hd_fi_auth_check: can an info ask for these keys? 0 or -FI_ENODATA. hd_fi_auth_copy copies the
 * keys of hints into an info: 0 or -FI_ENOMEM. Any thread.
 */
int hd_fi_auth_check(const struct hd_fi_offer *offer, uint32_t version, const struct fi_info *hints);
int hd_fi_auth_copy(uint32_t version, const struct fi_info *hints, struct fi_info *info);

/*
 * hd_fi_auth_domain, hd_fi_auth_ep: take over what the info says, which has been checked.
 * -FI_EINVAL: not in this domain.
 */
void hd_fi_auth_domain(struct hd_fi_domain *domain, const struct fi_info *info);
int hd_fi_auth_ep(const struct hd_fi_domain *domain, const struct fi_info *info, uint64_t *key);

/* ---- AVs ------------------------------------------------------------------------------------- */

/*
 * Calls of struct fi_ops_av: fi_av_insert_auth_key, fi_av_lookup_auth_key; and fi_av_remove of one
 * address with FI_AUTH_KEY, with the node's lock held.
 */
int hd_fi_auth_insert(struct fid_av *av, const void *key, size_t size, fi_addr_t *addr, uint64_t flags);
int hd_fi_auth_lookup(struct fid_av *av, fi_addr_t addr, void *key, size_t *size);
int hd_fi_auth_remove(struct hd_fi_av *av, fi_addr_t addr);

/*
 * hd_fi_auth_at: the key at an address of fi_av_insert_auth_key, or NULL. hd_fi_auth_addr: that
 * address, never 0. hd_fi_auth_use: one more (or, by -1, less) address that was inserted with it.
 * hd_fi_auth_hold: the same for endpoints that have it; -FI_EINVAL: another process has removed it;
 * errors of the table. Caller holds the node's lock. hd_fi_auth_free: with the AV.
 * hd_fi_auth_share: the AV is shared. hd_fi_auth_follow brings its keys up to date. -FI_ENOMEM.
 */
struct hd_fi_key *hd_fi_auth_at(struct hd_fi_av *av, fi_addr_t addr);
fi_addr_t hd_fi_auth_addr(const struct hd_fi_key *key);
void hd_fi_auth_use(struct hd_fi_key *key, int by);
int hd_fi_auth_hold(struct hd_fi_key *key, bool on);
uint64_t hd_fi_auth_digest(const struct hd_fi_key *key);
uint32_t hd_fi_auth_slot(const struct hd_fi_key *key);
void hd_fi_auth_free(struct hd_fi_av *av);
int hd_fi_auth_share(struct hd_fi_av *av);
int hd_fi_auth_follow(struct hd_fi_av *av);

/* ---- endpoints ------------------------------------------------------------------------------- */

/*
 * hd_fi_auth_enable gives an endpoint that is being enabled its keys, and the AV (NULL: it is
 * connected) that goes with them. Caller holds the node's lock. 0, -FI_ENOMEM, or -FI_EINVAL: there
 * is no key in the AV. hd_fi_auth_attr: what is opened beside it has the same ones.
 * hd_fi_auth_disable gives them back.
 */
int hd_fi_auth_enable(const struct hd_fi_domain *domain, struct hd_fi_auth *auth, struct hd_fi_av **av,
		      struct hd_ep_attr *attr);
void hd_fi_auth_attr(const struct hd_fi_auth *auth, struct hd_ep_attr *attr);
void hd_fi_auth_disable(struct hd_fi_auth *auth);

/*
 * hd_fi_auth_readers: completions of all that an endpoint is in the engine are read like this, and
 * strangers' keys told (auth; NULL: not). 0 or -FI_ENOMEM. Caller holds the node's lock.
 */
int hd_fi_auth_readers(struct hd_fi_domain *domain, struct hd_ep *made, const struct hd_fi_auth *auth,
		       struct hd_fi_reader reader);

/*
 * hd_fi_auth_region: who reaches a region, into attr; keys has room for HD_FI_AUTH_KEYS. 0 or
 * -FI_EINVAL. Caller holds the node's lock.
 */
int hd_fi_auth_region(const struct hd_fi_domain *domain, const struct fi_mr_attr *mr, uint64_t flags,
		      uint64_t *keys, struct hd_mr_attr *attr);

#endif
