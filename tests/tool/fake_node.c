/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Holds a page such as a node holds, well-formed or not as argv[1] says, prints "ready", and waits
 * until its standard input ends.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "engine/node_page.h"

static void fill_shm_row(struct hd_page_link *row)
{
	row->peer_pid = 4711;
	memcpy(row->transport, "shm", 4);
	row->direct_out = HD_DIRECT_YES;
	row->direct_in = HD_DIRECT_REFUSED;
	row->direct_in_errno = EPERM;
	row->peer_port = 4000;
	row->peer_addr[10] = row->peer_addr[11] = 0xff;
	inet_pton(AF_INET, "10.1.2.3", row->peer_addr + 12);
	row->state = 1;
}

static void fill_tcp_row(struct hd_page_link *row)
{
	memcpy(row->transport, "tcp", 4);
	row->peer_port = 5000;
	inet_pton(AF_INET6, "2001:db8::7", row->peer_addr);
	row->state = 1;
}

/* Everything that a hostile program can write where the reader expects an orderly node. */
static void fill_junk(struct hd_node_page *page)
{
	memset(page->front, 0xfe, sizeof(page->front));
	memset(page->program, '\033', sizeof(page->program));
	memset(page->links, 0xff, sizeof(page->links));
	for (unsigned i = 0; i < HD_PAGE_LINKS; i++)
		page->links[i].state = i % 3;
}

static void fill(struct hd_node_page *page, const char *kind)
{
	page->magic = HD_PAGE_MAGIC;
	page->version = HD_PAGE_VERSION;
	page->size_kib = sizeof(*page) / 1024;
	page->pid = getpid();
	page->link_rows = HD_PAGE_LINKS;
	page->id.word[0] = 0xabc;
	memcpy(page->front, "libfabric", 10);
	memcpy(page->program, "fake_node", 10);
	fill_shm_row(&page->links[3]);
	fill_tcp_row(&page->links[HD_PAGE_LINKS - 1]);
	fill_shm_row(&page->links[5]);
	page->links[5].state = 0;
	if (!strcmp(kind, "magic"))
		page->magic++;
	if (!strcmp(kind, "version"))
		page->version++;
	if (!strcmp(kind, "rows"))
		page->link_rows = 1u << 31;
	if (!strcmp(kind, "pid"))
		page->pid = 1;
	if (!strcmp(kind, "junk"))
		fill_junk(page);
}

static void wait_for_end_of_input(void)
{
	char byte;

	puts("ready");
	fflush(stdout);
	while (read(STDIN_FILENO, &byte, 1) > 0)
		;
}

int main(int argc, char **argv)
{
	const char *kind = argc > 1 ? argv[1] : "good";
	int fd = memfd_create(HD_PAGE_NAME, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	struct hd_node_page *page;

	if (fd < 0 || ftruncate(fd, sizeof(*page)))
		return 1;
	page = mmap(NULL, sizeof(*page), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (page == MAP_FAILED)
		return 1;
	fill(page, kind);
	if (!strcmp(kind, "short") && ftruncate(fd, 100))
		return 1;
	if (dup(fd) < 0) /* held twice, shown once */
		return 1;
	/* a child that holds the page too is not its owner */
	pid_t child = !strcmp(kind, "forked") ? fork() : -1;
	if (child)
		wait_for_end_of_input();
	else
		pause();
	if (child > 0) {
		kill(child, SIGKILL);
		waitpid(child, NULL, 0);
	}
	return 0;
}
