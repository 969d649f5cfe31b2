/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* Memory regions: a key and what it opens. Registering touches no page. Keys that we choose are random, so that none is guessed. */
#include "engine/internal.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/random.h>

static struct hd_mr *find(struct hd_node *node, uint64_t key)
{
	struct hd_mr *mr;

	HASH_FIND(hh, node->mr_table, &key, sizeof(key), mr);
	return mr;
}

static int draw_key(struct hd_node *node, uint64_t *key)
{
	do {
		if (getrandom(key, sizeof(*key), 0) != sizeof(*key))
			return -EIO;
	} while (!*key || find(node, *key));
	return 0;
}

int hd_mr_open(struct hd_node *node, const struct iovec *iov, int count, uint32_t access, bool wanted,
	       uint64_t *key, struct hd_mr **out)
{
	struct hd_mr *mr;
	int rc = 0;

	hd_assert_locked(node);
	if (count < 0 || count > HD_MAX_IOV)
		return -EINVAL;
	if (wanted && find(node, *key))
		return -ENOKEY;
	if (!wanted)
		rc = draw_key(node, key);
	if (rc)
		return rc;
	mr = calloc(1, sizeof(*mr));
	if (!mr)
		return -ENOMEM;
	mr->node = node;
	mr->key = *key;
	mr->access = access;
	mr->count = count;
	for (int i = 0; i < count; i++)
		mr->iov[i] = iov[i];
	HASH_ADD(hh, node->mr_table, key, sizeof(mr->key), mr);
	node->mrs++;
	*out = mr;
	return 0;
}

int hd_mr_close(struct hd_mr *mr)
{
	hd_assert_locked(mr->node);
	HASH_DEL(mr->node->mr_table, mr);
	mr->node->mrs--;
	free(mr);
	return 0;
}
