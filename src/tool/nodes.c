/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
#include "tool/nodes.h"

#include "base/proc.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/node_page.h"

/* What readlink says of a descriptor of such a page. */
#define PAGE_LINK "/memfd:" HD_PAGE_NAME " (deleted)"

/*
 * Copies a field of fixed size that need not end in zero, and keeps it off the terminal's controls.
 */
static void copy_text(char *to, const char *from, size_t size)
{
	size_t i;

	for (i = 0; i < size && from[i]; i++)
		to[i] = isprint((unsigned char)from[i]) ? from[i] : '?';
	to[i] = '\0';
}

static const char *direct_word(uint8_t direct)
{
	switch (direct) {
	case HD_DIRECT_NA:
		return "-";
	case HD_DIRECT_YES:
		return "yes";
	default:
		return "no";
	}
}

static void direct_reason(uint8_t direct, uint16_t error, char *text, size_t size)
{
	text[0] = '\0';
	if (direct == HD_DIRECT_OFF)
		snprintf(text, size, "switched off");
	else if (direct == HD_DIRECT_REFUSED)
		snprintf(text, size, "%s", strerror(error));
	else if (direct > HD_DIRECT_REFUSED)
		snprintf(text, size, "unknown state %u", direct);
}

static void nodes_address_text(const struct hd_page_link *row, char *text, size_t size)
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };
	char address[INET6_ADDRSTRLEN];

	if (!memcmp(row->peer_addr, mapped, sizeof(mapped))) {
		inet_ntop(AF_INET, row->peer_addr + 12, address, sizeof(address));
		snprintf(text, size, "%s:%u", address, row->peer_port);
	} else {
		inet_ntop(AF_INET6, row->peer_addr, address, sizeof(address));
		snprintf(text, size, "[%s]:%u", address, row->peer_port);
	}
}

static void nodes_read_row(struct hd_seen_link *link, const struct hd_page_link *row)
{
	link->peer_pid = row->peer_pid > 0 ? row->peer_pid : 0;
	copy_text(link->transport, row->transport, sizeof(row->transport));
	nodes_address_text(row, link->peer, sizeof(link->peer));
	link->direct_out = direct_word(row->direct_out);
	link->direct_in = direct_word(row->direct_in);
	direct_reason(row->direct_out, row->direct_out_errno, link->out_reason, sizeof(link->out_reason));
	direct_reason(row->direct_in, row->direct_in_errno, link->in_reason, sizeof(link->in_reason));
}

static bool is_page(const struct hd_node_page *page)
{
	return page->magic == HD_PAGE_MAGIC && page->version == HD_PAGE_VERSION &&
	       page->link_rows == HD_PAGE_LINKS;
}

static bool same_row(const struct hd_page_link *a, const struct hd_page_link *b)
{
	return !memcmp(a, b, sizeof(*a));
}

/*
 * Rows are private copies; one that changed between two copies is on its way
 * out or in, and left out.
 */
static int read_links(struct hd_seen_node *node, const struct hd_node_page *first,
		      const struct hd_node_page *again)
{
	node->links = calloc(HD_PAGE_LINKS, sizeof(*node->links));
	if (!node->links)
		return -ENOMEM;
	for (unsigned i = 0; i < HD_PAGE_LINKS; i++) {
		const struct hd_page_link *row = &first->links[i];

		if (row->state == 1 && same_row(row, &again->links[i]))
			nodes_read_row(&node->links[node->link_count++], row);
	}
	return 0;
}

/* T: by a signal, t: by a debugger; proc(5). */
static bool is_stopped(pid_t pid)
{
	uint64_t born;
	char state;

	return hd_proc_stat(pid, &state, &born) && (state == 'T' || state == 't');
}

void hd_node_id_text(const struct hd_node_id *id, char *text, size_t size)
{
	snprintf(text, size, "%016llx%016llx", (unsigned long long)id->word[0],
		 (unsigned long long)id->word[1]);
}

static int add_node(struct hd_seen_nodes *nodes, pid_t pid, const struct hd_node_page *pages)
{
	struct hd_seen_node *node = calloc(1, sizeof(*node));

	if (!node)
		return -ENOMEM;
	node->pid = pid;
	node->stopped = is_stopped(pid);
	copy_text(node->program, pages[0].program, sizeof(pages[0].program));
	copy_text(node->front, pages[0].front, sizeof(pages[0].front));
	hd_node_id_text(&pages[0].id, node->id, sizeof(node->id));
	STAILQ_INSERT_TAIL(nodes, node, entry);
	hd_inside_read(node, &pages[0]);
	return read_links(node, &pages[0], &pages[1]);
}

/* The process id as the process sees it itself: the last one of NSpid, proc(5). */
static pid_t inner_pid(pid_t pid)
{
	char path[64], line[256];
	pid_t inner = pid;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	FILE *file = fopen(path, "re");
	if (!file)
		return pid;
	while (fgets(line, sizeof(line), file)) {
		if (!strncmp(line, "NSpid:", 6)) {
			const char *last = strrchr(line, '\t');

			inner = last ? atoi(last) : pid;
		}
	}
	fclose(file);
	return inner;
}

/* pread rather than a mapping: a page that shrinks under us is a short read, not a signal. */
static bool read_pages(int fd, struct hd_node_page *pages)
{
	for (int i = 0; i < 2; i++)
		if (pread(fd, &pages[i], sizeof(pages[i]), 0) != (ssize_t)sizeof(pages[i]))
			return false;
	return true;
}

/*
 * Peers and forked children may hold a page open too; it is shown for its owner alone, and so only
 * once and only while the owner lives.
 */
static int read_descriptor(struct hd_seen_nodes *nodes, pid_t pid, const char *path)
{
	struct hd_node_page *pages = calloc(2, sizeof(*pages));
	int rc = 0;

	if (!pages)
		return -ENOMEM;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd >= 0) {
		if (read_pages(fd, pages) && is_page(&pages[0]) && pages[0].pid == inner_pid(pid))
			rc = add_node(nodes, pid, pages);
		close(fd);
	}
	free(pages);
	return rc;
}

static bool is_number(const char *text)
{
	return *text && strspn(text, "0123456789") == strlen(text);
}

static bool is_page_link(const char *path)
{
	char target[sizeof(PAGE_LINK) + 1];
	ssize_t len = readlink(path, target, sizeof(target));

	return len == sizeof(PAGE_LINK) - 1 && !memcmp(target, PAGE_LINK, len);
}

/* A process may hold its page by two descriptors. */
static bool seen_before(ino_t *inodes, unsigned *count, unsigned room, const char *path)
{
	struct stat st;

	if (stat(path, &st))
		return true;
	for (unsigned i = 0; i < *count; i++)
		if (inodes[i] == st.st_ino)
			return true;
	if (*count < room)
		inodes[(*count)++] = st.st_ino;
	return false;
}

static int scan_process(struct hd_seen_nodes *nodes, const char *pid)
{
	char folder[300], path[600];
	ino_t inodes[64];
	unsigned inode_count = 0;
	int rc = 0;

	snprintf(folder, sizeof(folder), "/proc/%s/fd", pid);
	DIR *dir = opendir(folder);
	if (!dir)
		return 0; /* gone, or not ours to look at */
	for (struct dirent *d; !rc && (d = readdir(dir));) {
		snprintf(path, sizeof(path), "%s/%s", folder, d->d_name);
		if (is_page_link(path) && !seen_before(inodes, &inode_count, 64, path))
			rc = read_descriptor(nodes, atoi(pid), path);
	}
	closedir(dir);
	return rc;
}

static int by_number(const struct dirent **a, const struct dirent **b)
{
	return atoi((*a)->d_name) - atoi((*b)->d_name);
}

static int is_process(const struct dirent *d)
{
	return is_number(d->d_name);
}

int hd_nodes_scan(struct hd_seen_nodes *nodes)
{
	struct dirent **processes;
	int count = scandir("/proc", &processes, is_process, by_number);
	int rc = count ? 0 : -ENOENT; /* not even this process */

	if (count < 0)
		return -errno;
	for (int i = 0; i < count; i++) {
		if (!rc)
			rc = scan_process(nodes, processes[i]->d_name);
		free(processes[i]);
	}
	free(processes);
	return rc;
}

struct hd_seen_node *hd_node_by_id(const struct hd_seen_nodes *nodes, const char *id)
{
	struct hd_seen_node *node;

	STAILQ_FOREACH(node, nodes, entry)
		if (!strcmp(node->id, id))
			return node;
	return NULL;
}

void hd_nodes_free(struct hd_seen_nodes *nodes)
{
	while (!STAILQ_EMPTY(nodes)) {
		struct hd_seen_node *node = STAILQ_FIRST(nodes);

		STAILQ_REMOVE_HEAD(nodes, entry);
		free(node->links);
		hd_inside_free(node);
		free(node);
	}
}
