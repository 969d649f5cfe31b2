/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * The real libraries. Nobody looks for them before a program calls something that is
 * not for a device of ours.
 */
#include "front/verbs/real.h"

#include "base/config.h"
#include "base/log.h"
#include "front/verbs/entry.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

/* Every copy of Heddle exports this, so that one is not taken for the real library by another. */
HV_PUBLIC extern const char heddle_verbs_marker[];
const char heddle_verbs_marker[] = "heddle";

static const char *const names[HV_REAL_CALLS] = {
#define HV_CALL(ret, name, params, args, ours, fail, tell) [HV_REAL_##name] = #name,
#include "front/verbs/calls.h"
#undef HV_CALL
	[HV_REAL_ibv_get_device_list] = "ibv_get_device_list",
	[HV_REAL_ibv_free_device_list] = "ibv_free_device_list",
	[HV_REAL_ibv_ack_async_event] = "ibv_ack_async_event",
	[HV_REAL_ibv_import_device] = "ibv_import_device",
	[HV_REAL_ibv_fork_init] = "ibv_fork_init",
	[HV_REAL_ibv_is_fork_initialized] = "ibv_is_fork_initialized",
	[HV_REAL_ibv_dontfork_range] = "ibv_dontfork_range",
	[HV_REAL_ibv_dofork_range] = "ibv_dofork_range",
	[HV_REAL_ibv_register_driver] = "ibv_register_driver",
};

void *hv_elsewhere;

static void *calls[HV_REAL_CALLS];

static bool real_is_ours(const void *function)
{
	void *handle, *marker;
	Dl_info info;

	if (!dladdr(function, &info))
		return true; /* of no library: nothing to be called */
	handle = dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
	if (!handle) /* the program itself: it may have such a function linked in */
		return false;
	marker = dlsym(handle, "heddle_verbs_marker");
	dlclose(handle);
	return marker != NULL;
}

HD_THREAD_LOCAL bool hv_real_asked;

/* The library that this address is in, if it is one of the real ones; NULL. */
static const char *real_holding(const void *address, Dl_info *info)
{
	const char *name;

	if (!dladdr(address, info) || real_is_ours(address))
		return NULL;
	name = strrchr(info->dli_fname, '/');
	name = name ? name + 1 : info->dli_fname;
	return strncmp(name, "libibverbs.so", 13) && strncmp(name, "librdmacm.so", 12) ? NULL
										       : info->dli_fname;
}

void hv_real_notice(const void *caller)
{
	static atomic_bool said;
	const char *library;
	int before = errno;
	Dl_info info;

	if (hv_real_asked || atomic_load_explicit(&said, memory_order_relaxed))
		return;
	library = real_holding(caller, &info);
	if (library && !atomic_exchange(&said, true)) {
		hd_config_choice(HD_SET_LOG); /* the level, of which nobody may have asked yet */
		hd_warn("the program has loaded %s itself, which does not know heddle0 and heddle1: "
			"try heddle run --drop-in",
			library);
	}
	errno = before;
}

static void *load(const char *library)
{
	char path[256];
	void *handle;

	snprintf(path, sizeof(path), "%s/%s", HV_REAL_FOLDER, library);
	handle = dlopen(path, RTLD_LAZY | RTLD_LOCAL);
	if (handle && hv_private_bind && !strcmp(library, "libibverbs.so.1"))
		hv_private_bind(handle);
	return handle;
}

void *hv_real_find(const char *library, const char *name)
{
	void *found, *handle;

	if (hv_elsewhere)
		return dlsym(hv_elsewhere, name);
	found = dlsym(RTLD_NEXT, name);
	if (found && !real_is_ours(found))
		return found;
	handle = load(library); /* stays loaded: what it hands out points into it */
	found = handle ? dlsym(handle, name) : NULL;
	return found && !real_is_ours(found) ? found : NULL;
}

static void find_all(void)
{
	for (int i = 0; i < HV_REAL_CALLS; i++)
		calls[i] = hv_real_find("libibverbs.so.1", names[i]);
}

void *hv_real(enum hv_real_call call)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, find_all);
	return calls[call];
}
