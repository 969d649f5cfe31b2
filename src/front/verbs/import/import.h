/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * What can be imported by its handle, ibv_import_pd(3): within the process, where it is the object
 * itself with one reference more. Destroying it and taking an import back both give one up; with
 * the last its memory goes.
 *
 * What is imported from another process is an object of ours (`far`) that stands for the other:
 * far.c; the other's side is lend.c.
 */
#ifndef HEDDLE_FRONT_VERBS_IMPORT_H
#define HEDDLE_FRONT_VERBS_IMPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

enum hv_import_kind {
	HV_IMPORT_PD,
	HV_IMPORT_MR,
	HV_IMPORT_DM
};

struct hv_context;
struct ibv_context;

struct hv_import {
	LIST_ENTRY(hv_import) entry; /* hv_context.imports, until it is destroyed */
	enum hv_import_kind kind;
	uint32_t handle;
	int refs;
	bool far;      /* another process's: its handle is the one there */
	bool gone;     /* destroyed; imports of it are left to be taken back */
	uint32_t lent; /* how often another process has got it */
	bool quiet;    /* nobody has asked for it, so it needs no voice */
};

/* hv_context.secret: known to who has a context's cmd_fd. */
struct hv_secret {
	uint64_t word[2];
};

/*
 * hv_import_add: it is there from now on; `quiet` is set before. hv_import_destroyed: it is not;
 * hv_import_put: an import has been taken back: true: its memory is to be freed. With the lock.
 */
void hv_import_add(struct hv_context *ctx, struct hv_import *i, enum hv_import_kind kind, uint32_t handle);
bool hv_import_destroyed(struct hv_context *ctx, struct hv_import *i);
static inline bool hv_import_put(struct hv_import *i)
{
	return --i->refs == 0;
}

/*
 * hv_import_open: the context's cmd_fd, by which ibv_import_device(3) finds it: 0 or -errno.
 * hv_import_close: one of those who have the context closes it: true: it was the last.
 */
int hv_import_open(struct hv_context *ctx);
bool hv_import_close(struct hv_context *ctx);

/* hv_import_seek: the one with this handle; NULL: none. With the lock. */
struct hv_import *hv_import_seek(struct hv_context *ctx, enum hv_import_kind kind, uint32_t handle);

/* ---- other processes ------------------------------------------------------------------------- */

struct hd_question;
struct ibv_pd;
struct ibv_mr;
struct ibv_dm;

/* Begins a context's cmd_fd. */
struct hv_card {
	char magic[8]; /* HV_CARD_MAGIC */
	uint32_t device;
	/* number of the endpoint that answers; 0: there is nothing to be imported yet */
	uint32_t voice;
	struct hv_secret secret;
};
#define HV_CARD_MAGIC "heddle\0\1"
#define HV_CARD_ROOM 4096 /* bytes; device memory is behind it */

/* hv_voice: the context's voice, which is opened when it is needed: 0 or -errno. With the lock. */
int hv_voice(struct hv_context *ctx);

/*
 * lend.c. hv_import_asked: hd_ep_attr.asked of a voice. hv_import_shut: the context goes. With the
 * lock. hv_import_revoke: no other process uses this region any more, nor will: 0, with the lock;
 * or a positive errno, without: EBUSY: somebody does not answer.
 */
int hv_import_asked(void *owner, const struct hd_question *q);
int hv_import_revoke(struct hv_context *ctx, const struct hv_import *i);
void hv_import_shut(struct hv_context *ctx);

/* hv_secret_same: how long it takes does not tell how much of them is. */
static inline bool hv_secret_same(const struct hv_secret *a, const struct hv_secret *b)
{
	return !((a->word[0] ^ b->word[0]) | (a->word[1] ^ b->word[1]));
}

/*
 * far.c. hv_import_far_device: a context of our own for this cmd_fd of another process's, which is
 * ours from now on; NULL with errno.
 * hv_import_far_pd, hv_import_far_mr, hv_import_far_dm: what has that handle there; NULL with
 * errno. hv_import_far_shut: the context goes, with the lock.
 */
struct ibv_context *hv_import_far_device(int fd, const struct hv_card *card);
struct ibv_pd *hv_import_far_pd(struct hv_context *ctx, uint32_t handle);
struct ibv_mr *hv_import_far_mr(struct ibv_pd *pd, uint32_t handle);
struct ibv_dm *hv_import_far_dm(struct hv_context *ctx, uint32_t handle);
void hv_import_far_shut(struct hv_context *ctx);
/*
 * hv_import_far_revoked: the region with this handle is no more, says who knows
 * that secret. With the lock.
 */
void hv_import_far_revoked(struct hv_context *ctx, uint32_t handle, const struct hv_secret *secret);

/* hv_real_import: ibv_import_device of the real library; NULL with errno. */
struct ibv_context *hv_real_import(int cmd_fd);

#endif
