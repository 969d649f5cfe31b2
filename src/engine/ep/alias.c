/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Endpoints with several authorization keys. Such a one has an alias for each: an endpoint of the
 * engine with an index of its own, which shares everything with the first one, its name included.
 * So everything that knows endpoints knows aliases, and a message goes from an alias to an alias.
 */
#include "engine/ep/alias.h"
#include "engine/link/link.h"
#include "engine/name/name.h"

#include <errno.h>
#include <stdlib.h>

/* Its number is that of the group which stands for the key. */
const struct hd_dest *hd_key_sources(struct hd_node *node, uint64_t key)
{
	struct hd_dest *sources = hd_key_stand_in(node, key);

	hd_assert_locked(node);
	if (sources || !(sources = calloc(1, sizeof(*sources))))
		return sources;
	hd_dest_stand_in(sources, node);
	sources->id = hd_key_add(node, key, sources);
	if (sources->id)
		return sources;
	free(sources);
	return NULL;
}

uint32_t hd_ep_aliases(const struct hd_ep *ep)
{
	return ep->alias_count + 1;
}

struct hd_ep *hd_ep_alias_at(struct hd_ep *ep, uint32_t i)
{
	return i ? ep->aliases[i - 1] : ep;
}

static int alias_open(struct hd_ep *ep, const struct hd_ep_attr *attr, uint64_t key)
{
	struct hd_ep_attr other = *attr;

	other.keys = &key;
	other.key_count = 1;
	other.main = ep;
	other.rq = ep->rq;
	other.txq = ep->tx;
	return hd_ep_open(ep->node, &other, &ep->aliases[ep->alias_count]);
}

int hd_aliases_open(struct hd_ep *ep, const struct hd_ep_attr *attr)
{
	int rc = 0;

	if (attr->key_count < 2)
		return 0;
	ep->aliases = calloc(attr->key_count - 1, sizeof(struct hd_ep *));
	if (!ep->aliases)
		return -ENOMEM;
	for (uint32_t i = 1; i < attr->key_count && !rc; i++) {
		if (hd_ep_alias(ep, attr->keys[i]))
			continue;
		rc = alias_open(ep, attr, attr->keys[i]);
		ep->alias_count += !rc;
	}
	return rc;
}

void hd_aliases_close(struct hd_ep *ep)
{
	while (ep->alias_count)
		hd_ep_close(ep->aliases[--ep->alias_count]);
	free(ep->aliases);
	ep->aliases = NULL;
}
