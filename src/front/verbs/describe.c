/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * What `heddle info` shows of the devices. It loads this library and asks, as
 * it knows nothing of verbs.
 */
#include "front/verbs/verbs_front.h"

#include <endian.h>
#include <inttypes.h>
#include <stdio.h>

int heddle_verbs_device(int i, char *name, char *what, size_t size);

/*
 * heddle_verbs_device: the name (16 bytes) of our i-th device, and in words how its port is, cut to
 * size. 0; -1 beyond the last. Opens nothing.
 */
HV_PUBLIC int heddle_verbs_device(int i, char *name, char *what, size_t size)
{
	struct hv_port port;

	hd_addr_is_judged(); /* who asks has a node of its own */
	if (i < 0 || i >= HV_DEVICES)
		return -1;
	snprintf(name, 16, "%s", hv_devices[i].name);
	if (hv_port_load(&hv_devices[i], &port) < 0 || port.state != IBV_PORT_ACTIVE)
		snprintf(what, size, "%s, down", i == HV_ETHERNET ? "Ethernet (RoCE v2)" : "InfiniBand");
	else if (i == HV_ETHERNET)
		snprintf(what, size, "Ethernet (RoCE v2), active, %d GIDs, GUID %016" PRIx64, port.gid_count,
			 (uint64_t)be64toh(port.guid));
	else
		snprintf(what, size, "InfiniBand, active, LID %u, GUID %016" PRIx64, port.lid,
			 (uint64_t)be64toh(port.guid));
	return 0;
}
