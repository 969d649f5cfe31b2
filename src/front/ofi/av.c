/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * fi_av(3). An address is only noted, and the peer is called at the first send: an insertion is
 * over when its call returns. An AV with FI_EVENT tells it by events all the same.
 */
#include "front/ofi/auth.h"
#include "front/ofi/av_shared.h"
#include "front/ofi/coll/coll.h"

#include "front/ofi/stubs.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * FI_FIREWALL_ADDR: calls are made all the same, and fail where there is a firewall: libfabric's
 * providers, but for its tcp, ignore it too.
 */
#define INSERT_FLAGS (FI_MORE | FI_SYNC_ERR | FI_AUTH_KEY | FI_AV_USER_ID | FI_FIREWALL_ADDR)
#define MAX_CONTEXT_BITS 8 /* HD_FI_MAX_CTX receive contexts */
/* entries that there is room for from the start: what is expected need not come */
#define AT_ONCE 65536

static_assert(1 << MAX_CONTEXT_BITS == HD_FI_MAX_CTX, "every context can be named, and no more");

/* One insert call: where results go, and how far it is. */
struct insertion {
	struct hd_fi_av *av;
	fi_addr_t *out;
	int *errors;   /* FI_SYNC_ERR: one per address */
	void *context; /* FI_EVENT: of its events */
	bool calls;    /* FI_AV_USER_ID: out has what the program calls them */
	size_t at;
	int done;
};

/*
 * Names of its own for senders: there is no place for them in a table that processes
 * share, and keys have none.
 */
static bool user_ids_can_be(const struct hd_fi_domain *domain, bool shared)
{
	return !shared && !domain->av_keys;
}

static int begin_calls(struct insertion *ins)
{
	const struct hd_fi_av *av = ins->av;

	if (!ins->out || av->users_unnamed || !user_ids_can_be(av->domain, av->table))
		return hd_fi_no(
			FI_EINVAL,
			"fi_av_insert with FI_AV_USER_ID needs the identifiers, and an address vector that is not opened with it, not shared and without keys");
	ins->calls = true;
	return 0;
}

static int av_begin(struct insertion *ins, struct fid_av *av, fi_addr_t *out, uint64_t flags, void *context)
{
	*ins = (struct insertion){ .av = (struct hd_fi_av *)av, .out = out };
	if (flags & ~INSERT_FLAGS || (ins->av->async && flags & FI_SYNC_ERR))
		return hd_fi_no(
			FI_EBADFLAGS,
			"fi_av_insert with flags that it does not take: FI_SYNC_ERR is not for FI_EVENT");
	if (ins->av->domain->av_keys != !!(flags & FI_AUTH_KEY) || (flags & FI_AUTH_KEY && !out))
		return hd_fi_no(
			FI_EINVAL,
			"fi_av_insert takes FI_AUTH_KEY, and the keys, in domains with FI_AV_AUTH_KEY, and in no others");
	if (ins->av->async && !ins->av->eq)
		return hd_fi_no(
			FI_ENOEQ,
			"an address vector with FI_EVENT needs an event queue bound before it takes addresses");
	if (ins->av->async)
		ins->context = context;
	if (flags & FI_SYNC_ERR) {
		if (!context)
			return hd_fi_no(FI_EINVAL,
					"FI_SYNC_ERR without a context, which is where the errors go");
		ins->errors = context;
	}
	return flags & FI_AV_USER_ID ? begin_calls(ins) : 0;
}

/*
 * What the call returns; an AV with FI_EVENT has one event for it, behind those of
 * the addresses that failed.
 */
static int av_finish(const struct insertion *ins)
{
	struct hd_fi_av *av = ins->av;
	const struct fi_eq_entry entry = { .fid = &av->fid.fid,
					   .context = ins->context,
					   .data = (uint64_t)ins->done };

	return av->async ? hd_fi_eq_post(av->eq, FI_AV_COMPLETE, &entry, sizeof(entry)) : ins->done;
}

/*
 * What the table takes is brought over when it is looked for. An address that names nothing
 * is refused here as well.
 */
static int64_t av_insert_shared(struct hd_fi_av *av, const union hd_fi_addr *addr,
				const struct hd_fi_key *key)
{
	struct hd_dest *dest;
	int rc =
		hd_dest_get_keyed(av->domain->node, &addr->sa, key ? hd_fi_auth_digest(key) : av->key, &dest);
	int64_t index;

	if (rc)
		return hd_fi_ret(rc, "an address that nobody can be reached at");
	index = hd_fi_table_insert(av->table, addr, key ? hd_fi_auth_slot(key) + 1 : 0);
	if (index >= 0)
		hd_fi_av_follow(av);
	hd_dest_put(dest);
	return index;
}

static int64_t insert_locked(struct hd_fi_av *av, const union hd_fi_addr *addr, struct hd_fi_key *key)
{
	struct hd_dest *dest;
	int64_t index;
	int rc =
		hd_dest_get_keyed(av->domain->node, &addr->sa, key ? hd_fi_auth_digest(key) : av->key, &dest);

	if (rc)
		return hd_fi_ret(rc, "an address that nobody can be reached at");
	index = hd_fi_av_put(av, dest, hd_dest_id(dest), addr);
	if (index < 0) {
		hd_dest_put(dest);
		return index;
	}
	av->entry[index].key = key;
	if (key)
		hd_fi_auth_use(key, 1);
	rc = hd_fi_av_views_add(av, (uint32_t)index);
	if (rc)
		hd_fi_av_forget(av, (uint32_t)index);
	return rc ? rc : index;
}

/*
 * The output says which key the next address is to have, where the domain's keys are in
 * AVs, or what it is called.
 */
static int64_t insert_next(struct insertion *ins, const union hd_fi_addr *addr)
{
	struct hd_fi_av *av = ins->av;
	struct hd_fi_key *key = av->domain->av_keys ? hd_fi_auth_at(av, ins->out[ins->at]) : NULL;
	int64_t index;

	if (av->domain->av_keys && !key)
		return hd_fi_no(FI_EINVAL, "an address with a key that is not in the address vector");
	if (av->table)
		return av_insert_shared(av, addr, key);
	index = insert_locked(av, addr, key);
	if (ins->calls && index >= 0)
		hd_fi_av_call(av, (size_t)index, ins->out[ins->at]);
	return index;
}

/* Note the next address, or why it failed. */
static void insert_one(struct insertion *ins, const union hd_fi_addr *addr, int rc)
{
	int64_t index = rc;

	if (!rc) {
		hd_fi_lock(ins->av->domain);
		index = insert_next(ins, addr);
		hd_fi_unlock(ins->av->domain);
	}
	if (ins->out)
		ins->out[ins->at] = index < 0 ? FI_ADDR_NOTAVAIL : (fi_addr_t)index;
	if (ins->errors)
		ins->errors[ins->at] = index < 0 ? (int)-index : 0;
	if (ins->av->async && index < 0)
		hd_fi_eq_fail(ins->av->eq, &ins->av->fid.fid, ins->context, ins->at, (int)-index);
	ins->done += index >= 0;
	ins->at++;
}

static int av_family_of(const struct hd_fi_av *av)
{
	return hd_fi_family(av->domain->addr_format);
}

/*
 * Bytes from an address to the next one in an array: the format's size or, for FI_SOCKADDR, that of
 * the address's family. 0 for an unknown one, after which the rest cannot be found.
 */
static size_t step_of(const struct hd_fi_av *av, const void *addr)
{
	struct sockaddr sa = { .sa_family = (sa_family_t)av_family_of(av) };

	if (sa.sa_family == AF_UNSPEC)
		memcpy(&sa.sa_family, addr, sizeof(sa.sa_family));
	return hd_sockaddr_size(&sa);
}

static int av_insert(struct fid_av *fid, const void *addr, size_t count, fi_addr_t *out, uint64_t flags,
		     void *context)
{
	const char *at = addr;
	struct insertion ins;
	int rc = av_begin(&ins, fid, out, flags, context);

	if (rc && (count || rc == -FI_EBADFLAGS || rc == -FI_ENOEQ))
		return rc;
	if (count && !addr)
		return hd_fi_no(FI_EINVAL, "fi_av_insert without addresses");
	while (ins.at < count) {
		union hd_fi_addr one;
		size_t step = step_of(ins.av, at);

		insert_one(&ins, &one,
			   step ? hd_fi_addr_copy(at, step, av_family_of(ins.av), &one)
				: hd_fi_no(FI_EINVAL, "an address that is neither IPv4 nor IPv6"));
		at += step;
	}
	return av_finish(&ins);
}

static struct hd_fi_lookup lookup_of(const struct hd_fi_av *av, const char *node, const char *service)
{
	return (struct hd_fi_lookup){ .node = node, .service = service, .family = av_family_of(av) };
}

static int av_insertsvc(struct fid_av *fid, const char *node, const char *service, fi_addr_t *out,
			uint64_t flags, void *context)
{
	struct hd_fi_lookup what = lookup_of((struct hd_fi_av *)fid, node, service);
	union hd_fi_addr addr;
	struct insertion ins;
	int rc = av_begin(&ins, fid, out, flags, context);

	if (rc)
		return rc;
	if (!node)
		return hd_fi_no(FI_EINVAL, "fi_av_insertsvc without a node");
	insert_one(&ins, &addr, hd_fi_resolve(&what, &addr));
	return av_finish(&ins);
}

/* ---- symmetric insertion --------------------------------------------------------------------- */

static void add_to_ip(union hd_fi_addr *addr, size_t n)
{
	if (addr->sa.sa_family == AF_INET) {
		addr->in.sin_addr.s_addr = htonl(ntohl(addr->in.sin_addr.s_addr) + (uint32_t)n);
		return;
	}
	for (int i = 15; i >= 0 && n; i--) {
		n += addr->in6.sin6_addr.s6_addr[i];
		addr->in6.sin6_addr.s6_addr[i] = (uint8_t)n;
		n >>= 8;
	}
}

/*
 * The n-th name after one like host09: host10. -FI_EINVAL when there is no
 * number at its end to count up.
 */
static int nth_host(const char *node, size_t n, char *text, size_t size)
{
	size_t len = strlen(node), digits = 0;
	int written;

	while (digits < len && digits < 9 && isdigit((unsigned char)node[len - 1 - digits]))
		digits++;
	if (!digits && n)
		return hd_fi_no(FI_EINVAL,
				"several hosts by fi_av_insertsym from a name without a number at its end");
	if (!digits)
		written = snprintf(text, size, "%s", node);
	else
		written = snprintf(text, size, "%.*s%0*llu", (int)(len - digits), node, (int)digits,
				   strtoull(node + len - digits, NULL, 10) + (unsigned long long)n);
	return written > 0 && (size_t)written < size
		       ? 0
		       : hd_fi_no(FI_EINVAL, "fi_av_insertsym, a host's name becomes too long");
}

/* The address of the n-th node, port 0. */
static int nth_node(const struct hd_fi_av *av, const char *node, size_t n, union hd_fi_addr *out)
{
	struct hd_fi_lookup what = lookup_of(av, node, NULL);
	char name[256];
	int rc;

	what.numeric = true;
	if (!hd_fi_resolve(&what, out)) {
		add_to_ip(out, n);
		return 0;
	}
	rc = nth_host(node, n, name, sizeof(name));
	if (rc)
		return rc;
	what.numeric = false;
	what.node = name;
	return hd_fi_resolve(&what, out);
}

static int first_port(const char *service, size_t count)
{
	const struct hd_fi_lookup what = { .service = service, .family = AF_INET };
	union hd_fi_addr addr;
	int port;

	if (!service || hd_fi_resolve(&what, &addr))
		return hd_fi_no(FI_EINVAL, "fi_av_insertsym without a service, or with one that is none");
	port = ntohs(addr.in.sin_port);
	return count > 65536 - (size_t)port
		       ? hd_fi_no(FI_EINVAL, "fi_av_insertsym, more services than there are ports")
		       : port;
}

static void set_port(union hd_fi_addr *addr, size_t port)
{
	if (addr->sa.sa_family == AF_INET)
		addr->in.sin_port = htons((uint16_t)port);
	else
		addr->in6.sin6_port = htons((uint16_t)port);
}

static int av_insertsym(struct fid_av *fid, const char *node, size_t nodecnt, const char *service,
			size_t svccnt, fi_addr_t *out, uint64_t flags, void *context)
{
	struct insertion ins;
	int port, rc = av_begin(&ins, fid, out, flags, context);

	if (rc)
		return rc;
	port = first_port(service, svccnt);
	if (!node || port < 0)
		return hd_fi_no(FI_EINVAL, "fi_av_insertsym without a node, or with a service that is none");
	for (size_t n = 0; n < nodecnt; n++) {
		union hd_fi_addr addr;

		rc = nth_node(ins.av, node, n, &addr);
		for (size_t s = 0; s < svccnt; s++) {
			if (!rc)
				set_port(&addr, (size_t)port + s);
			insert_one(&ins, &addr, rc);
		}
	}
	return av_finish(&ins);
}

/* ---- the rest -------------------------------------------------------------------------------- */

/* Caller holds the node's lock. */
static int av_remove_one(struct hd_fi_av *av, fi_addr_t addr)
{
	uint32_t index = hd_fi_av_index(av, addr);
	int rc = index == HD_FI_NO_INDEX
			 ? hd_fi_no(FI_EINVAL, "fi_av_remove of an address that is not in the address vector")
			 : 0;

	if (!rc && av->table)
		rc = hd_fi_table_remove(av->table, index);
	if (rc)
		return rc;
	hd_fi_av_forget(av, index);
	hd_fi_av_views_forget(av, index);
	return 0;
}

static int av_remove(struct fid_av *fid, fi_addr_t *addrs, size_t count, uint64_t flags)
{
	struct hd_fi_av *av = (struct hd_fi_av *)fid;
	int rc = 0;

	if (flags & ~FI_AUTH_KEY || (flags && !av->domain->av_keys))
		return hd_fi_no(FI_EBADFLAGS, "fi_av_remove with flags that it does not take");
	if (count && !addrs)
		return hd_fi_no(FI_EINVAL, "fi_av_remove without addresses");
	hd_fi_lock(av->domain);
	for (size_t i = 0; i < count; i++) {
		int one = flags ? hd_fi_auth_remove(av, addrs[i]) : av_remove_one(av, addrs[i]);

		rc = one ? one : rc;
	}
	hd_fi_unlock(av->domain);
	return rc;
}

static int av_lookup(struct fid_av *fid, fi_addr_t addr, void *out, size_t *size)
{
	struct hd_fi_av *av = (struct hd_fi_av *)fid;
	union hd_fi_addr found;
	uint32_t index;

	if (!size || (!out && *size))
		return hd_fi_no(FI_EINVAL, "fi_av_lookup without room for the address");
	hd_fi_lock(av->domain);
	index = hd_fi_av_index(av, addr);
	if (index != HD_FI_NO_INDEX)
		found = av->entry[index].addr;
	hd_fi_unlock(av->domain);
	if (index == HD_FI_NO_INDEX)
		return hd_fi_no(FI_EINVAL, "fi_av_lookup of an address that is not in the address vector");
	hd_fi_addr_out(&found.sa, out,
		       size); /* a short buffer is no error here: it is cut, and *size tells */
	return 0;
}

static const char *av_straddr(struct fid_av *fid, const void *addr, char *buf, size_t *len)
{
	*len = hd_fi_addr_text(addr, buf, buf ? *len : 0);
	return buf;
}

static int av_close(struct fid *fid)
{
	struct hd_fi_av *av = (struct hd_fi_av *)fid;
	struct hd_fi_domain *domain = av->domain;

	if (atomic_load(&av->users))
		return hd_fi_no(FI_EBUSY,
				"fi_close of an address vector that endpoints are bound to, or sets are of");
	hd_fi_lock(domain);
	hd_fi_av_views_close(av);
	for (size_t i = 0; i < av->size; i++)
		hd_fi_av_forget(av, (uint32_t)i);
	hd_fi_auth_free(av);
	hd_fi_unlock(domain);
	if (av->eq)
		hd_fi_eq_use(av->eq, -1);
	av->magic = 0;
	hd_fi_domain_drop(domain, &av->object);
	hd_fi_av_free(av);
	if (av->table)
		hd_fi_table_close(av->table);
	free(av);
	return 0;
}

static int av_bind(struct fid *fid, struct fid *bfid, uint64_t flags)
{
	struct hd_fi_av *av = (struct hd_fi_av *)fid;
	struct hd_fi_eq *eq = hd_fi_eq_as(bfid, av->domain->fabric);

	if (flags)
		return hd_fi_no(FI_EBADFLAGS, "fi_av_bind takes no flags");
	if (!eq || av->eq)
		return hd_fi_no(FI_EINVAL,
				"fi_av_bind of what is no event queue of this fabric, or where there is one");
	hd_fi_eq_use(eq, 1);
	av->eq = eq;
	return 0;
}

static struct fi_ops av_fid_ops = HD_FI_FID_OPS(av_close, av_bind, hd_fi_no_control);

static struct hd_fi_ops_av av_ops = {
	.old = { .size = sizeof(struct hd_fi_ops_av),
		 .insert = av_insert,
		 .insertsvc = av_insertsvc,
		 .insertsym = av_insertsym,
		 .remove = av_remove,
		 .lookup = av_lookup,
		 .straddr = av_straddr,
		 .av_set = hd_fi_av_set_open,
#if !HD_FI_HEADERS_OLD
		 .insert_auth_key = hd_fi_auth_insert,
		 .lookup_auth_key = hd_fi_auth_lookup,
		 .set_user_id = hd_fi_av_set_user_id,
	},
#else
	},
	.insert_auth_key = hd_fi_auth_insert,
	.lookup_auth_key = hd_fi_auth_lookup,
	.set_user_id = hd_fi_av_set_user_id,
#endif
};

/* Asynchronous insertion is not offered. */
static int av_check_attr(const struct hd_fi_domain *domain, const struct fi_av_attr *attr)
{
	if (attr->flags & ~(FI_SYMMETRIC | FI_READ | FI_EVENT | FI_AV_USER_ID))
		return hd_fi_no(FI_EBADFLAGS, "fi_av_open with flags that it does not take");
	if (attr->flags & FI_AV_USER_ID && !user_ids_can_be(domain, attr->name))
		return hd_fi_no(
			FI_EINVAL,
			"fi_av_open with FI_AV_USER_ID of a shared address vector, or with FI_AV_AUTH_KEY");
	if (attr->rx_ctx_bits < 0 || attr->rx_ctx_bits > MAX_CONTEXT_BITS ||
	    (attr->flags & FI_READ && !attr->name))
		return hd_fi_no(FI_EINVAL,
				"fi_av_open with more rx_ctx_bits than there are, or FI_READ without a name");
	if (attr->type != FI_AV_UNSPEC && attr->type != FI_AV_MAP && attr->type != FI_AV_TABLE)
		return hd_fi_no(FI_EINVAL, "fi_av_open with a type that there is not");
	if (domain->av_type != FI_AV_UNSPEC && attr->type != FI_AV_UNSPEC && attr->type != domain->av_type)
		return hd_fi_no(FI_EINVAL, "fi_av_open with another type than the domain's av_type");
	return attr->count < HD_FI_NO_INDEX
		       ? 0
		       : hd_fi_no(FI_EINVAL, "fi_av_open for more addresses than there can be");
}

static int av_share(struct hd_fi_av *av, const struct hd_fi_domain *domain, struct fi_av_attr *attr)
{
	const struct hd_fi_table_attr what = { .name = attr->name,
					       .count = attr->count,
					       .read_only = attr->flags & FI_READ,
					       .keyed = domain->av_keys };
	int rc = hd_fi_table_open(&what, &av->table);

	if (!rc && !attr->map_addr)
		attr->map_addr = hd_fi_table_map_addr(av->table);
	return rc || !domain->av_keys ? rc : hd_fi_auth_share(av);
}

int hd_fi_av_open(struct fid_domain *domain_fid, struct fi_av_attr *attr, struct fid_av **out, void *context)
{
	struct hd_fi_domain *domain = hd_fi_as(hd_fi_domain, HD_FI_DOMAIN, FI_CLASS_DOMAIN, domain_fid);
	struct hd_fi_av *av;
	int rc;

	if (!domain || !attr || !out)
		return hd_fi_no(FI_EINVAL,
				"fi_av_open without a domain, attributes or room for the address vector");
	rc = av_check_attr(domain, attr);
	if (rc)
		return rc;
	av = calloc(1, sizeof(*av));
	if (!av)
		return hd_fi_no(FI_ENOMEM);
	rc = attr->name ? av_share(av, domain, attr)
			: hd_fi_av_reserve(av, attr->count < AT_ONCE ? attr->count : AT_ONCE);
	if (rc) {
		if (av->table)
			hd_fi_table_close(av->table);
		hd_fi_av_free(av);
		free(av);
		return rc;
	}
	av->context_bits = attr->rx_ctx_bits;
	if (attr->type == FI_AV_UNSPEC)
		attr->type = domain->av_type != FI_AV_UNSPEC ? domain->av_type : FI_AV_TABLE;
	av->fid.fid = (struct fid){ .fclass = FI_CLASS_AV, .context = context, .ops = &av_fid_ops };
	av->fid.ops = &av_ops.old;
	av->type = attr->type;
	av->async = attr->flags & FI_EVENT;
	av->user_ids = av->users_unnamed = attr->flags & FI_AV_USER_ID;
	av->domain = domain;
	av->key = domain->key;
	av->magic = HD_FI_AV;
	hd_fi_domain_add(domain, &av->object, &av->fid.fid);
	*out = &av->fid;
	return 0;
}
