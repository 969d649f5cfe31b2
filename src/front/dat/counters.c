/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Counters of IAs, endpoints and event dispatchers: dat_ib_query_counters, dat_ib_print_counters
 * and the others of dat_ib_extensions.h.
 */
#include "front/dat/dat_front.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const char *const ia_names[] = {
#define HU_COUNTER_IA(name) [DCNT_IA_##name] = "DCNT_IA_" #name,
#define HU_COUNTER_EP(name)
#define HU_COUNTER_EVD(name)
#include "front/dat/counters.def"
#undef HU_COUNTER_IA
#undef HU_COUNTER_EP
};

static const char *const ep_names[] = {
#define HU_COUNTER_IA(name)
#define HU_COUNTER_EP(name) [DCNT_EP_##name] = "DCNT_EP_" #name,
#include "front/dat/counters.def"
#undef HU_COUNTER_EP
#undef HU_COUNTER_EVD
};

static const char *const evd_names[] = {
#define HU_COUNTER_EP(name)
#define HU_COUNTER_EVD(name) [DCNT_EVD_##name] = "DCNT_EVD_" #name,
#include "front/dat/counters.def"
#undef HU_COUNTER_IA
#undef HU_COUNTER_EP
#undef HU_COUNTER_EVD
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
static_assert(COUNT(ia_names) == DCNT_IA_ALL_COUNTERS, "each has a name");
static_assert(COUNT(ep_names) == DCNT_EP_ALL_COUNTERS, "each has a name");
static_assert(COUNT(evd_names) == DCNT_EVD_ALL_COUNTERS, "each has a name");

/* The counters of an object. */
struct set {
	struct hu_ia *ia;
	uint64_t *values; /* NULL: it has none */
	const char *const *names;
	int count;
};

static struct set set_of(DAT_HANDLE handle)
{
	struct hu_ia *ia = handle;
	struct hu_ep *ep = handle;
	struct hu_evd *evd = handle;

	if (hu_is(handle, DAT_HANDLE_TYPE_IA))
		return (struct set){ ia, ia->counts, ia_names, DCNT_IA_ALL_COUNTERS };
	if (hu_is(handle, DAT_HANDLE_TYPE_EP))
		return (struct set){ ep->o.ia, ep->counts, ep_names, DCNT_EP_ALL_COUNTERS };
	if (hu_is(handle, DAT_HANDLE_TYPE_EVD))
		return (struct set){ evd->o.ia, evd->counts, evd_names, DCNT_EVD_ALL_COUNTERS };
	return (struct set){ 0 };
}

/* Those from `first` on, so many, to *out. */
static DAT_RETURN counters_get(const struct set *set, int first, int count, uint64_t *out, bool reset)
{
	if (!hu_enter(set->ia))
		return HU_DEAD;
	memcpy(out, set->values + first, sizeof(*out) * (size_t)count);
	if (reset)
		memset(set->values + first, 0, sizeof(*out) * (size_t)count);
	hu_leave(set->ia);
	return DAT_SUCCESS;
}

/* One of them, or (by the number behind the last) all. */
DAT_RETURN hu_counters_query(DAT_HANDLE handle, int which, DAT_UINT64 *out, bool reset)
{
	const struct set set = set_of(handle);

	if (!set.values)
		return hu_error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE1);
	if (which < 0 || which > set.count)
		return hu_error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
	if (!out)
		return hu_error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG4);
	return which == set.count ? counters_get(&set, 0, set.count, out, reset)
				  : counters_get(&set, which, 1, out, reset);
}

/* To the program's standard output, as it has asked; of all of them those that are not 0. */
DAT_RETURN hu_counters_print(DAT_HANDLE handle, int which, bool reset)
{
	uint64_t values[DCNT_IA_ALL_COUNTERS];
	const struct set set = set_of(handle);
	DAT_RETURN rc = hu_counters_query(handle, which, values, reset);

	if (rc)
		return rc;
	if (which < set.count)
		printf("%s = %" PRIu64 "\n", set.names[which], values[0]);
	for (int i = 0; which == set.count && i < set.count; i++)
		if (values[i])
			printf("%s = %" PRIu64 "\n", set.names[i], values[i]);
	return DAT_SUCCESS;
}

/* Connections are counted always; there is no link and no hardware that would have counters. */
DAT_RETURN hu_counters_sample(DAT_HANDLE handle, int type)
{
	if (!hu_is(handle, DAT_HANDLE_TYPE_IA))
		return hu_error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA);
	switch (type) {
	case DCNT_IA_CM:
		return DAT_SUCCESS;
	case DCNT_IA_LNK:
	case DCNT_IA_DIAG:
		return hu_error(DAT_NOT_IMPLEMENTED, DAT_NO_SUBTYPE);
	default:
		return hu_error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
	}
}

void hu_count_made(struct hu_ia *ia, DAT_HANDLE_TYPE type, int by)
{
	static const int made[] = {
		[DAT_HANDLE_TYPE_PZ] = DCNT_IA_PZ_CREATE,   [DAT_HANDLE_TYPE_LMR] = DCNT_IA_LMR_CREATE,
		[DAT_HANDLE_TYPE_RMR] = DCNT_IA_RMR_CREATE, [DAT_HANDLE_TYPE_PSP] = DCNT_IA_PSP_CREATE,
		[DAT_HANDLE_TYPE_RSP] = DCNT_IA_RSP_CREATE, [DAT_HANDLE_TYPE_EVD] = DCNT_IA_EVD_CREATE,
		[DAT_HANDLE_TYPE_EP] = DCNT_IA_EP_CREATE,   [DAT_HANDLE_TYPE_SRQ] = DCNT_IA_SRQ_CREATE,
	};

	if ((size_t)type < COUNT(made) && (made[type] || type == DAT_HANDLE_TYPE_PZ))
		ia->counts[made[type]] += (uint64_t)by;
}

void hu_count_freed(struct hu_ia *ia, DAT_HANDLE_TYPE type)
{
	static const int freed[] = {
		[DAT_HANDLE_TYPE_PZ] = DCNT_IA_PZ_FREE,	  [DAT_HANDLE_TYPE_LMR] = DCNT_IA_LMR_FREE,
		[DAT_HANDLE_TYPE_RMR] = DCNT_IA_RMR_FREE, [DAT_HANDLE_TYPE_PSP] = DCNT_IA_PSP_FREE,
		[DAT_HANDLE_TYPE_RSP] = DCNT_IA_RSP_FREE, [DAT_HANDLE_TYPE_EVD] = DCNT_IA_EVD_FREE,
		[DAT_HANDLE_TYPE_EP] = DCNT_IA_EP_FREE,	  [DAT_HANDLE_TYPE_SRQ] = DCNT_IA_SRQ_FREE,
	};

	if ((size_t)type < COUNT(freed) && freed[type])
		ia->counts[freed[type]]++;
}
