/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Addresses: those of this host, those that endpoints listen on (HEDDLE_ADDR), and who
 * may come (HEDDLE_ALLOW).
 */
#include "base/advice.h"
#include "base/config.h"
#include "base/interfaces.h"
#include "base/log.h"
#include "base/sockaddr.h"
#include "engine/name/name.h"

#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };

/* ---- one address ----------------------------------------------------------------------------- */

/*
 * hd_addr_map: the address of a socket address, IPv4 as mapped IPv6; all zero for other families.
 */
void hd_addr_map(const struct sockaddr *sa, uint8_t out[16])
{
	memset(out, 0, 16);
	if (sa->sa_family == AF_INET) {
		memcpy(out, mapped, sizeof(mapped));
		memcpy(out + 12, &((const struct sockaddr_in *)sa)->sin_addr, 4);
	} else if (sa->sa_family == AF_INET6) {
		memcpy(out, &((const struct sockaddr_in6 *)sa)->sin6_addr, 16);
	}
}

static bool node_addr_is_mapped(const uint8_t addr[16])
{
	return !memcmp(addr, mapped, sizeof(mapped));
}

/* hd_addr_unmap: the other way round; port in host order. */
void hd_addr_unmap(const uint8_t addr[16], uint16_t port, struct sockaddr_storage *out)
{
	memset(out, 0, sizeof(*out));
	if (node_addr_is_mapped(addr)) {
		struct sockaddr_in *in = (struct sockaddr_in *)out;

		in->sin_family = AF_INET;
		in->sin_port = htons(port);
		memcpy(&in->sin_addr, addr + 12, 4);
	} else {
		struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)out;

		in6->sin6_family = AF_INET6;
		in6->sin6_port = htons(port);
		memcpy(&in6->sin6_addr, addr, 16);
	}
}

void hd_addr_of_key(const struct hd_name_key *key, struct sockaddr_storage *out)
{
	hd_addr_unmap(key->addr, (uint16_t)key->port, out);
	hd_sockaddr_set_scope((struct sockaddr *)out, key->scope);
}

static uint16_t addr_port_of(const struct sockaddr *sa)
{
	return ntohs(sa->sa_family == AF_INET ? ((const struct sockaddr_in *)sa)->sin_port
					      : ((const struct sockaddr_in6 *)sa)->sin6_port);
}

static bool addr_is_any(const uint8_t addr[16])
{
	static const uint8_t zero[4];

	return hd_addr_is_zero(addr) || (node_addr_is_mapped(addr) && !memcmp(addr + 12, zero, 4));
}

/*
 * How a slot is written: into sin_zero, which libraries clear and nobody reads, or into the flow
 * label, which a socket ignores that was not told otherwise. The check makes what a program has
 * left there by accident very unlikely to be taken for a slot.
 */
#define SLOT_MARK 0x4844u

static uint16_t slot_check(const struct sockaddr *sa, uint32_t slot)
{
	return (uint16_t)(slot ^ addr_port_of(sa) ^ SLOT_MARK);
}

void hd_name_set_slot(struct sockaddr *sa, uint32_t slot)
{
	uint16_t word[4] = { htons(SLOT_MARK), htons((uint16_t)slot), htons(slot_check(sa, slot)) };

	if (sa->sa_family == AF_INET6)
		((struct sockaddr_in6 *)sa)->sin6_flowinfo = slot ? htonl(slot << 16 | slot_check(sa, slot))
								  : 0;
	else if (slot)
		memcpy(((struct sockaddr_in *)sa)->sin_zero, word, sizeof(word));
	else
		memset(((struct sockaddr_in *)sa)->sin_zero, 0, sizeof(word));
}

uint32_t hd_name_slot(const struct sockaddr *sa)
{
	uint16_t word[4];
	uint32_t flow;

	if (sa->sa_family == AF_INET6) {
		flow = ntohl(((const struct sockaddr_in6 *)sa)->sin6_flowinfo);
		return (flow & 0xffff) == slot_check(sa, flow >> 16) ? flow >> 16 : 0;
	}
	memcpy(word, ((const struct sockaddr_in *)sa)->sin_zero, sizeof(word));
	if (ntohs(word[0]) != SLOT_MARK || ntohs(word[2]) != slot_check(sa, ntohs(word[1])) || word[3])
		return 0;
	return ntohs(word[1]);
}

/*
 * hd_addr_key: the key of a name; false when it cannot name an endpoint: another family, a
 * wildcard address, or no port.
 */
bool hd_addr_key(const struct sockaddr *sa, struct hd_name_key *key)
{
	memset(key, 0, sizeof(*key));
	if (sa->sa_family != AF_INET && sa->sa_family != AF_INET6)
		return false;
	hd_addr_map(sa, key->addr);
	key->port = addr_port_of(sa) | hd_name_slot(sa) << 16;
	key->scope = hd_sockaddr_scope(sa);
	return addr_port_of(sa) && !addr_is_any(key->addr);
}

const char *hd_addr_text(const struct sockaddr *sa, char *text, size_t size)
{
	char a[INET6_ADDRSTRLEN] = "?";

	if (sa->sa_family == AF_INET)
		inet_ntop(AF_INET, &((const struct sockaddr_in *)sa)->sin_addr, a, sizeof(a));
	else if (sa->sa_family == AF_INET6)
		inet_ntop(AF_INET6, &((const struct sockaddr_in6 *)sa)->sin6_addr, a, sizeof(a));
	else
		return strncpy(text, "an unnamed endpoint", size - 1);
	if (hd_name_slot(sa))
		snprintf(text, size, "%s port %u slot %u", a, addr_port_of(sa), hd_name_slot(sa));
	else
		snprintf(text, size, "%s port %u", a, addr_port_of(sa));
	return text;
}

void hd_addr_set_port(struct sockaddr_storage *sa, uint16_t port)
{
	if (sa->ss_family == AF_INET)
		((struct sockaddr_in *)sa)->sin_port = htons(port);
	else
		((struct sockaddr_in6 *)sa)->sin6_port = htons(port);
}

bool hd_addr_is_zero(const uint8_t addr[16])
{
	static const uint8_t zero[16];

	return !memcmp(addr, zero, sizeof(zero));
}

bool hd_addr_is_loopback(const uint8_t addr[16])
{
	static const uint8_t loop6[16] = { [15] = 1 };

	return node_addr_is_mapped(addr) ? addr[12] == 127 : !memcmp(addr, loop6, 16);
}

bool hd_addr_is_local(const struct hd_node *node, const struct hd_name_key *key)
{
	const struct hd_allow_rule *own = hd_names(node)->own;

	if (hd_addr_is_loopback(key->addr))
		return true;
	for (int i = 0; i < hd_names(node)->own_count; i++)
		if (!memcmp(own[i].addr, key->addr, 16) && own[i].scope == key->scope)
			return true;
	return false;
}

/* ---- who may come ---------------------------------------------------------------------------- */

static bool prefix_holds(const struct hd_allow_rule *rule, const uint8_t addr[16], uint32_t scope)
{
	int whole = rule->bits / 8, rest = rule->bits % 8;

	if (memcmp(rule->addr, addr, whole) || (rule->scope && rule->scope != scope))
		return false;
	return !rest || !((rule->addr[whole] ^ addr[whole]) >> (8 - rest));
}

bool hd_allowed(struct hd_node *node, const struct sockaddr *from)
{
	const struct hd_allow_rule *rules = hd_names(node)->allow_count ? hd_names(node)->allow
									: hd_names(node)->own;
	int count = hd_names(node)->allow_count ? hd_names(node)->allow_count : hd_names(node)->own_count;
	uint8_t addr[16];
	char text[80];

	hd_addr_map(from, addr);
	if (!hd_names(node)->allow_count && hd_addr_is_loopback(addr))
		return true;
	for (int i = 0; i < count; i++)
		if (prefix_holds(&rules[i], addr, hd_sockaddr_scope(from)))
			return true;
	HD_LOG_EVERY_MS(1000, HD_LOG_WARN, "%s is not allowed to come here: add its subnet to HEDDLE_ALLOW",
			hd_addr_text(from, text, sizeof(text)));
	return false;
}

static bool rule_parse(const char *word, struct hd_allow_rule *rule)
{
	char text[INET6_ADDRSTRLEN + sizeof("/128")], *slash, *end;
	struct in6_addr in6;
	struct in_addr in;
	long bits;
	int most;

	if (snprintf(text, sizeof(text), "%s", word) >= (int)sizeof(text))
		return false;
	slash = strchr(text, '/');
	if (slash)
		*slash++ = '\0';
	memset(rule, 0, sizeof(*rule));
	if (inet_pton(AF_INET, text, &in) == 1) {
		memcpy(rule->addr, mapped, 12);
		memcpy(rule->addr + 12, &in, 4);
		most = 32;
	} else if (inet_pton(AF_INET6, text, &in6) == 1) {
		memcpy(rule->addr, &in6, 16);
		most = 128;
	} else {
		return false;
	}
	bits = slash ? strtol(slash, &end, 10) : most;
	if (bits < 0 || bits > most || (slash && (end == slash || *end)))
		return false;
	rule->bits = (uint8_t)(bits + 128 - most);
	return true;
}

static int allow_init(struct hd_node *node)
{
	char *list = strdup(hd_config_str(HD_SET_ALLOW)), *word, *rest = list;

	if (!list)
		return -ENOMEM;
	while ((word = strsep(&rest, ", "))) {
		struct hd_allow_rule rule, *more;

		if (!*word)
			continue;
		if (!rule_parse(word, &rule)) {
			HD_LOG_EVERY_MS(1000, HD_LOG_ERROR,
					"HEDDLE_ALLOW: \"%s\" is no subnet such as 10.0.0.0/8 or fd00::/8",
					word);
			free(list);
			return -EINVAL;
		}
		more = realloc(hd_names(node)->allow, (hd_names(node)->allow_count + 1) * sizeof(*more));
		if (!more) {
			free(list);
			return -ENOMEM;
		}
		hd_names(node)->allow = more;
		hd_names(node)->allow[hd_names(node)->allow_count++] = rule;
	}
	free(list);
	return 0;
}

/* ---- our own addresses ----------------------------------------------------------------------- */

static uint8_t prefix_bits(const struct sockaddr *mask)
{
	int bits = 0;

	if (mask && mask->sa_family == AF_INET)
		return (uint8_t)(96 +
				 __builtin_popcount(((const struct sockaddr_in *)mask)->sin_addr.s_addr));
	if (mask && mask->sa_family == AF_INET6)
		for (int i = 0; i < 16; i++)
			bits += __builtin_popcount(((const struct sockaddr_in6 *)mask)->sin6_addr.s6_addr[i]);
	return mask ? (uint8_t)bits : 128;
}

static bool is_usable(const struct ifaddrs *i)
{
	return i->ifa_addr && i->ifa_flags & IFF_UP &&
	       (i->ifa_addr->sa_family == AF_INET || i->ifa_addr->sa_family == AF_INET6);
}

/* Is this interface address one of those that HEDDLE_ADDR names (by interface or by address)? */
static bool addr_wanted(const char *list, const struct ifaddrs *i)
{
	char copy[256], *word, *rest = copy, text[INET6_ADDRSTRLEN];
	const void *a = i->ifa_addr->sa_family == AF_INET
				? (const void *)&((struct sockaddr_in *)i->ifa_addr)->sin_addr
				: (const void *)&((struct sockaddr_in6 *)i->ifa_addr)->sin6_addr;

	if (!*list)
		return true;
	snprintf(copy, sizeof(copy), "%s", list);
	inet_ntop(i->ifa_addr->sa_family, a, text, sizeof(text));
	while ((word = strsep(&rest, ", ")))
		if (!strcmp(word, i->ifa_name) || !strcmp(word, text))
			return true;
	return false;
}

/* Appends to *why what is wrong with a word of HEDDLE_ADDR that chooses nothing. */
static void explain_word(const char *word, char *why, size_t size)
{
	size_t used = strlen(why);
	struct in6_addr a;
	const char *what = inet_pton(AF_INET, word, &a) == 1 || inet_pton(AF_INET6, word, &a) == 1
				   ? "this host has no address"
			   : if_nametoindex(word) ? "no address is up on the interface"
						  : "there is no interface";

	snprintf(why + used, size - used, "%s%s %s", used ? ", " : "", what, word);
}

static bool addr_judged;

void hd_addr_is_judged(void)
{
	addr_judged = true;
}

/* Says which words of HEDDLE_ADDR choose nothing. */
static void check_wanted(const char *list, const struct ifaddrs *all)
{
	char copy[256], *word, *rest = copy, why[256] = "";

	if (addr_judged)
		return;
	snprintf(copy, sizeof(copy), "%s", list);
	while ((word = strsep(&rest, ", "))) {
		const struct ifaddrs *i = all;

		while (i && !(is_usable(i) && addr_wanted(word, i)))
			i = i->ifa_next;
		if (*word && !i)
			explain_word(word, why, sizeof(why));
	}
	if (*why)
		HD_LOG_EVERY_MS(60000, HD_LOG_WARN,
				"HEDDLE_ADDR=\"%s\": %s: `ip address` lists what there is", list, why);
}

/* hd_interfaces; keeps errno. */
static int list_interfaces(struct ifaddrs **all)
{
	if (!hd_interfaces(all))
		return 0;
	HD_LOG_EVERY_MS(1000, HD_LOG_ERROR,
			"the addresses of this host cannot be read (getifaddrs, over a netlink socket): %m%s",
			hd_advice(errno));
	return -1;
}

#define RANKS 4
#define RANK_OF_LINK RANKS

/*
 * Best first: IPv4, then IPv6; loopback behind both. Addresses of a link name nothing beyond it:
 * other nodes are not told of them.
 */
static int rank(const struct sockaddr *sa)
{
	uint8_t a[16];

	hd_addr_map(sa, a);
	if (hd_sockaddr_is_of_link(sa))
		return RANK_OF_LINK;
	return (hd_addr_is_loopback(a) ? 2 : 0) + (sa->sa_family == AF_INET6);
}

static int own_add(struct hd_node *node, const struct ifaddrs *i)
{
	struct hd_allow_rule *more =
		realloc(hd_names(node)->own, (hd_names(node)->own_count + 1) * sizeof(*more));

	if (!more)
		return -ENOMEM;
	hd_names(node)->own = more;
	more += hd_names(node)->own_count++;
	hd_addr_map(i->ifa_addr, more->addr);
	more->scope = hd_sockaddr_scope(i->ifa_addr);
	/* whoever is on a link has an address of it: of those this host's alone may come */
	more->bits = more->scope ? 128 : prefix_bits(i->ifa_netmask);
	return 0;
}

static bool is_of_rank(const struct ifaddrs *i, int r)
{
	return is_usable(i) && rank(i->ifa_addr) == r;
}

static void own_address_fill(struct hd_own_address *to, const struct ifaddrs *i)
{
	bool ip4 = i->ifa_addr->sa_family == AF_INET;

	memset(to, 0, sizeof(*to));
	memcpy(&to->addr, i->ifa_addr, hd_sockaddr_size(i->ifa_addr));
	to->bits = prefix_bits(i->ifa_netmask) - (ip4 ? 96 : 0);
	to->ifindex = if_nametoindex(i->ifa_name);
	to->is_loopback = i->ifa_flags & IFF_LOOPBACK;
	snprintf(to->interface, sizeof(to->interface), "%s", i->ifa_name);
}

int hd_own_addresses(struct hd_own_address *out, int max)
{
	struct ifaddrs *all, *i;
	const char *list;
	int n = 0;

	hd_config_load();
	list = hd_config_str(HD_SET_ADDR);
	if (list_interfaces(&all))
		return -errno;
	for (int r = 0; r <= (*list ? RANKS - 1 : RANK_OF_LINK); r++)
		for (i = all; i; i = i->ifa_next)
			if (n < max && is_of_rank(i, r) && addr_wanted(list, i))
				own_address_fill(&out[n++], i);
	check_wanted(list, all);
	hd_interfaces_free(all);
	return n;
}

int hd_addr_init(struct hd_node *node)
{
	const char *list = hd_config_str(HD_SET_ADDR);
	struct ifaddrs *all, *i;
	int rc = allow_init(node);

	if (rc)
		return rc;
	if (list_interfaces(&all))
		return -errno;
	for (int r = 0; r <= RANK_OF_LINK && !rc; r++)
		for (i = all; i && !rc; i = i->ifa_next) {
			if (!is_of_rank(i, r))
				continue;
			rc = own_add(node, i);
			if (r < RANKS && addr_wanted(list, i) && hd_names(node)->addr_count < HD_HELLO_ADDRS)
				memcpy(&hd_names(node)->addrs[hd_names(node)->addr_count++], i->ifa_addr,
				       hd_sockaddr_size(i->ifa_addr));
		}
	check_wanted(list, all);
	hd_interfaces_free(all);
	if (!rc && !hd_names(node)->addr_count) {
		HD_LOG_EVERY_MS(
			1000, HD_LOG_ERROR,
			*list ? "HEDDLE_ADDR=\"%s\" names no address of this host that is up: see `ip address`"
			      : "this host has no address that is up%s: bring an interface up, `ip link set lo up` will do",
			list);
		return -EADDRNOTAVAIL;
	}
	return rc;
}

void hd_addr_fini(struct hd_node *node)
{
	free(hd_names(node)->own);
	free(hd_names(node)->allow);
}

bool hd_node_address(const struct hd_node *node, int i, struct sockaddr_storage *out)
{
	if (i < 0 || i >= hd_names(node)->addr_count)
		return false;
	*out = hd_names(node)->addrs[i];
	return true;
}
