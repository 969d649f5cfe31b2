/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Of the drop-in alone: the functions that libraries of vendors (libmlx5 and others) take from the
 * libibverbs that they are loaded with. They serve real devices, so each jumps to the real
 * library's, once that has been loaded, with whatever arguments it was given. Before that there is
 * no device that they could be meant for, and they answer EOPNOTSUPP.
 */
#include "front/verbs/jump.h"
#include "front/verbs/real.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>

/* Data of the real library, which its providers set. */
extern bool verbs_allow_disassociate_destroy;
__attribute__((visibility("default"))) bool verbs_allow_disassociate_destroy;

#define HV_PRIVATE_NAMED(name) HV_PRIVATE(name)
#define HV_REGISTER_OF(abi) verbs_register_driver_##abi
#define HV_REGISTER(abi) HV_REGISTER_OF(abi)
#define HV_PRIVATE_REGISTER HV_REGISTER(HV_PRIVATE_ABI)

static int missing(void)
{
	return EOPNOTSUPP;
}

#define HV_PRIVATE(name) \
	extern void *hv_slot_##name; \
	void *hv_slot_##name = (void *)missing;
#include "front/verbs/private.def"
#undef HV_PRIVATE

#if HV_JUMPS

#define HV_PRIVATE(name) HV_JUMP(#name, "hv_slot_" #name)
#include "front/verbs/private.def"
#undef HV_PRIVATE

#else /* nobody jumps: real devices need the preload here */

#define HV_PRIVATE(name) \
	int name(void); \
	__attribute__((visibility("default"))) int name(void) \
	{ \
		return missing(); \
	}
#include "front/verbs/private.def"
#undef HV_PRIVATE

#endif

void hv_private_bind(void *library)
{
	static const struct {
		const char *name;
		void **slot;
	} slots[] = {
#define HV_PRIVATE(name) { #name, &hv_slot_##name },
#include "front/verbs/private.def"
#undef HV_PRIVATE
	};

	for (size_t i = 0; i < sizeof(slots) / sizeof(slots[0]); i++) {
		void *found = dlsym(library, slots[i].name);

		if (found)
			*slots[i].slot = found;
	}
}
