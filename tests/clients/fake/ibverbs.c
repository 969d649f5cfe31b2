/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * A libibverbs with one device, which can be opened and says what it is: stands
 * for a host that has one.
 */
#include <endian.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#undef ibv_get_device_list
#undef ibv_query_port

#define GUID UINT64_C(0x1122334455667788)

static struct ibv_device device = { .node_type = IBV_NODE_CA, .name = "fake0", .dev_name = "uverbs9" };
static struct ibv_context context = { .device = &device, .async_fd = 77 };
static int lists, contexts;

struct ibv_device **ibv_get_device_list(int *count)
{
	struct ibv_device **list = calloc(2, sizeof(struct ibv_device *));

	list[0] = &device;
	*count = 1;
	lists++;
	return list;
}

void ibv_free_device_list(struct ibv_device **list)
{
	lists--;
	free(list);
}

const char *ibv_get_device_name(struct ibv_device *d)
{
	return d->name;
}

__be64 ibv_get_device_guid(struct ibv_device *d)
{
	(void)d;
	return htobe64(GUID);
}

struct ibv_context *ibv_open_device(struct ibv_device *d)
{
	contexts++;
	return d == &device ? &context : NULL;
}

int ibv_close_device(struct ibv_context *c)
{
	contexts--;
	return c == &context ? 0 : 22;
}

int ibv_query_device(struct ibv_context *c, struct ibv_device_attr *attr)
{
	memset(attr, 0, sizeof(*attr));
	strcpy(attr->fw_ver, "fake");
	attr->phys_port_cnt = 1;
	return c == &context ? 0 : 22;
}

int ibv_query_port(struct ibv_context *c, uint8_t port, struct _compat_ibv_port_attr *attr)
{
	(void)attr;
	return c == &context && port == 1 ? 0 : 22;
}

int ibv_get_async_event(struct ibv_context *c, struct ibv_async_event *event)
{
	(void)c, (void)event;
	return -1;
}

void ibv_ack_async_event(struct ibv_async_event *event)
{
	(void)event;
}

const char *ibv_wc_status_str(enum ibv_wc_status status)
{
	(void)status;
	return "fake";
}

const char *ibv_port_state_str(enum ibv_port_state state)
{
	(void)state;
	return "fake";
}

/* Whoever ends the program has given back what it got. */
static void __attribute__((destructor)) at_end(void)
{
	if (lists || contexts)
		fprintf(stderr, "fake: %d lists and %d contexts are left\n", lists, contexts);
}
