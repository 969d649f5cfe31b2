/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * The names that fi_setname(3) gives endpoints which are not enabled yet: until they are, their
 * ports are held, and who calls there is refused.
 */
#include "front/ofi/ep.h"

#include <string.h>

void hd_fi_name_free(struct hd_bound_port **named)
{
	if (*named)
		hd_bound_drop(*named);
	*named = NULL;
}

static int name_take(struct hd_node *node, int family, union hd_fi_addr *addr, struct hd_bound_port **named)
{
	struct sockaddr_storage name;
	int rc = hd_bound_hold(node, &addr->sa, named);

	if (rc)
		return rc;
	rc = hd_bound_name(*named, 0, family, &name);
	if (rc)
		hd_fi_name_free(named);
	else /* the port of IPv6 stands at the same place */
		addr->in.sin_port = ((const struct sockaddr_in *)(const void *)&name)->sin_port;
	return rc;
}

/* The old one goes first, for both may be of one port. */
int hd_fi_name_hold(const struct hd_fi_domain *domain, const union hd_fi_addr *was, union hd_fi_addr *addr,
		    struct hd_bound_port **named)
{
	int family = hd_fi_family(domain->addr_format), rc;
	union hd_fi_addr back = *was;
	bool had = *named != NULL;

	hd_fi_lock(domain);
	hd_fi_name_free(named);
	rc = name_take(domain->node, family, addr, named);
	if (rc && had)
		(void)name_take(domain->node, family, &back, named);
	hd_fi_unlock(domain);
	return hd_fi_ret(rc, "fi_setname to an address that cannot be had");
}

int hd_fi_name_tell(const struct hd_fi_domain *domain, const struct hd_bound_port *named, void *addr,
		    size_t *addrlen)
{
	struct sockaddr_storage name;
	int rc;

	hd_fi_lock(domain);
	rc = hd_bound_name(named, 0, hd_fi_family(domain->addr_format), &name);
	hd_fi_unlock(domain);
	return rc ? hd_fi_ret(rc, "the endpoint has no such address")
		  : hd_fi_addr_out((struct sockaddr *)&name, addr, addrlen);
}
