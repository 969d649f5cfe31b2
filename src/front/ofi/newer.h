/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * libfabric's interface from 1.17 to the newest, whichever headers are there: names that older ones
 * have not yet, and that newer ones have no more or warn of; structures as they have grown.
 * fi_getinfo(3), fi_domain(3), fi_av(3), fi_cq(3), fi_mr(3), fi_msg(3).
 *
 * What a bit means is decided by the version that the program asked for. What a structure holds is
 * decided by the library, which makes it: hd_fi_core(), and nothing is read or written beyond that.
 */
#ifndef HEDDLE_FRONT_OFI_NEWER_H
#define HEDDLE_FRONT_OFI_NEWER_H

#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <stddef.h>
#include <stdint.h>

#define HD_FI_HEADERS_OLD (FI_MAJOR_VERSION == 1 && FI_MINOR_VERSION < 20)

#define HD_FI_OLDEST FI_VERSION(1, 17)
#define HD_FI_NEWEST FI_VERSION(2, 0xfff) /* a series keeps what its versions have meant */

/* ---- names ----------------------------------------------------------------------------------- */

/*
 * Gone since 2.0, or with a warning at each use; there is nothing else behind them in any version.
 */
#undef FI_VARIABLE_MSG
#undef FI_BUFFERED_RECV
#undef FI_PROV_SPECIFIC
#undef FI_LOCAL_MR
#undef FI_REG_MR
#undef FI_ORDER_NONE
#undef FI_ORDER_STRICT
#undef FI_ORDER_DATA
#undef FI_MR_UNSPEC
#undef FI_MR_BASIC
#undef FI_MR_SCALABLE
#define FI_VARIABLE_MSG (UINT64_C(1) << 48)  /* of capabilities, up to 1.x */
#define FI_BUFFERED_RECV (UINT64_C(1) << 51) /* of modes, up to 1.x */
#define FI_PROV_SPECIFIC (UINT32_C(1) << 31)
#define FI_LOCAL_MR (UINT64_C(1) << 55)
#define FI_REG_MR (UINT64_C(1) << 59)
#define FI_ORDER_NONE UINT64_C(0)
#define FI_ORDER_STRICT UINT64_C(0x1ff)
#define FI_ORDER_DATA (UINT64_C(1) << 16)
#define FI_MR_UNSPEC 0
#define FI_MR_BASIC 1
#define FI_MR_SCALABLE 2

/* Capabilities since 2.0. The bit of the last one was that of FI_VARIABLE_MSG. */
#undef FI_TAGGED_DIRECTED_RECV
#undef FI_TAGGED_MULTI_RECV
#undef FI_EXACT_DIRECTED_RECV
#define FI_TAGGED_DIRECTED_RECV (UINT64_C(1) << 45)
#define FI_TAGGED_MULTI_RECV (UINT64_C(1) << 46)
#define FI_EXACT_DIRECTED_RECV (UINT64_C(1) << 48)

#undef FI_RESCAN
#undef FI_FIREWALL_ADDR
#define FI_RESCAN (UINT64_C(1) << 35)	     /* flag of fi_getinfo */
#define FI_FIREWALL_ADDR (UINT64_C(1) << 42) /* flag of fi_av_insert */

/*
 * Options of endpoints, fi_endpoint(3): FI_OPT_CUDA_API_PERMITTED (1.19) and those
 * behind it, of 2.0 and 2.1.
 */
#define HD_FI_OPT_CUDA (FI_OPT_XPU_TRIGGER + 1)
#define HD_FI_OPT_SHARED_MEMORY (HD_FI_OPT_CUDA + 1)
/* FI_OPT_MAX_MSG_SIZE, and of tagged messages, RMA, atomic operations */
#define HD_FI_OPT_MAX (HD_FI_OPT_CUDA + 2)
#define HD_FI_OPT_INJECT (HD_FI_OPT_CUDA + 6) /* FI_OPT_INJECT_MSG_SIZE and likewise */

/* Enumerators, by numbers. */
#define HD_FI_PROGRESS_UNIFIED (FI_PROGRESS_MANUAL + 1)	  /* FI_PROGRESS_CONTROL_UNIFIED, 1.21 */
#define HD_FI_CNTR_EVENTS_BYTES (FI_CNTR_EVENTS_COMP + 1) /* FI_CNTR_EVENTS_BYTES, 1.22 */
#define HD_FI_SOCKADDR_IP (FI_ADDR_CXI + 2)		  /* FI_SOCKADDR_IP, 2.0 */

/* ---- structures ------------------------------------------------------------------------------ */

/*
 * The end of struct fi_domain_attr, from tclass on. Each member with the version that brought it.
 */
struct hd_fi_domain_tail {
	uint32_t tclass;	     /* 1.9 */
	size_t max_ep_auth_key;	     /* 1.20 */
	uint32_t max_group_id;	     /* 2.0 */
	uint64_t max_cntr_value;     /* 2.5 */
	uint64_t max_err_cntr_value; /* 2.5 */
};

#define HD_FI_DOMAIN_TAIL offsetof(struct fi_domain_attr, tclass)
_Static_assert(HD_FI_DOMAIN_TAIL % sizeof(uint64_t) == 0, "what follows stands where the library has it");

static inline struct hd_fi_domain_tail *hd_fi_domain_tail(struct fi_domain_attr *attr)
{
	return (struct hd_fi_domain_tail *)(void *)((char *)attr + HD_FI_DOMAIN_TAIL);
}

static inline const struct hd_fi_domain_tail *hd_fi_domain_tail_of(const struct fi_domain_attr *attr)
{
	return (const struct hd_fi_domain_tail *)(const void *)((const char *)attr + HD_FI_DOMAIN_TAIL);
}

/*
 * hd_fi_core: the version of the library that has loaded us; hd_fi_api: the newest
 * interface that we speak with it.
 */
static inline uint32_t hd_fi_core(void)
{
	return fi_version();
}

static inline uint32_t hd_fi_api(void)
{
	uint32_t core = hd_fi_core();

	return FI_VERSION_LT(core, HD_FI_NEWEST) ? core : HD_FI_NEWEST;
}

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

/*
 * struct fi_ops_av as it is since 1.20: a library of that age looks at its size before
 * it calls what came last.
 */
struct hd_fi_ops_av {
	struct fi_ops_av old;
	int (*insert_auth_key)(struct fid_av *av, const void *auth_key, size_t auth_key_size,
			       fi_addr_t *fi_addr, uint64_t flags);
	int (*lookup_auth_key)(struct fid_av *av, fi_addr_t addr, void *auth_key, size_t *auth_key_size);
	int (*set_user_id)(struct fid_av *av, fi_addr_t fi_addr, fi_addr_t user_id, uint64_t flags);
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
