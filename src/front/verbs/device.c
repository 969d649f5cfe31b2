/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Our two devices, in front of whatever real ones there are: ibv_get_device_list(3),
 * ibv_get_device_guid(3) and the like.
 */
#include "base/macros.h"
#include "front/verbs/entry.h"
#include "front/verbs/real.h"

#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct hv_device hv_devices[HV_DEVICES] = {
	[HV_INFINIBAND] = { .index = HV_INFINIBAND,
			    .name = "heddle0",
			    .pub = { .node_type = IBV_NODE_CA,
				     .transport_type = IBV_TRANSPORT_IB,
				     .name = "heddle0",
				     .dev_name = "heddle0",
				     .dev_path = "/sys/class/infiniband_verbs/heddle0",
				     .ibdev_path = "/sys/class/infiniband/heddle0" } },
	[HV_ETHERNET] = { .index = HV_ETHERNET,
			  .name = "heddle1",
			  .pub = { .node_type = IBV_NODE_CA,
				   .transport_type = IBV_TRANSPORT_IB,
				   .name = "heddle1",
				   .dev_name = "heddle1",
				   .dev_path = "/sys/class/infiniband_verbs/heddle1",
				   .ibdev_path = "/sys/class/infiniband/heddle1" } },
};

/*
 * The list that the program gets. What the real library gave is kept behind its end, since its
 * devices live only as long as its own list does:
 *
 *	heddle0  heddle1  real …  NULL | real list
 */
static struct ibv_device **list_make(struct ibv_device **real, int real_count)
{
	struct ibv_device **list = calloc((size_t)real_count + HV_DEVICES + 2, sizeof(struct ibv_device *));

	if (!list)
		return NULL;
	for (int i = 0; i < HV_DEVICES; i++)
		list[i] = &hv_devices[i].pub;
	for (int i = 0; i < real_count; i++)
		list[HV_DEVICES + i] = real[i];
	list[HV_DEVICES + real_count + 1] = (struct ibv_device *)(void *)real;
	return list;
}

static HD_THREAD_LOCAL bool real_alone;

/* The real library looks through the list of devices, at what is behind those of its own. */
struct ibv_context *hv_real_import(int cmd_fd)
{
	struct ibv_context *context;

	if (!HV_REAL(ibv_import_device))
		return hv_fail(EINVAL);
	real_alone = hv_real_asked = true;
	context = HV_REAL(ibv_import_device)(cmd_fd);
	real_alone = hv_real_asked = false;
	return context;
}

HV_PUBLIC struct ibv_device **ibv_get_device_list(int *count)
{
	struct ibv_device **real = NULL, **list;
	int real_count = 0, before = errno;

	if ((hv_elsewhere || real_alone) && HV_REAL(ibv_get_device_list))
		return HV_REAL(ibv_get_device_list)(count);
	hv_real_notice(__builtin_return_address(0)); /* librdmacm asks here */
	if (HV_REAL(ibv_get_device_list)) {
		hv_real_asked = true;
		real = HV_REAL(ibv_get_device_list)(&real_count);
		hv_real_asked = false;
	}
	if (!real)
		real_count = 0;
	list = list_make(real, real_count);
	if (!list) {
		if (real)
			HV_REAL(ibv_free_device_list)(real);
		errno = ENOMEM;
		return NULL;
	}
	if (count)
		*count = HV_DEVICES + real_count;
	errno = before; /* what the real library had to say of having none is no failure */
	return list;
}

HV_PUBLIC void ibv_free_device_list(struct ibv_device **list)
{
	struct ibv_device **end = list;

	if ((hv_elsewhere || real_alone) && HV_REAL(ibv_free_device_list)) {
		HV_REAL(ibv_free_device_list)(list);
		return;
	}
	while (*end)
		end++;
	if (end[1])
		HV_REAL(ibv_free_device_list)((struct ibv_device **)(void *)end[1]);
	free(list);
}

const char *hv_ibv_get_device_name(struct ibv_device *device)
{
	return device->name;
}

/* Indexes are the kernel's: programs ask it by netlink about what has one. */
int hv_ibv_get_device_index(struct ibv_device *device)
{
	return -1;
}
