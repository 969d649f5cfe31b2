/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Lists devices and opens each as programs do that are linked with neither library: by handles and
 * versions. Where something has been preloaded as well, what one of them made is used by the other.
 */
#include <dlfcn.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>

#undef ibv_get_device_list

static void *find(const char *library, const char *name, const char *version)
{
	void *handle = dlopen(library, RTLD_NOW);
	void *found = handle ? dlvsym(handle, name, version) : NULL;

	if (!found) {
		fprintf(stderr, "loader: %s\n", dlerror());
		exit(1);
	}
	return found;
}

#define VERBS(name) ((__typeof__(&(name)))find("libibverbs.so.1", #name, "IBVERBS_1.1"))

#define PRELOADED(name) ((__typeof__(&(name)))dlsym(RTLD_DEFAULT, #name))

/*
 * A program that is linked with libibverbs, so that it has the preload's, and a library of
 * its that loads the drop-in.
 */
static void mix(struct ibv_context **all, int count)
{
	struct ibv_device **list = VERBS(ibv_get_device_list)(NULL);

	for (int i = 0; list && list[i]; i++) {
		struct ibv_context *context = PRELOADED(ibv_open_device)(list[i]);
		struct ibv_pd *pd = context ? VERBS(ibv_alloc_pd)(context) : NULL;
		int rc = pd ? PRELOADED(ibv_dealloc_pd)(pd) : -1;

		printf("mixed: %s %s\n", PRELOADED(ibv_get_device_name)(list[i]), rc ? "failed" : "used");
		if (context)
			VERBS(ibv_close_device)(context);
	}
	if (list)
		PRELOADED(ibv_free_device_list)(list);
	for (int i = 0; i < count; i++) {
		struct ibv_pd *pd = PRELOADED(ibv_alloc_pd)(all[i]);

		printf("mixed rdma_cm: %s %s\n", all[i]->device->name, pd ? "used" : "failed");
		if (pd)
			VERBS(ibv_dealloc_pd)(pd);
	}
}

#define OF(library, name) ((__typeof__(&(name)))dlvsym(library, #name, "IBVERBS_1.1"))

/*
 * A program that loads the library for each of its objects, and lets go of it with the
 * object, as tensorpipe does.
 */
static void let_go(int round)
{
	void *library = dlopen("libibverbs.so.1", RTLD_NOW | RTLD_LOCAL);
	struct ibv_device **list = OF(library, ibv_get_device_list)(NULL);
	struct ibv_context *context = list[0] ? OF(library, ibv_open_device)(list[0]) : NULL;

	printf("round %d: %s\n", round, context ? "opened" : "failed");
	if (context)
		OF(library, ibv_close_device)(context);
	OF(library, ibv_free_device_list)(list);
	dlclose(library);
}

int main(void)
{
	for (int round = 0; round < 2; round++)
		let_go(round);
	struct ibv_context **(*devices)(int *) = (struct ibv_context * *(*)(int *))
		find("librdmacm.so.1", "rdma_get_devices", "RDMACM_1.0");
	struct ibv_device **list = VERBS(ibv_get_device_list)(NULL);
	int count = 0;

	for (int i = 0; list && list[i]; i++) {
		struct ibv_context *context = VERBS(ibv_open_device)(list[i]);
		struct ibv_pd *pd = context ? VERBS(ibv_alloc_pd)(context) : NULL;

		printf("%s %s\n", VERBS(ibv_get_device_name)(list[i]), pd ? "opened" : "failed");
		if (pd)
			VERBS(ibv_dealloc_pd)(pd);
		if (context)
			VERBS(ibv_close_device)(context);
	}
	/* what one library makes, the other knows */
	struct ibv_context **all = devices(&count);
	for (int i = 0; i < count; i++) {
		struct ibv_pd *pd = VERBS(ibv_alloc_pd)(all[i]);

		printf("rdma_cm: %s %s\n", all[i]->device->name, pd ? "used" : "failed");
		if (pd)
			VERBS(ibv_dealloc_pd)(pd);
	}
	/* some name the libraries as the linker does */
	printf("without a number: %s\n",
	       find("librdmacm.so", "rdma_get_devices", "RDMACM_1.0") == (void *)devices &&
			       find("libibverbs.so", "ibv_alloc_pd", "IBVERBS_1.1") ==
				       (void *)VERBS(ibv_alloc_pd)
		       ? "the same"
		       : "failed");
	if (PRELOADED(ibv_open_device))
		mix(all, count);
	return 0;
}
