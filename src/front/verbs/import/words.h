/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * What the contexts of two processes say to each other about what one has imported from the other.
 */
#ifndef HEDDLE_FRONT_VERBS_IMPORT_WORDS_H
#define HEDDLE_FRONT_VERBS_IMPORT_WORDS_H

#include "front/verbs/import/where.h"
#include "front/verbs/verbs_front.h"

enum hv_word_kind {
	HV_TELL_PD = 1, /* is there such an object? */
	HV_TELL_MR,
	HV_TELL_DM,
	HV_REVOKE_MR, /* the other way round: it is no more */
};

struct hv_import_question {
	uint32_t what, handle;
	struct hv_secret secret; /* of the context whose object it is */
};

/*
 * err: a positive errno; the rest is of a region, but length and place, which device memory has
 * too. Who asks maps what the kernel says that the process which answers has at that place; of
 * device memory it is in the descriptor that he has got.
 */
struct hv_import_answer {
	int32_t err;
	uint32_t pd, key, access;
	uint64_t iova, length;
	uint64_t place; /* address in the process that answers, or offset in its descriptor */
};

static_assert(sizeof(struct hv_import_question) <= HD_ASK_MAX &&
		      sizeof(struct hv_import_answer) <= HD_ASK_MAX,
	      "questions and answers find room");

#endif
