/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Who has called, and is nobody's link yet: he may have said nothing at all, and holds a descriptor. There are so many of them at most; then the
 * one that waits longest of the address and user that has most is closed, so that who calls many times shuts out only himself.
 * Addresses stand in rows by a hash that nobody else knows.
 */
#include "base/files.h"
#include "base/siphash.h"
#include "transport/tcp/tcp.h"

#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/random.h>

#define SHARE 4u /* part of the descriptors that they may have */
#define LEAST 16u
#define MOST 1024u

void hd_tcp_callers_open(struct hd_tcp_callers *callers)
{
	uint64_t max = hd_files_max() / SHARE;

	callers->max = max < MOST ? (unsigned)max : MOST;
	if (callers->max < LEAST)
		callers->max = LEAST;
	if (getrandom(callers->secret, sizeof(callers->secret), 0) != sizeof(callers->secret))
		memset(callers->secret, 0,
		       sizeof(callers->secret)); /* rows that can be chosen are rows all the same */
	for (unsigned i = 0; i < HD_TCP_CALLER_ROWS; i++)
		TAILQ_INIT(&callers->row[i].links);
}

static void address_of(const struct sockaddr_storage *sa, uint8_t addr[16])
{
	if (sa->ss_family == AF_INET)
		memcpy(addr, &((const struct sockaddr_in *)sa)->sin_addr, sizeof(struct in_addr));
	else
		memcpy(addr, &((const struct sockaddr_in6 *)sa)->sin6_addr, 16);
}

static struct hd_tcp_caller_row *row_of(struct hd_tcp_callers *callers, struct hd_tcp_link *l)
{
	struct {
		uint64_t realm;
		uint8_t addr[16];
	} who = { .realm = hd_tcp_realm(&l->link) };

	if (!l->link.is_local)
		address_of(&l->link.where, who.addr);
	return &callers->row[hd_siphash(callers->secret, &who, sizeof(who)) % HD_TCP_CALLER_ROWS];
}

void hd_tcp_caller_leave(struct hd_tcp_link *l)
{
	if (!l->caller)
		return;
	TAILQ_REMOVE(&l->caller->links, l, caller_entry);
	l->caller->count--;
	tcp_port_of(l)->callers.count--;
	l->caller = NULL;
}

/* Those that have become a peer's meanwhile are no callers any more. */
static void callers_known(struct hd_tcp_callers *callers)
{
	struct hd_tcp_link *l, *next;

	for (unsigned i = 0; i < HD_TCP_CALLER_ROWS; i++)
		for (l = TAILQ_FIRST(&callers->row[i].links); l; l = next) {
			next = TAILQ_NEXT(l, caller_entry);
			if (hd_link_is_a_peers(&l->link))
				hd_tcp_caller_leave(l);
		}
}

static void oldest_of_most(struct hd_tcp_callers *callers)
{
	struct hd_tcp_caller_row *most = &callers->row[0];

	for (unsigned i = 1; i < HD_TCP_CALLER_ROWS; i++)
		if (callers->row[i].count > most->count)
			most = &callers->row[i];
	hd_tcp_link_down(TAILQ_FIRST(&most->links), -ECONNABORTED,
			 "too many have called and said nothing yet");
}

void hd_tcp_caller_add(struct hd_tcp_link *l)
{
	struct hd_tcp_callers *callers = &tcp_port_of(l)->callers;

	if (callers->count >= callers->max)
		callers_known(callers);
	if (callers->count >= callers->max)
		oldest_of_most(callers);
	l->caller = row_of(callers, l);
	TAILQ_INSERT_TAIL(&l->caller->links, l, caller_entry);
	l->caller->count++;
	callers->count++;
}
