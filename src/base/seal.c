/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* The key file of a node, and the module that seals with it: seal.h. */
#include "base/seal.h"
#include "base/advice.h"
#include "base/copy.h"

#include "base/config.h"
#include "base/key_file.h"
#include "base/log.h"

#include <assert.h>
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define MODULE "libheddle-tls.so"

static_assert(HD_SEAL_KEY == HD_KEY_SIZE, "the key of the file is that of the seal");

/*
 * The module stands beside the library that this code is in, or one folder above it, as preload/
 * and compat/ are below it.
 */
static void *module_load(void)
{
	static const char *const places[] = { "", "../" };
	char path[PATH_MAX];
	const char *end, *why = MODULE " is not beside Heddle's other libraries";
	Dl_info self;
	void *lib = NULL;

	if (!dladdr((void *)(uintptr_t)hd_sealer_open, &self) || !self.dli_fname)
		return NULL;
	end = strrchr(self.dli_fname, '/');
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]) && !lib; i++) {
		snprintf(path, sizeof(path), "%.*s%s" MODULE, end ? (int)(end - self.dli_fname + 1) : 0,
			 self.dli_fname, places[i]);
		if (!strchr(path, '/') || access(path, F_OK))
			continue;
		lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);
		if (!lib)
			why = dlerror();
	}
	if (!lib)
		hd_error(
			"HEDDLE_KEY_FILE is set, but what seals connections cannot be loaded: %s: install Heddle whole, and OpenSSL 3 (libssl3)",
			why);
	return lib;
}

static const struct hd_seal_module *module_find(void)
{
	static _Atomic(const struct hd_seal_module *)
		found; /* relaxed: constant, and the same whoever loads it */
	const struct hd_seal_module *module = atomic_load_explicit(&found, memory_order_relaxed);
	void *lib;

	if (module)
		return module;
	lib = module_load();
	module = lib ? dlsym(lib, HD_SEAL_SYMBOL) : NULL;
	if (lib && (!module || module->version != HD_SEAL_VERSION)) {
		hd_error(MODULE " is of another version of Heddle: install Heddle whole");
		return NULL;
	}
	atomic_store_explicit(&found, module, memory_order_relaxed);
	return module;
}

int hd_sealer_open(const uint8_t id[HD_SEAL_ID], const struct hd_seal_module **module,
		   struct hd_sealer **sealer)
{
	const char *path = hd_config_str(HD_SET_KEY_FILE), *why;
	struct hd_sealer_attr attr = { .copy = hd_copy };
	int rc;

	*module = NULL;
	if (!*path)
		return 0;
	rc = hd_key_file_read(path, attr.key, &why);
	if (rc < 0) {
		hd_error("the key file %s cannot be used: %s%s", path, *why ? why : strerror(-rc),
			 *why ? "" : hd_advice(-rc));
		return rc;
	}
	memcpy(attr.id, id, HD_SEAL_ID);
	*module = module_find();
	rc = *module ? (*module)->open(&attr, sealer) : -ENOENT;
	explicit_bzero(&attr, sizeof(attr));
	if (rc < 0)
		*module = NULL;
	return rc;
}
