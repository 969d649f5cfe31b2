/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* Endpoints with the authorization keys of their AV: FI_AV_AUTH_KEY, for the cases of M20. */
#ifndef CT_KEYED_H
#define CT_KEYED_H

#include "ct.h"

/*
 * As headers have them from 1.20 on; calls that are newer than the table of
 * a provider are not made.
 */
#ifndef FI_AUTH_KEY
#define FI_AUTH_KEY (1ULL << 57)
#endif
#define KD_FROM_AV SIZE_MAX

/*
 * struct fi_ops_av as it is since 1.20, whatever headers this is built with: what they had
 * before ends with av_set.
 */
struct kd_av_ops {
	char old[offsetof(struct fi_ops_av, av_set) + sizeof(void (*)(void))];
	int (*insert_key)(struct fid_av *av, const void *key, size_t size, fi_addr_t *addr, uint64_t flags);
	int (*lookup_key)(struct fid_av *av, fi_addr_t addr, void *key, size_t *size);
	int (*set_user_id)(struct fid_av *av, fi_addr_t addr, fi_addr_t user_id, uint64_t flags);
};

#define KD_FIRST "the job"
#define KD_SECOND "another job"
#define KD_KEYS 2
extern const char *const kd_keys[KD_KEYS + 1]; /* those two, and one more */

#define KD_DIRECTED (FI_MSG | FI_TAGGED | FI_SOURCE | FI_DIRECTED_RECV)

struct keyed {
	struct ct_dom dom;
	struct ct_ep e;
	fi_addr_t key[KD_KEYS];		 /* of our AV */
	fi_addr_t to[CT_PROCS][KD_KEYS]; /* each rank with each key */
};

/*
 * kd_ops: the calls of an AV; unsupported where the table is too old. kd_insert_key, kd_insert:
 * fi_av_insert_auth_key, and an address with a key.
 */
struct kd_av_ops *kd_ops(struct ct *ct, struct fid_av *av);
fi_addr_t kd_insert_key(struct ct *ct, struct fid_av *av, const char *key);
fi_addr_t kd_insert(struct ct *ct, struct fid_av *av, const void *name, fi_addr_t key);

/*
 * kd_open: domain, AV with the keys from `first` on, and an endpoint, not enabled yet. kd_meet
 * enables it, exchanges names and inserts each with each key. kd_close closes all but the endpoint.
 */
void kd_open(struct ct *ct, struct keyed *s, const struct ct_want *want, int first);
void kd_meet(struct ct *ct, struct keyed *s, int first);
void kd_close(struct ct *ct, struct keyed *s);

/* kd_say: a tagged message that is its own tag; it has left when this returns. */
void kd_say(struct ct_ep *e, fi_addr_t to, uint64_t tag);

/*
 * kd_trecv, kd_recv: a receive with FI_AUTH_KEY, whose context is the buffer. kd_got waits for it:
 * a tagged message that is its own tag.
 */
ssize_t kd_trecv(struct ct_ep *e, void *buf, size_t len, fi_addr_t src, uint64_t tag, uint64_t ignore,
		 uint64_t flags);
ssize_t kd_recv(struct ct_ep *e, void *buf, size_t len, fi_addr_t src, uint64_t flags);
void kd_got(struct ct *ct, struct ct_ep *e, void *buf, uint64_t tag, fi_addr_t src);

#endif
