/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
#include <errno.h>
#include <string.h>

#include "sample.h"
#include "verbs_open.h"

void *must(const char *what, void *object)
{
	if (!object)
		hd_give_up("%s: %s", what, strerror(errno));
	return object;
}

void must_be_0(const char *what, int rc)
{
	if (rc)
		hd_give_up("%s: %s", what, strerror(rc < 0 ? errno : rc));
}

struct ibv_context *device_open(const char *wanted)
{
	struct ibv_device **list = must("ibv_get_device_list", ibv_get_device_list(NULL));
	struct ibv_context *context = NULL;

	for (int i = 0; list[i] && !context; i++)
		if (!strcmp(ibv_get_device_name(list[i]), wanted))
			context = ibv_open_device(list[i]);
	ibv_free_device_list(list);
	if (!context)
		hd_give_up("there is no device %s, or it cannot be opened", wanted);
	return context;
}
