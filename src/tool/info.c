/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
#include "tool/tool.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/advice.h"
#include "base/config.h"
#include "base/rsocket_files.h"
#include "engine/wire.h"
#include "tool/fronts.h"
#include "tool/host.h"
#include "tool/json.h"
#include "tool/nodes.h"

static void info_print_help(void)
{
	puts("Usage: heddle info [OPTION...]\n"
	     "\n"
	     "Shows where Heddle is installed, the addresses that endpoints would listen on, the transports,\n"
	     "every setting with its value, default and meaning, and each live link of running programs: its\n"
	     "transport, and whether direct copies work out (to the peer) and in (from it), or why not.\n"
	     "\n"
	     "Links are shown for the programs whose descriptors you may read: your own, or all for root.\n"
	     "\n"
	     "With --links: those links alone, and what each endpoint, queue pair and peer of these programs is\n"
	     "doing and waits for, read from outside, so that a program that hangs shows why.\n"
	     "\n"
	     "  -l, --links  print links, endpoints and queue pairs alone, and what they wait for\n"
	     "  -j, --json   print JSON instead of tables\n"
	     "  -h, --help   print this text");
}

static const struct option options[] = {
	{ "json", no_argument, NULL, 'j' },
	{ "links", no_argument, NULL, 'l' },
	{ "help", no_argument, NULL, 'h' },
	{ 0 },
};

/* ---- tables ---- */

static void print_fronts(void)
{
	puts("Heddle " HD_VERSION "\n\nInterfaces");
	for (size_t i = 0; hd_front_at(i); i++) {
		const struct hd_front *front = hd_front_at(i);
		char folder[2 * PATH_MAX + 64];
		int rc = hd_front_find(front, folder, sizeof(folder));

		printf("  %-10s  %s%s%s\n", front->name, rc ? "not found; looked in " : folder, rc ? "" : "/",
		       rc ? folder : front->file);
	}
}

/*
 * The devices that the verbs front has, which knows what they are like; nothing
 * where it is not installed.
 */
static void each_device(void (*show)(const char *name, const char *what, void *arg), void *arg)
{
	char name[16], what[120];

	for (int i = 0; hd_front_device(i, name, what, sizeof(what)); i++)
		show(name, what, arg);
}

static void print_device(const char *name, const char *what, void *arg)
{
	printf("  %-10s  %s\n", name, what);
}

/*
 * The interface adapters that libdat2 finds by the file that comes with the front: none
 * where that was not built.
 */
static void print_adapters(void)
{
	bool any = false;

	for (size_t i = 0; hd_front_at(i); i++) {
		const struct hd_front *front = hd_front_at(i);
		char folder[2 * PATH_MAX + 64];

		if (!front->adapter || hd_front_find(front, folder, sizeof(folder)))
			continue;
		if (!any)
			puts("\nInterface adapters for uDAPL programs");
		any = true;
		printf("  %-10s  for DAT_OVERRIDE: %s/dat.conf\n", front->adapter, folder);
	}
}

static void print_addresses(const struct hd_host *host)
{
	puts("\nAddresses that endpoints listen on, best first");
	if (host->error)
		printf("  none, no program can use Heddle here: %s%s\n", strerror(host->error),
		       hd_advice(host->error));
	for (unsigned i = 0; i < host->address_count; i++)
		printf("  %-40s  %s\n", host->addresses[i].text, host->addresses[i].interface);
}

static void print_transports(const struct hd_host *host)
{
	puts("\nTransports");
	for (unsigned i = 0; i < HD_HOST_TRANSPORTS; i++)
		printf("  %-4s  %-3s  %s\n", host->transports[i].name,
		       host->transports[i].used ? "on" : "off", host->transports[i].note);
}

static const char *or_empty(const char *text)
{
	return *text ? text : "(empty)";
}

/* What of a setting takes effect, where that is less than it says; else NULL. */
static const char *setting_cap(unsigned i)
{
	static_assert(HD_WINDOW_FIRST / 4 == 64 << 10, "this is what is told");
	const bool is_eager = i == HD_SET_EAGER_SHM || i == HD_SET_EAGER_TCP;

	return is_eager && hd_config_size(i) > HD_WINDOW_FIRST / 4 ? "64K" : NULL;
}

static void print_settings(void)
{
	puts("\nSettings: value, [default]");
	for (unsigned i = 0; hd_setting_at(i); i++) {
		const struct hd_setting_info *info = hd_setting_at(i);
		const char *source = hd_config_source(i);
		char help[160];

		hd_setting_help(i, help, sizeof(help));
		printf("  %-24s %s [%s]%s%s%s%s\n", info->env, or_empty(hd_config_str(i)),
		       or_empty(info->fallback), source ? " from " : "", source ? source : "",
		       setting_cap(i) ? "; in force: " : "", setting_cap(i) ? setting_cap(i) : "");
		printf("      %s Takes %s.\n", info->meaning, help);
	}
}

static void rsocket_value(int value, char *text, size_t size)
{
	snprintf(text, size, value < 0 ? "(none)" : "%d", value);
}

/* What rsockets have that nobody has set. */
static void print_rsocket_files(void)
{
	puts("\nRsockets, of files in " HD_RSOCKET_FOLDER ": value, [default]");
	for (unsigned i = 0; hd_rsocket_file_at(i); i++) {
		const struct hd_rsocket_file_info *info = hd_rsocket_file_at(i);
		char value[16], fallback[16], help[96];
		bool found;

		rsocket_value(hd_rsocket_file_read(i, &found), value, sizeof(value));
		rsocket_value(info->fallback, fallback, sizeof(fallback));
		hd_rsocket_file_help(i, help, sizeof(help));
		printf("  %-24s %s [%s]%s%s\n", info->file, value, fallback,
		       found ? " from " HD_RSOCKET_FOLDER : "", found ? info->file : "");
		printf("      %s Takes %s.\n", info->meaning, help);
	}
}

static void direct_text(const char *word, const char *reason, char *text, size_t size)
{
	snprintf(text, size, "%s%s%s", word, *reason ? ": " : "", reason);
}

static void print_link(const struct hd_seen_node *node, const struct hd_seen_link *link)
{
	char peer[100], out[96], in[96];

	if (link->peer_pid)
		snprintf(peer, sizeof(peer), "pid %d, %s", (int)link->peer_pid, link->peer);
	else
		snprintf(peer, sizeof(peer), "%s", link->peer);
	direct_text(link->direct_out, link->out_reason, out, sizeof(out));
	direct_text(link->direct_in, link->in_reason, in, sizeof(in));
	printf("  %7d  %-16s %-10s %-9s %-34s %-18s %s\n", (int)node->pid, node->program, node->front,
	       link->transport, peer, out, in);
}

static void print_nodes(const struct hd_seen_nodes *nodes)
{
	const struct hd_seen_node *node;

	printf("\nLinks of running programs%s\n", getuid() ? " (yours: root sees all)" : "");
	if (STAILQ_EMPTY(nodes)) {
		puts("  no program uses Heddle");
		return;
	}
	printf("  %7s  %-16s %-10s %-9s %-34s %-18s %s\n", "PID", "PROGRAM", "INTERFACE", "TRANSPORT", "PEER",
	       "COPIES OUT", "COPIES IN");
	STAILQ_FOREACH(node, nodes, entry) {
		for (unsigned i = 0; i < node->link_count; i++)
			print_link(node, &node->links[i]);
		if (!node->link_count)
			printf("  %7d  %-16s %-10s no links\n", (int)node->pid, node->program, node->front);
	}
}

/*
 * What keeps that program from taking in what is sent to it; NULL: nothing
 * that can be seen from here.
 */
static const char *why_not_taken(const struct hd_seen_node *node)
{
	const char *why = NULL;

	for (unsigned i = 0; i < node->ep_count; i++) {
		if (node->eps[i].cause == HD_VIEW_UNREAD)
			return "it does not read its completion queue";
		if (node->eps[i].cause == HD_VIEW_NO_RECEIVE)
			why = "it has posted no receive";
	}
	return why;
}

/* What stands in the way of all that a program has to do; empty: nothing that can be seen. */
static const char *halt_of(const struct hd_seen_node *node)
{
	return node->stopped ? "stopped" : node->progress == HD_PROGRESS_NONE ? "makes no progress" : "";
}

static void print_seen_ep(const struct hd_seen_nodes *nodes, const struct hd_seen_ep *ep)
{
	const struct hd_seen_node *other = *ep->answers ? hd_node_by_id(nodes, ep->answers) : NULL;

	printf("             %s %s, %s: %u receives posted, %u sends under way, %u messages wait, %u completions unread%s%s",
	       ep->kind, ep->number, ep->state, ep->receives, ep->sends, ep->waiting, ep->unread,
	       *ep->waits_for ? "; waits for " : "", ep->waits_for);
	if (other && *halt_of(other))
		printf(": its program, %s (pid %d), %s%s", other->program, (int)other->pid,
		       other->stopped ? "is " : "", halt_of(other));
	putchar('\n');
}

static void print_seen_peer(const struct hd_seen_nodes *nodes, const struct hd_seen_peer *peer)
{
	const struct hd_seen_node *other = hd_node_by_id(nodes, peer->id);
	const char *why = other && *peer->waits_for ? why_not_taken(other) : NULL;
	char name[80];

	/* the beginning of an id is what lines of the log have of it */
	if (other)
		snprintf(name, sizeof(name), "%.8s (%s, pid %d%s%s)", peer->id, other->program,
			 (int)other->pid, *halt_of(other) ? ", " : "", halt_of(other));
	else
		snprintf(name, sizeof(name), "%.8s", peer->id);
	printf("             peer %-28s %-8s credit %llu B, holds %llu B for it%s%s%s%s\n", name, peer->state,
	       peer->credit, peer->held, *peer->waits_for ? "; waits for " : "", peer->waits_for,
	       why ? ": " : "", why ? why : "");
}

static void print_seen_node(const struct hd_seen_node *node)
{
	printf("  %7d  %s, %s, node %.8s", (int)node->pid, node->program, node->front, node->id);
	if (node->threads)
		printf(", %u of its threads asleep in it (rpoll, rrecv, ibv_get_cq_event, dat_cno_wait)",
		       node->threads);
	if (node->stopped)
		puts(": stopped, by a signal or a debugger: `kill -CONT` lets it go on");
	else if (node->progress == HD_PROGRESS_NONE)
		puts(": makes no progress: for half a second its program has called nothing here that does");
	else
		putchar('\n');
}

static void print_inside(const struct hd_seen_nodes *nodes)
{
	const struct hd_seen_node *node;

	puts("\nEndpoints and queue pairs, and what they wait for");
	STAILQ_FOREACH(node, nodes, entry) {
		print_seen_node(node);
		if (*node->unseen)
			printf("             not shown: %s\n", node->unseen);
		for (unsigned i = 0; i < node->ep_count; i++)
			print_seen_ep(nodes, &node->eps[i]);
		for (unsigned i = 0; i < node->peer_count; i++)
			print_seen_peer(nodes, &node->peers[i]);
	}
}

static void print_links(const struct hd_host *host, const struct hd_seen_nodes *nodes)
{
	print_nodes(nodes);
	if (!STAILQ_EMPTY(nodes))
		print_inside(nodes);
}

static void print_tables(const struct hd_host *host, const struct hd_seen_nodes *nodes)
{
	print_fronts();
	puts("\nDevices for verbs programs");
	each_device(print_device, NULL);
	print_adapters();
	print_addresses(host);
	print_transports(host);
	print_settings();
	print_rsocket_files();
	print_nodes(nodes);
}

/* ---- JSON ---- */

static void json_fronts(struct hd_json *json)
{
	hd_json_open(json, "interfaces", '[');
	for (size_t i = 0; hd_front_at(i); i++) {
		const struct hd_front *front = hd_front_at(i);
		char folder[2 * PATH_MAX + 64];
		int rc = hd_front_find(front, folder, sizeof(folder));

		hd_json_open(json, NULL, '{');
		hd_json_text(json, "name", front->name);
		hd_json_text(json, "file", front->file);
		hd_json_text(json, "folder", rc ? NULL : folder);
		if (front->adapter)
			hd_json_text(json, "adapter", front->adapter);
		hd_json_close(json, '}');
	}
	hd_json_close(json, ']');
}

static void json_device(const char *name, const char *what, void *arg)
{
	hd_json_open(arg, NULL, '{');
	hd_json_text(arg, "name", name);
	hd_json_text(arg, "description", what);
	hd_json_close(arg, '}');
}

static void json_host(struct hd_json *json, const struct hd_host *host)
{
	hd_json_open(json, "addresses", '[');
	for (unsigned i = 0; i < host->address_count; i++) {
		hd_json_open(json, NULL, '{');
		hd_json_text(json, "address", host->addresses[i].text);
		hd_json_text(json, "interface", host->addresses[i].interface);
		hd_json_close(json, '}');
	}
	hd_json_close(json, ']');
	hd_json_open(json, "transports", '[');
	for (unsigned i = 0; i < HD_HOST_TRANSPORTS; i++) {
		hd_json_open(json, NULL, '{');
		hd_json_text(json, "name", host->transports[i].name);
		hd_json_bool(json, "used", host->transports[i].used);
		hd_json_text(json, "note", host->transports[i].note);
		hd_json_close(json, '}');
	}
	hd_json_close(json, ']');
}

static void json_settings(struct hd_json *json)
{
	hd_json_open(json, "settings", '[');
	for (unsigned i = 0; hd_setting_at(i); i++) {
		const struct hd_setting_info *info = hd_setting_at(i);
		char help[160];

		hd_setting_help(i, help, sizeof(help));
		hd_json_open(json, NULL, '{');
		hd_json_text(json, "name", info->env);
		hd_json_text(json, "value", hd_config_str(i));
		hd_json_text(json, "default", info->fallback);
		hd_json_text(json, "source", hd_config_source(i));
		hd_json_text(json, "in_force", setting_cap(i) ? setting_cap(i) : hd_config_str(i));
		hd_json_text(json, "takes", help);
		hd_json_text(json, "meaning", info->meaning);
		hd_json_close(json, '}');
	}
	hd_json_close(json, ']');
}

static void json_rsocket_files(struct hd_json *json)
{
	hd_json_open(json, "rsockets", '[');
	for (unsigned i = 0; hd_rsocket_file_at(i); i++) {
		const struct hd_rsocket_file_info *info = hd_rsocket_file_at(i);
		char path[64], help[96];
		bool found;

		hd_json_open(json, NULL, '{');
		hd_json_text(json, "name", info->file);
		hd_json_number(json, "value", hd_rsocket_file_read(i, &found));
		hd_json_number(json, "default", info->fallback);
		snprintf(path, sizeof(path), HD_RSOCKET_FOLDER "%s", info->file);
		hd_json_text(json, "source", found ? path : NULL);
		hd_rsocket_file_help(i, help, sizeof(help));
		hd_json_text(json, "takes", help);
		hd_json_text(json, "meaning", info->meaning);
		hd_json_close(json, '}');
	}
	hd_json_close(json, ']');
}

static void json_direct(struct hd_json *json, const char *key, const char *word, const char *reason)
{
	hd_json_open(json, key, '{');
	if (*word == '-')
		hd_json_text(json, "works", NULL);
	else
		hd_json_bool(json, "works", !strcmp(word, "yes"));
	hd_json_text(json, "reason", *reason ? reason : NULL);
	hd_json_close(json, '}');
}

static void json_links(struct hd_json *json, const struct hd_seen_node *node)
{
	hd_json_open(json, "links", '[');
	for (unsigned i = 0; i < node->link_count; i++) {
		const struct hd_seen_link *link = &node->links[i];

		hd_json_open(json, NULL, '{');
		hd_json_text(json, "transport", link->transport);
		hd_json_text(json, "peer", link->peer);
		hd_json_number(json, "peer_pid", link->peer_pid);
		json_direct(json, "direct_out", link->direct_out, link->out_reason);
		json_direct(json, "direct_in", link->direct_in, link->in_reason);
		hd_json_close(json, '}');
	}
	hd_json_close(json, ']');
}

static void json_inside(struct hd_json *json, const struct hd_seen_node *node)
{
	hd_json_text(json, "unseen", *node->unseen ? node->unseen : NULL);
	if (node->progress == HD_PROGRESS_UNKNOWN)
		hd_json_text(json, "progress", NULL);
	else
		hd_json_bool(json, "progress", node->progress == HD_PROGRESS_MADE);
	hd_json_number(json, "threads_asleep", node->threads);
	hd_json_open(json, "endpoints", '[');
	for (unsigned i = 0; i < node->ep_count; i++) {
		const struct hd_seen_ep *ep = &node->eps[i];

		hd_json_open(json, NULL, '{');
		hd_json_text(json, "number", ep->number);
		hd_json_text(json, "kind", ep->kind);
		hd_json_text(json, "state", ep->state);
		hd_json_number(json, "receives", ep->receives);
		hd_json_number(json, "sends", ep->sends);
		hd_json_number(json, "waiting", ep->waiting);
		hd_json_number(json, "unread", ep->unread);
		hd_json_text(json, "waits_for", *ep->waits_for ? ep->waits_for : NULL);
		hd_json_text(json, "answers", *ep->answers ? ep->answers : NULL);
		hd_json_close(json, '}');
	}
	hd_json_close(json, ']');
	hd_json_open(json, "peers", '[');
	for (unsigned i = 0; i < node->peer_count; i++) {
		const struct hd_seen_peer *peer = &node->peers[i];

		hd_json_open(json, NULL, '{');
		hd_json_text(json, "id", peer->id);
		hd_json_text(json, "state", peer->state);
		hd_json_number(json, "credit", (long long)peer->credit);
		hd_json_number(json, "held", (long long)peer->held);
		hd_json_text(json, "waits_for", *peer->waits_for ? peer->waits_for : NULL);
		hd_json_close(json, '}');
	}
	hd_json_close(json, ']');
}

static void json_nodes(struct hd_json *json, const struct hd_seen_nodes *nodes)
{
	const struct hd_seen_node *node;

	hd_json_open(json, "nodes", '[');
	STAILQ_FOREACH(node, nodes, entry) {
		hd_json_open(json, NULL, '{');
		hd_json_number(json, "pid", node->pid);
		hd_json_text(json, "program", node->program);
		hd_json_bool(json, "stopped", node->stopped);
		hd_json_text(json, "interface", node->front);
		hd_json_text(json, "id", node->id);
		json_links(json, node);
		json_inside(json, node);
		hd_json_close(json, '}');
	}
	hd_json_close(json, ']');
}

static void print_json(const struct hd_host *host, const struct hd_seen_nodes *nodes)
{
	struct hd_json json = { .out = stdout };

	hd_json_open(&json, NULL, '{');
	hd_json_text(&json, "version", HD_VERSION);
	json_fronts(&json);
	hd_json_open(&json, "devices", '[');
	each_device(json_device, &json);
	hd_json_close(&json, ']');
	json_host(&json, host);
	json_settings(&json);
	json_rsocket_files(&json);
	json_nodes(&json, nodes);
	hd_json_close(&json, '}');
}

static int info_show(void (*print)(const struct hd_host *host, const struct hd_seen_nodes *nodes))
{
	struct hd_seen_nodes nodes = STAILQ_HEAD_INITIALIZER(nodes);
	struct hd_host host;

	hd_config_load();
	int rc = hd_nodes_scan(&nodes);
	if (rc)
		hd_complain("cannot look for running programs: %s%s", strerror(-rc),
			    rc == -ENOENT || rc == -EACCES ? ": mount /proc" : hd_advice(-rc));
	hd_host_read(&host);
	if (print != print_tables)
		hd_progress_watch(&nodes);
	print(&host, &nodes);
	hd_nodes_free(&nodes);
	if (fflush(stdout) || ferror(stdout)) {
		hd_complain("cannot write: %s%s", strerror(errno),
			    errno == EBADF ? ": leave standard output open" : hd_advice(errno));
		return HD_EXIT_OWN_FAILURE;
	}
	return rc ? HD_EXIT_OWN_FAILURE : 0;
}

static int info_run(int argc, char **argv)
{
	void (*print)(const struct hd_host *host, const struct hd_seen_nodes *nodes) = print_tables;
	int option;

	while ((option = getopt_long(argc, argv, "+:jlh", options, NULL)) != -1) {
		switch (option) {
		case 'j':
			print = print_json;
			break;
		case 'l':
			print = print_links;
			break;
		case 'h':
			info_print_help();
			return 0;
		default:
			return hd_option_error(option, "info", argv);
		}
	}
	if (optind != argc) {
		hd_complain("info takes options alone, not %s", argv[optind]);
		return hd_usage_error("info");
	}
	return info_show(print);
}

const struct hd_command hd_command_info = {
	.name = "info",
	.summary = "show addresses, transports, settings and live links",
	.run = info_run,
};
