/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * What can be imported by its handle, ibv_import_pd(3): within the process, where it is the object itself with one reference more. Destroying it
 * and taking an import back both give one up; with the last its memory goes.
 */
#ifndef HEDDLE_FRONT_VERBS_IMPORT_H
#define HEDDLE_FRONT_VERBS_IMPORT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

enum hv_import_kind {
	HV_IMPORT_PD,
	HV_IMPORT_MR,
	HV_IMPORT_DM
};

struct hv_context;

struct hv_import {
	LIST_ENTRY(hv_import) entry; /* hv_context.imports, until it is destroyed */
	enum hv_import_kind kind;
	uint32_t handle;
	int refs;
};

/*
 * hv_import_add: it is there from now on. hv_import_destroyed: it is not; hv_import_put: an import has been taken back: true: its memory is to be
 * freed. With the lock.
 */
void hv_import_add(struct hv_context *ctx, struct hv_import *i, enum hv_import_kind kind, uint32_t handle);
bool hv_import_destroyed(struct hv_import *i);
static inline bool hv_import_put(struct hv_import *i)
{
	return --i->refs == 0;
}

/*
 * hv_import_open: the context's cmd_fd, by which ibv_import_device(3) finds it: 0 or -errno. hv_import_close: one of those who have the context
 * closes it: true: it was the last.
 */
struct ibv_context;
int hv_import_open(struct hv_context *ctx);
bool hv_import_close(struct hv_context *ctx);

/* hv_real_import: ibv_import_device of the real library; NULL with errno. */
struct ibv_context *hv_real_import(int cmd_fd);

#endif
