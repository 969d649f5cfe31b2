/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Which cases are for endpoints of which type. Reliable ones: all but the exceptions. Datagrams:
 * those that need neither an answer nor a message that waits for its receive, and the cases that
 * choose their type themselves.
 */
#include "connect.h"

#include <string.h>

static const struct {
	enum fi_ep_type type;
	const char *row, *name; /* name NULL: the whole row */
	const char *why;
} exceptions[] = {
	{ FI_EP_MSG, "M5", "directed", "a connected endpoint has one source" },
	{ FI_EP_MSG, "M5", "directed-ignored", "three ranks: see M5 conn-addresses-ignored" },
	{ FI_EP_MSG, "M5", "directed-refused", "addresses are not looked at" },
	{ FI_EP_MSG, "M6", "inject-size-less", "the called endpoint's info is that of its request" },
	{ FI_EP_MSG, "M6", "inject-to-nobody", "it is not connected to nobody" },
	{ FI_EP_MSG, "M6", "inject-to-nobody-tagged", "it is not connected to nobody" },
	{ FI_EP_MSG, "M9", "errors-sent", "it is not connected to nobody" },
	{ FI_EP_MSG, "M22", "every-call-nowhere", "addresses are not looked at" },
	{ FI_EP_MSG, "M22", "destinations-map",
	  "addresses are not looked at: see M5 conn-addresses-ignored" },
	{ FI_EP_MSG, "M22", "destinations-table", "addresses are not looked at" },
	{ FI_EP_MSG, "M22", "destination-removed", "it has no AV" },
	{ FI_EP_MSG, "T5", "peek-source", "FI_SOURCE is for connectionless endpoints" },
	{ FI_EP_MSG, "AV", NULL, "it has no AV" },
	{ FI_EP_MSG, "EQ", "insertions", "it has no AV" },
	{ FI_EP_MSG, "CNTR", "several-endpoints", "it meets two endpoints" },
	{ FI_EP_MSG, "CQ", "source-map", "FI_SOURCE is for connectionless endpoints" },
	{ FI_EP_MSG, "CQ", "source-table", "FI_SOURCE is for connectionless endpoints" },
	{ FI_EP_MSG, "CQ", "source-unknown", "FI_SOURCE is for connectionless endpoints" },
	{ FI_EP_MSG, "CQ", "source-err", "FI_SOURCE is for connectionless endpoints" },
	{ FI_EP_MSG, "EP", "close-busy", "it has no AV: see CM busy" },
	{ FI_EP_MSG, "EP", "enable-without", "it needs an event queue, and no AV: see CM enable-without" },
	{ FI_EP_MSG, "EP", "open-close", "one rank alone: see CM thousand" },
	{ FI_EP_MSG, "EP", "named-early", "it has no AV" },
	{ FI_EP_MSG, "EP", "siblings", "siblings send to each other" },
	{ FI_EP_MSG, "EP", "self", "it is not connected to itself" },
	{ FI_EP_MSG, "EP", "close-outstanding", "it meets many endpoints: see CM close-outstanding" },
	{ FI_EP_MSG, "FAULT", "killed-small", "three ranks: see CM killed" },
	{ FI_EP_MSG, "FAULT", "killed-large", "three ranks: see CM killed" },
	{ FI_EP_MSG, "FAULT", "killed-sending-0", "three ranks: see CM killed" },
	{ FI_EP_MSG, "FAULT", "killed-sending-1", "three ranks" },
	{ FI_EP_MSG, "FAULT", "killed-sending-3", "three ranks" },
	{ FI_EP_MSG, "FAULT", "killed-sending-8", "three ranks" },
	{ FI_EP_MSG, "FAULT", "fork-new-stack", "the child's endpoint has nobody to connect to" },
	{ FI_EP_MSG, "FAULT", "no-descriptors", "it needs an event queue" },
	{ FI_EP_MSG, "FAULT", "no-descriptors-for-a-peer", "three ranks" },
	{ FI_EP_MSG, "M6", "inject-error", "three ranks" },
	{ FI_EP_MSG, "M14", "fence-one-peer", "three ranks" },
	{ FI_EP_MSG, "M23", "collect-errors-sent", "the call itself says that there is no connection" },
	{ FI_EP_MSG, "M25", "two-fences-for-each-of-two", "three ranks" },
	{ FI_EP_MSG, "SOAK", "four", "four ranks" },
	{ FI_EP_MSG, "POLL", "small-array", "it sends to itself" },
	{ FI_EP_MSG, "POLL", "refused", "it closes one by one what the harness has opened" },
	{ FI_EP_MSG, "WAIT", "set-unspec", "its ranks have different numbers of endpoints" },
	{ FI_EP_MSG, "WAIT", "set-fd", "its ranks have different numbers of endpoints" },
	{ FI_EP_MSG, "WAIT", "set-yield", "its ranks have different numbers of endpoints" },
	{ FI_EP_MSG, "WAIT", "set-descriptor", "its ranks have different numbers of endpoints" },
	{ FI_EP_MSG, "WAIT", "set-descriptors", "its ranks have different numbers of endpoints" },
	{ FI_EP_MSG, "RMA", "rma-counters-of-both-sides",
	  "it closes one by one what the harness has opened" },
	{ FI_EP_MSG, "RMA", "rma-counters-without-rma-event",
	  "it closes one by one what the harness has opened" },
	{ FI_EP_MSG, "RMA", "rma-counters-bound-late", "it closes one by one what the harness has opened" },
	{ FI_EP_MSG, "EP", "no-receive-queue", "it sends to itself" },
	{ FI_EP_MSG, "ATOMIC", "atomic-own-memory", "it is not connected to itself" },
	{ FI_EP_MSG, "ATOMIC", "atomic-a-word-of-three", "three ranks" },
	{ FI_EP_MSG, "WAIT", "set-events", "it sends to itself" },
	{ FI_EP_MSG, "RMA", "rma-bad-arguments", "addresses are not looked at" },
	{ FI_EP_MSG, "RMA", "rma-all-to-all", "more than two ranks" },
	{ FI_EP_MSG, "SRX", NULL, "its endpoints share an AV: see CM shared-receives" },
	{ FI_EP_MSG, "SEP", NULL, "a scalable endpoint is not connected" },
	{ FI_EP_MSG, "M20", "auth-scalable", "a scalable endpoint is not connected" },
	{ FI_EP_MSG, "M20", "auth-scalable-source", "a scalable endpoint is not connected" },
	{ FI_EP_MSG, "M20", "auth-scalable-early", "a scalable endpoint is not connected" },
	{ FI_EP_MSG, "SAV", "message", "it has no AV" },
	{ FI_EP_MSG, "MISUSE", "remove-in-use", "it has no AV" },
	{ FI_EP_MSG, "M5", "directed-calls", "directed receives are for connectionless endpoints" },
	{ FI_EP_MSG, "M5", "directed-calls-late", "directed receives are for connectionless endpoints" },
	{ FI_EP_MSG, "M5", "directed-in-order", "directed receives are for connectionless endpoints" },
	{ FI_EP_MSG, "M5", "directed-multi-recv", "directed receives are for connectionless endpoints" },
	{ FI_EP_MSG, "M10", "more-flushed", "it has one peer" },
	{ FI_EP_MSG, "M20", "auth-buffered", "it has no sources to tell apart by keys" },
	{ FI_EP_MSG, "M20", "auth-buffered-peek", "it has no sources to tell apart by keys" },
	{ FI_EP_MSG, "M20", "auth-buffered-refused", "it has no sources to tell apart by keys" },
	{ FI_EP_MSG, "M20", "auth-buffered-tagged", "it has no sources to tell apart by keys" },
	{ FI_EP_MSG, "M20", "auth-groups", "it has no sources to tell apart by keys" },
	{ FI_EP_MSG, "M20", "auth-groups-without", "it has no sources to tell apart by keys" },
	{ FI_EP_MSG, "M20", "auth-one-key", "it has no sources to tell apart by keys" },
	{ FI_EP_MSG, "M20", "auth-scalable-buffered", "it has no sources to tell apart by keys" },
	{ FI_EP_MSG, "M20", "auth-shared-av", "it has no sources to tell apart by keys" },
	{ FI_EP_MSG, "M20", "auth-shared-context", "it has no sources to tell apart by keys" },
	{ FI_EP_MSG, "M20", "auth-shared-context-buffered", "it has no sources to tell apart by keys" },
	{ FI_EP_MSG, "M20", "auth-stranger", "it has no sources to tell apart by keys" },
	{ FI_EP_MSG, "M20", "auth-trigger", "it has no sources to tell apart by keys" },
	{ FI_EP_MSG, "M20", "auth-trigger-tagged", "it has no sources to tell apart by keys" },
	{ FI_EP_MSG, "M20", "auth-trigger-work", "it has no sources to tell apart by keys" },
	{ FI_EP_MSG, "M20", "auth-variable", "it has no sources to tell apart by keys" },
	{ FI_EP_MSG, "M20", "auth-variable-tagged", "it has no sources to tell apart by keys" },
	{ FI_EP_DGRAM, "M22", "null-empty", "its ranks do not wait for each other" },
	{ FI_EP_DGRAM, "INFO", "at-least", "it asks for more than a datagram" },
	{ FI_EP_DGRAM, "SRX", "share", "what no receive waits for is dropped" },
	{ FI_EP_DGRAM, "SRX", "share-long", "longer than a datagram" },
	{ FI_EP_DGRAM, "SRX", "thousand", "what comes too fast is dropped" },
	{ FI_EP_DGRAM, "SRX", "peek", "what no receive waits for is dropped" },
	{ FI_EP_DGRAM, "SEP", "receive-long", "longer than a datagram" },
	{ FI_EP_DGRAM, "SEP", "early", "what no receive waits for is dropped" },
	{ FI_EP_DGRAM, "SEP", "nobody", "nobody answers a datagram" },
	{ FI_EP_DGRAM, "SRX", "srx-buffered", "datagrams have no buffered receives" },
	{ FI_EP_DGRAM, "SRX", "srx-buffered-tagged", "datagrams have no buffered receives" },
	{ FI_EP_DGRAM, "SRX", "srx-variable", "longer than a datagram" },
	{ FI_EP_DGRAM, "SRX", "srx-variable-tagged", "longer than a datagram" },
	{ FI_EP_DGRAM, "SEP", "sep-buffered", "datagrams have no buffered receives" },
	{ FI_EP_DGRAM, "SEP", "sep-buffered-tagged", "datagrams have no buffered receives" },
	{ FI_EP_DGRAM, "SEP", "sep-buffered-early", "datagrams have no buffered receives" },
	{ FI_EP_DGRAM, "SEP", "sep-buffered-early-tagged", "datagrams have no buffered receives" },
	{ FI_EP_DGRAM, "SEP", "sep-variable", "longer than a datagram" },
	{ FI_EP_DGRAM, "SEP", "sep-variable-tagged", "longer than a datagram" },
	{ FI_EP_DGRAM, "SEP", "sep-one-sided", "datagrams have no one-sided operations" },
};

static const struct {
	const char *row, *name; /* as above */
} for_datagrams[] = {
	{ "M1", NULL },
	{ "T1", NULL },
	{ "M2", "over-max" },
	{ "M3", NULL },
	{ "M5", "directed-calls" },
	{ "M5", "directed-in-order" },
	{ "M5", "directed-multi-recv" },
	{ "M5", "directed-refused" },
	{ "M6", "inject-over" },
	{ "M6", "inject-never-told" },
	{ "M6", "inject-size-less" },
	{ "M8", "cq-data-multi-recv" },
	{ "M9", "selective-calls" },
	{ "M22", NULL },
	{ "M15", NULL },
	{ "T10", "cancel" },
	{ "M19", NULL },
	{ "AV", NULL },
	{ "INFO", NULL },
	{ "FAULT", "last-words" },
	{ "FAULT", "last-words-at-once" },
	{ "FAULT", "last-words-counted" },
	{ "FAULT", "last-words-counted-at-once" },
	{ "SRX", NULL },
	{ "SEP", NULL },
	{ "M21", "full-queue-overrun" },
	{ "M21", "full-queue-again" },
};

static bool is_for_datagrams(const struct ct_case *cs)
{
	size_t i;

	if (!strncmp(cs->name, "dgram-", 6))
		return true;
	for (i = 0; i < CT_COUNT(for_datagrams); i++)
		if (!strcmp(for_datagrams[i].row, cs->row) &&
		    (!for_datagrams[i].name || !strcmp(for_datagrams[i].name, cs->name)))
			return true;
	return false;
}

const char *ct_not_for(enum fi_ep_type type, const struct ct_case *cs)
{
	size_t i;

	if (type == FI_EP_DGRAM && !is_for_datagrams(cs))
		return "what no receive waits for is dropped, and nobody answers";
	for (i = 0; i < CT_COUNT(exceptions); i++)
		if (exceptions[i].row && exceptions[i].type == type && !strcmp(exceptions[i].row, cs->row) &&
		    (!exceptions[i].name || !strcmp(exceptions[i].name, cs->name)))
			return exceptions[i].why;
	return NULL;
}
