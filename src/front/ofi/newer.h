/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* What libfabric's headers before 1.20 have no names for, as they have it since: fi_domain(3), fi_av(3), fi_cq(3), fi_mr(3), fi_msg(3). */
#ifndef HEDDLE_FRONT_OFI_NEWER_H
#define HEDDLE_FRONT_OFI_NEWER_H

#include <rdma/fi_domain.h>
#include <rdma/fi_eq.h>
#include <stdint.h>

#define HD_FI_HEADERS_OLD (FI_MAJOR_VERSION == 1 && FI_MINOR_VERSION < 20)

#if HD_FI_HEADERS_OLD

#define FI_AUTH_KEY (UINT64_C(1) << 57) /* an address is that of an authorization key */
#define FI_AV_AUTH_KEY SIZE_MAX		/* fi_domain_attr.auth_key_size: keys come from the AV */

/* fi_mr_attr.auth_key of such a domain points to one of these. */
struct fi_mr_auth_key {
	struct fid_av *av;
	fi_addr_t src_addr;
};

/* struct fi_cq_err_entry as programs have it whose interface is that of 1.20 or newer. */
struct hd_fi_cq_err_entry {
	struct fi_cq_err_entry old;
	fi_addr_t src_addr;
};

/* struct fi_ops_av as it is since 1.20: a library of that age looks at its size before it calls what came last. */
struct hd_fi_ops_av {
	struct fi_ops_av old;
	int (*insert_auth_key)(struct fid_av *av, const void *auth_key, size_t auth_key_size,
			       fi_addr_t *fi_addr, uint64_t flags);
	int (*lookup_auth_key)(struct fid_av *av, fi_addr_t addr, void *auth_key, size_t *auth_key_size);
};

static inline void hd_fi_err_source(struct fi_cq_err_entry *e, fi_addr_t src)
{
	((struct hd_fi_cq_err_entry *)e)->src_addr = src;
}

#else

static inline void hd_fi_err_source(struct fi_cq_err_entry *e, fi_addr_t src)
{
	e->src_addr = src;
}

struct hd_fi_ops_av {
	struct fi_ops_av old;
};

#endif
#endif
