/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * The side of the process whose objects others import. It answers what they ask, and tells
 * those who have asked for a region when one goes. Who knows the secret has got the
 * context's cmd_fd from us.
 */
#include "front/verbs/call.h"
#include "front/verbs/dm.h"
#include "front/verbs/import/words.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define PATIENCE_MS 1000

struct hv_borrower {
	LIST_ENTRY(hv_borrower) entry; /* hv_context.borrowers */
	struct hd_dest *voice;
	struct hd_follow follow;
};

/* ---- who has asked --------------------------------------------------------------------------- */

static void borrower_free(struct hv_borrower *b)
{
	LIST_REMOVE(b, entry);
	hd_dest_unfollow(b->voice, &b->follow);
	free(b);
}

static void lend_lost(struct hd_follow *follow, int err)
{
	if (err)
		borrower_free(hv_container(follow, struct hv_borrower, follow));
}

/* 0 or a positive errno. */
static int remember(struct hv_context *ctx, struct hd_dest *voice)
{
	struct hv_borrower *b;

	LIST_FOREACH(b, &ctx->borrowers, entry)
		if (b->voice == voice)
			return 0;
	b = calloc(1, sizeof(*b));
	if (!b)
		return ENOMEM;
	b->voice = voice;
	b->follow.fn = lend_lost;
	hd_dest_follow(voice, &b->follow);
	LIST_INSERT_HEAD(&ctx->borrowers, b, entry);
	return 0;
}

void hv_import_shut(struct hv_context *ctx)
{
	while (!LIST_EMPTY(&ctx->borrowers))
		borrower_free(LIST_FIRST(&ctx->borrowers));
	hv_import_far_shut(ctx);
	if (ctx->voice)
		hd_ep_close(ctx->voice);
	ctx->voice = NULL;
}

/* ---- answering ------------------------------------------------------------------------------- */

static int tell_mr(struct hv_import *i, struct hv_import_answer *a)
{
	struct hv_mr *mr = hv_container(i, struct hv_mr, import);
	/* of one that we have imported, he would not be told when it goes */
	int rc = mr->is_null || i->far ? -EOPNOTSUPP : 0;

	if (!rc && mr->pub.length)
		rc = hv_where(mr->memory, mr->pub.length);
	if (rc)
		return -rc;
	a->pd = hv_pd_real(hv_pd_of(mr->pub.pd))->import.handle;
	a->key = mr->pub.lkey;
	a->access = mr->access;
	a->iova = mr->iova;
	a->length = mr->pub.length;
	a->place = (uintptr_t)mr->memory;
	i->lent++;
	return 0;
}

static int tell_dm(struct hv_import *i, struct hv_import_answer *a)
{
	struct hv_dm *dm = hv_container(i, struct hv_dm, import);

	a->length = dm->length;
	a->place = dm->offset;
	return i->far ? EOPNOTSUPP : 0; /* it is in another one's file */
}

static int lend_tell(struct hv_context *ctx, const struct hv_import_question *q, struct hd_dest *from,
		     struct hv_import_answer *a)
{
	static const enum hv_import_kind kinds[] = {
		[HV_TELL_PD] = HV_IMPORT_PD, [HV_TELL_MR] = HV_IMPORT_MR, [HV_TELL_DM] = HV_IMPORT_DM
	};
	struct hv_import *i = hv_import_seek(ctx, kinds[q->what], q->handle);
	int rc = remember(ctx, from); /* it knows our voice from now on */

	if (rc)
		return rc;
	if (!i)
		return ENOENT;
	if (q->what == HV_TELL_MR)
		return tell_mr(i, a);
	return q->what == HV_TELL_DM ? tell_dm(i, a) : 0;
}

int hv_import_asked(void *owner, const struct hd_question *question)
{
	struct hv_context *ctx = owner;
	const struct hv_import_question *q = question->data;
	struct hv_import_answer a = { .err = 0 };

	if (question->len != sizeof(*q))
		return -EINVAL;
	if (q->what == HV_REVOKE_MR) {
		hv_import_far_revoked(ctx, q->handle, &q->secret);
	} else {
		if (!hv_secret_same(&q->secret, &ctx->secret) || q->what < HV_TELL_PD || q->what > HV_TELL_DM)
			return -EACCES;
		a.err = lend_tell(ctx, q, question->from, &a);
	}
	memcpy(question->answer, &a, sizeof(a));
	return sizeof(a);
}

/* ---- taking back ----------------------------------------------------------------------------- */

/* Tell all of them that it goes: *count calls. 0 or a positive errno. With the lock. */
static int revoke_begin(struct hv_context *ctx, uint32_t handle, struct hv_call ***calls, size_t *count)
{
	const struct hv_import_question q = { HV_REVOKE_MR, handle, ctx->secret };
	struct hv_borrower *b;
	size_t n = 0;
	int rc = 0;

	LIST_FOREACH(b, &ctx->borrowers, entry)
		n++;
	*count = 0;
	*calls = calloc(n + 1, sizeof(**calls));
	if (!*calls)
		return ENOMEM;
	LIST_FOREACH(b, &ctx->borrowers, entry) {
		rc = hv_call_start(ctx, ctx->voice, b->voice, &q, sizeof(q), *calls + *count);
		if (rc)
			break;
		++*count;
	}
	return rc;
}

/* Those who have died meanwhile are out of it. */
static int revoke_end(struct hv_context *ctx, struct hv_call **calls, size_t count)
{
	struct hv_import_answer a;
	int rc = 0;

	for (size_t i = 0; i < count; i++)
		if (hv_call_end(ctx, calls[i], &a, sizeof(a), PATIENCE_MS) == ETIMEDOUT)
			rc = EBUSY;
	free(calls);
	return rc;
}

/* Somebody may ask for it while the others are told. */
int hv_import_revoke(struct hv_context *ctx, const struct hv_import *i)
{
	uint32_t told = 0;
	int rc = 0;

	while (!rc) {
		struct hv_call **calls;
		size_t count;
		int late;

		if (!hv_enter(ctx))
			return EIO;
		if (i->lent == told)
			return 0;
		told = i->lent;
		rc = revoke_begin(ctx, i->handle, &calls, &count);
		hv_leave(ctx);
		late = revoke_end(ctx, calls, count);
		rc = rc ? rc : late;
	}
	return rc;
}
