/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* What a node has done, in a few lines of the log at its end. */
#include "engine/core/core.h"
#include "engine/node/process.h"

#include <inttypes.h>
#include <stdio.h>

/* "1.5 MB", as a person would say it. */
static const char *in_bytes(uint64_t n, char *text, size_t size)
{
	static const char *const units[] = { "B", "kB", "MB", "GB", "TB" };
	double shown = (double)n;
	int unit = 0;

	for (; shown >= 1000 && unit < 4; unit++)
		shown /= 1000;
	snprintf(text, size, unit ? "%.1f %s" : "%.0f %s", shown, units[unit]);
	return text;
}

/*
 * What goes from process to process is of long messages and of one-sided operations; what goes over
 * sockets is of packets, and stands beside them.
 */
static void say_port(struct hd_port *port, unsigned id)
{
	struct hd_port_past past = port->past;
	char sent[32], came[32], out[32], in[32];
	bool copies = !port->transport->addressed;

	hd_peers_past(port, &past);
	if (!past.traffic.out && !past.traffic.in && !past.calls_out && !past.calls_in)
		return;
	hd_info("node %08x, by %s: sent %" PRIu64 " messages and requests, %s in packets, %s in %" PRIu64
		" %s; took in %" PRIu64 ", %s in packets, %s in %" PRIu64 " %s",
		id, port->transport->name, past.traffic.out,
		in_bytes(past.traffic.bytes_out, sent, sizeof(sent)),
		in_bytes(past.bytes_out, out, sizeof(out)), past.calls_out, copies ? "copies" : "writes",
		past.traffic.in, in_bytes(past.traffic.bytes_in, came, sizeof(came)),
		in_bytes(past.bytes_in, in, sizeof(in)), past.calls_in, copies ? "copies" : "reads");
}

void hd_past_say(struct hd_node *node)
{
	const struct hd_core *core = hd_core(node);
	const uint64_t *n = core->counts;
	unsigned id;

	/* after fork a child has done nothing of it, and no page with a name */
	if (!hd_log_on(HD_LOG_INFO) || core->gate.dead || core->past_said || !n[HD_COUNT_LINKS])
		return;
	id = (unsigned)(hd_node_id(node)->word[0] >> 32); /* as heddle info has it */
	hd_core(node)->past_said = true;
	hd_info("%s, node %08x, ends: %" PRIu64 " links were made, %" PRIu64 " broke, %" PRIu64
		" left open by programs that ended; %" PRIu64 " calls were repeated",
		core->attr.front ? core->attr.front : "a program", id, n[HD_COUNT_LINKS], n[HD_COUNT_BROKEN],
		n[HD_COUNT_LEFT], n[HD_COUNT_CALLS_AGAIN]);
	for (int i = 0; i < core->port_count; i++)
		say_port(core->ports[i], id);
	hd_info("node %08x slept %" PRIu64 " times; was refused %" PRIu64
		" sends, and queue pairs waited %" PRIu64 " times, for want of credit; let %" PRIu64
		" requests wait for a receive",
		id, n[HD_COUNT_SLEEPS], n[HD_COUNT_REFUSED], n[HD_COUNT_STALLS], n[HD_COUNT_RNR]);
}
