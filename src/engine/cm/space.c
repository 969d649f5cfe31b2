/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* Services by hash: the ports of a service, and its name on this host. */
#include "engine/cm/space.h"
#include "engine/core/core.h"
#include "engine/name/name.h"

#include "base/config.h"
#include "base/sockaddr.h"
#include "base/socket.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

/* ---- ports ----------------------------------------------------------------------------------- */

/* Every bit of the result depends on every bit of x. */
static uint64_t space_mix(uint64_t x)
{
	x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
	return x ^ x >> 31;
}

uint16_t hd_space_port(uint32_t space, uint64_t number, unsigned i)
{
	struct hd_range range = hd_config_range(HD_SET_CM_PORTS);
	uint32_t count = range.last - range.first + 1;
	uint32_t step = count < HD_SPACE_TRIES ? 1 : count / HD_SPACE_TRIES;

	if (i >= HD_SPACE_TRIES || i >= count)
		return 0;
	return (uint16_t)(range.first +
			  (space_mix(space_mix(space + UINT64_C(1)) ^ number) % count + i * step) % count);
}

/* ---- names ----------------------------------------------------------------------------------- */

/*
 * The abstract socket that stands for a service at one address, "*": at all, "*4" and
 * "*6": at all of a family.
 */
static socklen_t space_claim_name(const struct hd_service_attr *attr, const char *where,
				  struct sockaddr_un *out)
{
	int len;

	memset(out, 0, sizeof(*out));
	out->sun_family = AF_UNIX;
	len = snprintf(out->sun_path + 1, sizeof(out->sun_path) - 1, "heddle/service/%x/%llx/%s", attr->space,
		       (unsigned long long)attr->number, where);
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)len);
}

/*
 * 0 and a descriptor, or -1 in its place when the system has no such sockets; -EADDRINUSE, -EMFILE.
 */
static int claim_one(const struct hd_service_attr *attr, const char *where, int *claim)
{
	struct sockaddr_un name;
	socklen_t len = space_claim_name(attr, where, &name);
	int fd = hd_socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	*claim = -1;
	if (fd < 0)
		return errno == EMFILE || errno == ENFILE ? -errno : 0;
	if (bind(fd, (struct sockaddr *)&name, len) < 0) {
		int rc = errno == EADDRINUSE ? -EADDRINUSE : 0;

		close(fd);
		return rc;
	}
	*claim = fd;
	return 0;
}

/*
 * Has anybody this name? It is only looked at: taken for a moment, it would be missing
 * to whoever wants it then.
 */
static bool space_is_claimed(const struct hd_service_attr *attr, const char *where)
{
	struct sockaddr_un name;
	socklen_t len = space_claim_name(attr, where, &name);
	int fd = hd_socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	bool claimed = fd >= 0 && connect(fd, (struct sockaddr *)&name, len) == 0;

	if (fd >= 0)
		close(fd);
	return claimed;
}

static void space_address_text(const struct sockaddr *sa, char text[48])
{
	uint32_t scope = hd_sockaddr_scope(sa);
	uint8_t addr[16];

	hd_addr_map(sa, addr);
	for (int i = 0; i < 16; i++)
		snprintf(text + 2 * i, 3, "%02x", addr[i]);
	if (scope)
		snprintf(text + 32, 16, "%%%u", scope);
}

/* The family that a service is called by alone, or AF_UNSPEC. */
static int only_family(const struct hd_service_attr *attr)
{
	return !attr->bind || hd_sockaddr_is_any(attr->bind) ? attr->family : attr->bind->sa_family;
}

static const char *any_text(int family)
{
	return family == AF_INET ? "*4" : family == AF_INET6 ? "*6" : "*";
}

/* Is the service claimed at any single address of this host, of this family? */
static bool claimed_somewhere(const struct hd_node *node, const struct hd_service_attr *attr, int family)
{
	char text[48];

	for (int i = 0; i < hd_names(node)->own_count; i++) {
		struct sockaddr_storage sa;

		hd_addr_unmap(hd_names(node)->own[i].addr, 0, &sa);
		hd_sockaddr_set_scope((struct sockaddr *)&sa, hd_names(node)->own[i].scope);
		if (family && sa.ss_family != family)
			continue;
		space_address_text((struct sockaddr *)&sa, text);
		if (space_is_claimed(attr, text))
			return true;
	}
	return false;
}

/* By somebody who has it at all addresses that this one's could be among? */
static bool claimed_everywhere(const struct hd_service_attr *attr, int family, bool all)
{
	if (family && space_is_claimed(attr, "*"))
		return true;
	if (family)
		return !all && space_is_claimed(attr, any_text(family));
	return space_is_claimed(attr, "*4") || space_is_claimed(attr, "*6");
}

int hd_space_claim(const struct hd_node *node, const struct hd_service_attr *attr, int *claim)
{
	bool all = !attr->bind || hd_sockaddr_is_any(attr->bind);
	int rc, family = only_family(attr);
	char text[48];

	if (!all)
		space_address_text(attr->bind, text);
	rc = claim_one(attr, all ? any_text(family) : text, claim);
	if (!rc &&
	    (claimed_everywhere(attr, family, all) || (all && claimed_somewhere(node, attr, family)))) {
		if (*claim >= 0)
			close(*claim);
		/* or whoever has called would close another's that has the number by then */
		*claim = -1;
		rc = -EADDRINUSE;
	}
	return rc;
}

bool hd_space_is_taken(const struct hd_service_attr *attr)
{
	char text[48];

	space_address_text(attr->bind, text);
	return space_is_claimed(attr, text) || claimed_everywhere(attr, only_family(attr), false);
}
