/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
#include "tool/fronts.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "base/config.h"
#include "base/spelling.h"
#include "tool/tool.h"

#define HD_VERBS_PRELOAD "preload/libheddle-verbs.so"

static bool verbose;

void hd_be_verbose(bool yes)
{
	verbose = yes;
}

int hd_put_env(const char *name, const char *value)
{
	if (setenv(name, value, 1))
		return -errno;
	if (verbose)
		hd_complain("%s=%s", name, value);
	return 0;
}

static bool path_has(const char *path, const char *folder)
{
	size_t len = strlen(folder);

	path += *path == '@';
	for (;;) {
		size_t part = strcspn(path, ":");

		if (part == len && !strncmp(path, folder, len))
			return true;
		if (!path[part])
			return false;
		path += part + 1;
	}
}

/*
 * fabric(7): FI_PROVIDER_PATH is a list of folders, perhaps with a '@' in front of all, that takes
 * the place of libfabric's own folder. What was there before must stay found.
 */
static int set_provider_path(const char *folder)
{
	const char *before = getenv("FI_PROVIDER_PATH");
	char *path;

	if (!before || !*before)
		before = HD_LIBFABRIC_PROVIDERS;
	if (strchr(folder, ':')) {
		hd_complain(
			"%s has a colon in its name: FI_PROVIDER_PATH cannot hold it; install Heddle somewhere else",
			folder);
		return -EINVAL;
	}
	if (path_has(before, folder))
		return hd_put_env("FI_PROVIDER_PATH", before);
	if (asprintf(&path, "%s:%s", before, folder) < 0)
		return -ENOMEM;
	int rc = hd_put_env("FI_PROVIDER_PATH", path);
	free(path);
	return rc;
}

/*
 * Debian's libfabric loads libinfinipath, which takes SIGSEGV and SIGBUS as it is loaded, to show a
 * backtrace and exit. To us that is a handler of the program's, who is asked of memory that is
 * protected: the program would end where an operation is to fail.
 */
static int leave_faults_alone(void)
{
	return getenv("IPATH_NO_BACKTRACE") ? 0 : hd_put_env("IPATH_NO_BACKTRACE", "1");
}

static int set_up_libfabric(const char *folder, const struct hd_front_choice *choice)
{
	int rc = set_provider_path(folder);

	rc = rc ? rc : leave_faults_alone();
	if (rc || choice->any_provider || getenv("FI_PROVIDER"))
		return rc;
	return hd_put_env("FI_PROVIDER", "heddle");
}

/*
 * A list of files or folders gets one more, in front or at its end; nothing
 * changes when it has it already.
 */
static int list_add(const char *name, const char *what, bool first)
{
	const char *before = getenv(name);
	char *list;

	if (strpbrk(what, ": ")) {
		hd_complain(
			"%s has a colon or a space in its name: %s cannot hold it; install Heddle somewhere else",
			what, name);
		return -EINVAL;
	}
	if (!before || !*before)
		return hd_put_env(name, what);
	if (path_has(before, what))
		return hd_put_env(name, before);
	if (asprintf(&list, "%s:%s", first ? what : before, first ? before : what) < 0)
		return -ENOMEM;
	int rc = hd_put_env(name, list);
	free(list);
	return rc;
}

/*
 * ld.so(8). What is preloaded already stays in front: it may have to be the first, as sanitizers
 * do. The folder of the drop-in must be before all in which there might be a real libibverbs.
 */
static int set_up_verbs(const char *folder, const struct hd_front_choice *choice)
{
	char path[2 * PATH_MAX + 128];

	snprintf(path, sizeof(path), "%s/%s", folder, HD_VERBS_PRELOAD);
	int rc = list_add("LD_PRELOAD", path, false);
	if (rc || !choice->drop_in)
		return rc;
	snprintf(path, sizeof(path), "%s/compat", folder);
	return list_add("LD_LIBRARY_PATH", path, true);
}

/*
 * libdat2 reads one file, of which each line names a library as dlopen(3) wants it. A file of the
 * program's own may call ours by other names.
 */
static int set_up_udapl(const char *folder, const struct hd_front_choice *choice)
{
	const char *own = getenv("DAT_OVERRIDE");
	char path[2 * PATH_MAX + 128];
	int rc = list_add("LD_LIBRARY_PATH", folder, false);

	if (rc || (own && *own))
		return rc ? rc : hd_put_env("DAT_OVERRIDE", own);

	snprintf(path, sizeof(path), "%s/dat.conf", folder);
	return hd_put_env("DAT_OVERRIDE", path);
}

static const struct hd_front fronts[] = {
	{ .name = "libfabric", .file = "libheddle-fi.so", .set_up = set_up_libfabric },
	{ .name = "verbs", .file = HD_VERBS_PRELOAD, .set_up = set_up_verbs, .optional = true },
	{ .name = "uDAPL",
	  .file = "libdaplheddle.so.2",
	  .adapter = "heddle",
	  .set_up = set_up_udapl,
	  .optional = true },
};

const struct hd_front *hd_front_at(size_t i)
{
	return i < sizeof(fronts) / sizeof(fronts[0]) ? &fronts[i] : NULL;
}

/* This program's path; where there is no /proc, by the name that it was started with. */
static bool own_path(char *path, size_t size)
{
	const char *started_as = (const char *)(uintptr_t)getauxval(AT_EXECFN);
	ssize_t len = readlink("/proc/self/exe", path, size);

	if (len > 0 && (size_t)len < size) {
		path[len] = '\0';
		return true;
	}
	return len < 0 && started_as && size >= PATH_MAX && realpath(started_as, path);
}

/* The folder that this program is in; false when nobody says. */
static bool own_folder(char *folder, size_t size)
{
	if (!own_path(folder, size))
		return false;
	char *slash = strrchr(folder, '/');
	if (!slash)
		return false;
	*slash = '\0';
	return true;
}

/*
 * Whether folder/file is there; resolves the folder, so that "bin/../lib"
 * is not what the user sees.
 */
static bool holds(char *folder, size_t size, const char *file)
{
	char path[PATH_MAX + NAME_MAX], real[PATH_MAX];

	snprintf(path, sizeof(path), "%s/%s", folder, file);
	if (access(path, R_OK) || !realpath(folder, real))
		return false;
	snprintf(folder, size, "%s", real);
	return true;
}

int hd_front_find(const struct hd_front *front, char *folder, size_t size)
{
	char own[PATH_MAX];
	bool have_own = own_folder(own, sizeof(own));

	if (have_own) {
		snprintf(folder, size, "%s", own);
		if (holds(folder, size, front->file))
			return 0;
		snprintf(folder, size, "%s/../lib/heddle", own);
		if (holds(folder, size, front->file))
			return 0;
	}
	snprintf(folder, size, "%s", HD_FRONT_FOLDER);
	if (holds(folder, size, front->file))
		return 0;
	if (have_own)
		snprintf(folder, size, "%s, %s/../lib/heddle, %s", own, own, HD_FRONT_FOLDER);
	return -ENOENT;
}

static void forget_unknown_settings(void)
{
	char **variable = environ;

	while (*variable) {
		char *name = hd_variable_unknown(*variable) ? strdup(*variable) : NULL;

		variable++;
		if (!name)
			continue;
		name[strcspn(name, "=")] = '\0';
		if (!unsetenv(name))
			variable = environ;
		free(name);
	}
}

/*
 * The libraries that this program loads read the settings anew: what has been complained
 * of once is none for them.
 */
static void forget_bad_settings(void)
{
	for (unsigned i = 0; hd_setting_at(i); i++) {
		char variable[64];

		if (hd_config_source(i))
			continue;
		snprintf(variable, sizeof(variable), "FI_%s", hd_setting_at(i)->env);
		unsetenv(variable);
		unsetenv(hd_setting_at(i)->env);
	}
}

bool hd_front_device(int i, char *name, char *what, size_t size)
{
	static int (*device)(int i, char *name, char *what, size_t size);
	char folder[2 * PATH_MAX + 64], path[2 * PATH_MAX + 128];
	const struct hd_front *front = &fronts[1];

	if (!device && !hd_front_find(front, folder, sizeof(folder))) {
		snprintf(path, sizeof(path), "%s/%s", folder, front->file);
		forget_bad_settings();
		forget_unknown_settings();
		/* stays: this program ends soon */
		void *library = dlopen(path, RTLD_LAZY | RTLD_LOCAL);

		device = library ? (int (*)(int, char *, char *, size_t))dlsym(library, "heddle_verbs_device")
				 : NULL;
	}
	return device && device(i, name, what, size) == 0;
}
