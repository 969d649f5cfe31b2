/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * What the linker finds of librdmacm: functions that go to ours, or, in a drop-in that defers to a
 * preload, to the preload's.
 */
#include "front/verbs/jump.h"
#include "front/verbs/real.h"

#include <dlfcn.h>
#include <stddef.h>

#define HV_CM(name) extern char hv_##name[]; /* a function, whose type does not matter here */
#include "front/verbs/cm/names.def"
#undef HV_CM

#if HV_JUMPS

#define HV_CM(name) \
	extern void *hv_slot_##name; \
	void *hv_slot_##name = hv_##name; \
	HV_JUMP(#name, "hv_slot_" #name)
#include "front/verbs/cm/names.def"
#undef HV_CM

void hv_cm_defer(void *library)
{
	static const struct {
		const char *name;
		void **slot;
	} slots[] = {
#define HV_CM(name) { #name, &hv_slot_##name },
#include "front/verbs/cm/names.def"
#undef HV_CM
	};

	for (size_t i = 0; i < sizeof(slots) / sizeof(slots[0]); i++) {
		void *found = dlsym(library, slots[i].name);

		if (found)
			*slots[i].slot = found;
	}
}

#else /* nobody jumps: always ours */

#define HV_CM(name) \
	static void (*resolve_##name(void))(void) \
	{ \
		return (void (*)(void))hv_##name; \
	} \
	void name(void) __attribute__((ifunc("resolve_" #name), visibility("default")));
#include "front/verbs/cm/names.def"
#undef HV_CM

void hv_cm_defer(void *library)
{
}

#endif
