/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
#include "base/log.h"
#include "base/socket.h"
#include "front/ofi/ofi.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

int hd_fi_family(uint32_t addr_format)
{
	switch (addr_format) {
	case FI_FORMAT_UNSPEC:
	case FI_SOCKADDR:
	case HD_FI_SOCKADDR_IP:
		return AF_UNSPEC;
	case FI_SOCKADDR_IN:
		return AF_INET;
	case FI_SOCKADDR_IN6:
		return AF_INET6;
	default:
		return -1;
	}
}

bool hd_fi_addr_is_any(const union hd_fi_addr *addr)
{
	if (addr->sa.sa_family == AF_INET)
		return !addr->in.sin_port && addr->in.sin_addr.s_addr == htonl(INADDR_ANY);
	return !addr->in6.sin6_port && IN6_IS_ADDR_UNSPECIFIED(&addr->in6.sin6_addr);
}

bool hd_fi_addr_is_whole(const union hd_fi_addr *addr)
{
	return addr->in.sin_port &&
	       !hd_sockaddr_is_any(&addr->sa); /* the port of IPv6 stands at the same place */
}

bool hd_fi_addr_is_local(const union hd_fi_addr *addr)
{
	union hd_fi_addr probe = *addr;
	bool local;
	int fd = hd_socket(addr->sa.sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return false;
	if (probe.sa.sa_family == AF_INET)
		probe.in.sin_port = 0;
	else
		probe.in6.sin6_port = 0;
	local = bind(fd, &probe.sa, hd_sockaddr_size(&probe.sa)) == 0;
	close(fd);
	return local;
}

int hd_fi_addr_copy(const void *from, size_t size, int family, union hd_fi_addr *out)
{
	sa_family_t given;

	if (size < sizeof(given))
		return hd_fi_no(FI_EINVAL, "an address of fewer bytes than its family needs");
	memcpy(&given, from, sizeof(given));
	if (family != AF_UNSPEC && given != family)
		return hd_fi_no(FI_EINVAL, "an address of another family than the addr_format asked for");
	memset(out, 0, sizeof(*out));
	out->sa.sa_family = given;
	if (!hd_sockaddr_size(&out->sa) || size < hd_sockaddr_size(&out->sa))
		return hd_fi_no(FI_EINVAL, "an address that is neither IPv4 nor IPv6, or has too few bytes");
	memcpy(out, from, hd_sockaddr_size(&out->sa));
	return 0;
}

/* ---- names ----------------------------------------------------------------------------------- */

/*
 * The parts of fi_sockaddr_in6://[host]:port/field?key=value; host and service point
 * into text, which is cut up.
 */
struct str_addr {
	int family;
	char *host, *service;
	char text[512];
};

static int uri_family(const char *format, size_t len)
{
	static const struct {
		const char *name;
		int family;
	} formats[] = { { "fi_sockaddr", AF_UNSPEC },
			{ "fi_sockaddr_in", AF_INET },
			{ "fi_sockaddr_in6", AF_INET6 } };

	for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++)
		if (strlen(formats[i].name) == len && !strncasecmp(format, formats[i].name, len))
			return formats[i].family;
	return -1;
}

static int str_addr_parse(const char *node, struct str_addr *out)
{
	const char *rest = strstr(node, "://");
	char *end;

	out->family = uri_family(node, (size_t)(rest - node));
	if (out->family < 0 || strlen(rest + 3) >= sizeof(out->text))
		return hd_fi_no(FI_EINVAL,
				"an address in words that begins with a scheme there is not, or is too long");
	memcpy(out->text, rest + 3, strlen(rest + 3) + 1);
	out->text[strcspn(out->text, "/?")] = '\0';
	out->host = out->text;
	if (out->text[0] == '[') {
		out->host++;
		end = strchr(out->host, ']');
		if (!end)
			return hd_fi_no(FI_EINVAL, "an address in words whose bracket is not closed");
		*end++ = '\0';
	} else {
		end = out->text + strcspn(out->text, ":");
	}
	out->service = *end == ':' ? end + 1 : NULL;
	*end = '\0';
	return 0;
}

/* IPv4 first: it is what a name means to most programs of this field. */
static const struct addrinfo *addr_pick(const struct addrinfo *list, int family)
{
	const struct addrinfo *found = NULL;

	for (const struct addrinfo *ai = list; ai; ai = ai->ai_next) {
		if (ai->ai_family != AF_INET && ai->ai_family != AF_INET6)
			continue;
		if (family != AF_UNSPEC ? ai->ai_family == family : ai->ai_family == AF_INET)
			return ai;
		if (family == AF_UNSPEC && !found)
			found = ai;
	}
	return found;
}

static int lookup(const struct hd_fi_lookup *what, union hd_fi_addr *out)
{
	const struct addrinfo hints = { .ai_family = what->family,
					.ai_socktype = SOCK_STREAM,
					.ai_flags = (what->passive ? AI_PASSIVE : 0) |
						    (what->numeric ? AI_NUMERICHOST : 0) };
	const struct addrinfo *best;
	struct addrinfo *list;
	int rc = getaddrinfo(what->node, what->service, &hints, &list);

	if (rc) {
		hd_info("no address for node %s, service %s: %s: `getent ahosts` asks the same",
			what->node ? what->node : "(none)", what->service ? what->service : "(none)",
			rc == EAI_SYSTEM ? strerror(errno) : gai_strerror(rc));
		return rc == EAI_MEMORY ? hd_fi_no(FI_ENOMEM) : -FI_ENODATA;
	}
	best = addr_pick(list, what->family);
	rc = best ? hd_fi_addr_copy(best->ai_addr, best->ai_addrlen, what->family, out) : -FI_ENODATA;
	freeaddrinfo(list);
	return rc;
}

int hd_fi_resolve(const struct hd_fi_lookup *what, union hd_fi_addr *out)
{
	struct hd_fi_lookup parts = *what;
	struct str_addr uri;
	int rc;

	if (!what->node && !what->service)
		return hd_fi_no(FI_EINVAL, "a name to be looked up with neither node nor service");
	if (!what->node || !strstr(what->node, "://"))
		return lookup(what, out);
	if (what->service)
		return hd_fi_no(FI_EINVAL,
				"a service beside a node that is an address in words: its port is within it");
	rc = str_addr_parse(what->node, &uri);
	if (rc)
		return rc;
	if (what->family != AF_UNSPEC && uri.family != AF_UNSPEC && what->family != uri.family)
		return hd_fi_no(FI_ENODATA,
				"an address in words of another family than the addr_format asked for");
	if (uri.family != AF_UNSPEC)
		parts.family = uri.family;
	parts.node = *uri.host ? uri.host : NULL;
	parts.service = uri.service && *uri.service ? uri.service : NULL;
	return parts.node || parts.service
		       ? lookup(&parts, out)
		       : hd_fi_no(FI_EINVAL, "an address in words with neither host nor port");
}

/* ---- text and copies ------------------------------------------------------------------------- */

size_t hd_fi_addr_text(const void *addr, char *text, size_t size)
{
	char host[INET6_ADDRSTRLEN];
	union hd_fi_addr a;
	int n;

	memcpy(&a.sa.sa_family, addr, sizeof(a.sa.sa_family));
	if (a.sa.sa_family == AF_INET) {
		memcpy(&a.in, addr, sizeof(a.in));
		inet_ntop(AF_INET, &a.in.sin_addr, host, sizeof(host));
		n = snprintf(text, size, "fi_sockaddr_in://%s:%u", host, ntohs(a.in.sin_port));
	} else if (a.sa.sa_family == AF_INET6) {
		memcpy(&a.in6, addr, sizeof(a.in6));
		inet_ntop(AF_INET6, &a.in6.sin6_addr, host, sizeof(host));
		n = snprintf(text, size, "fi_sockaddr_in6://[%s]:%u", host, ntohs(a.in6.sin6_port));
	} else {
		n = snprintf(text, size, "fi_sockaddr://(address family %u)", a.sa.sa_family);
	}
	return (size_t)n + 1;
}

int hd_fi_addr_out(const struct sockaddr *sa, void *out, size_t *size)
{
	size_t need = hd_sockaddr_size(sa), room = *size;

	*size = need;
	if (out)
		memcpy(out, sa, room < need ? room : need);
	return out && room >= need ? 0 : -FI_ETOOSMALL;
}
