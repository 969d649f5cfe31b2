/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
#include "tool/host.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/advice.h"
#include "base/config.h"
#include "base/interfaces.h"
#include "base/key_file.h"
#include "engine/engine.h"

/* Of admin-guide/LSM/Yama of the kernel's documentation; 0 where there is no such restriction. */
static int ptrace_scope(void)
{
	int scope = 0;
	FILE *file = fopen("/proc/sys/kernel/yama/ptrace_scope", "re");

	if (!file)
		return 0;
	if (fscanf(file, "%d", &scope) != 1)
		scope = 0;
	fclose(file);
	return scope;
}

/*
 * Copying from oneself is always allowed, unless the call itself is kept from us. The
 * call, with errno, or NULL.
 */
static const char *refused_copy(void)
{
	int from = 1, to = 0;
	struct iovec local = { &to, sizeof(to) }, remote = { &from, sizeof(from) };

	if (process_vm_readv(getpid(), &local, 1, &remote, 1, 0) != sizeof(to))
		return "process_vm_readv";
	return process_vm_writev(getpid(), &local, 1, &remote, 1, 0) == sizeof(to) ? NULL
										   : "process_vm_writev";
}

static const char *scope_advice(int scope)
{
	return scope >= 3
		       ? ": have it be 1 when the host starts, as it cannot be taken back before (/etc/sysctl.d)"
		       : ": `sysctl kernel.yama.ptrace_scope=1` allows all of them";
}

void hd_host_unread(int error, char *text, size_t size)
{
	const char *refused = error == EPERM || error == ENOSYS ? refused_copy() : NULL;
	int scope = ptrace_scope();

	if (refused)
		snprintf(text, size, "%s: %s%s", refused, strerror(error), hd_advice(error));
	else if (error == EPERM && scope >= 2)
		snprintf(text, size, "kernel.yama.ptrace_scope is %d%s", scope,
			 scope == 2 ? ": be root, or set it to 1" : scope_advice(scope));
	else if (error == EPERM)
		snprintf(text, size, "the kernel does not let you read its memory: be its user%s, or root",
			 scope ? ", and have HEDDLE_PTRACER=yes there" : "");
	else
		snprintf(text, size, "its memory cannot be read: it has perhaps just ended; try again");
}

static bool describe_memory(char *note, size_t size)
{
	int fd = memfd_create("heddle-info", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd < 0)
		snprintf(note, size, "no shared memory: memfd_create: %s%s", strerror(errno),
			 hd_advice(errno));
	else
		close(fd);
	return fd >= 0;
}

static void describe_copies(char *note, size_t size)
{
	const char *refused = refused_copy();
	int error = errno, scope = ptrace_scope();

	if (!hd_config_bool(HD_SET_DIRECT_COPY))
		snprintf(note, size, "no direct copies: HEDDLE_DIRECT_COPY is off");
	else if (refused)
		snprintf(note, size, "no direct copies: %s: %s%s", refused, strerror(error),
			 hd_advice(error));
	else if (scope >= 3)
		snprintf(note, size, "no direct copies: kernel.yama.ptrace_scope is %d%s", scope,
			 scope_advice(scope));
	else if (scope == 2)
		snprintf(note, size,
			 "direct copies with CAP_SYS_PTRACE only: kernel.yama.ptrace_scope is 2%s",
			 scope_advice(scope));
	else if (scope == 1 && !hd_config_bool(HD_SET_PTRACER))
		snprintf(
			note, size,
			"no direct copies: kernel.yama.ptrace_scope is 1 and HEDDLE_PTRACER is off: set it to yes");
	else if (scope == 1)
		snprintf(note, size,
			 "direct copies, asked for with PR_SET_PTRACER: kernel.yama.ptrace_scope is 1");
	else
		snprintf(note, size, "direct copies between programs of one user");
}

static bool has_family(int family)
{
	int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return false;
	close(fd);
	return true;
}

/*
 * Is what goes over TCP sealed? A key file that cannot be used is complained of
 * when the node is opened.
 */
static const char *describe_key(int error)
{
	const char *path = hd_config_str(HD_SET_KEY_FILE);
	uint8_t key[HD_KEY_SIZE];
	int rc;

	if (!*path)
		return "not sealed: HEDDLE_KEY_FILE is empty";
	rc = hd_key_file_read(path, key, NULL);
	explicit_bzero(key, sizeof(key));
	return rc || error ? "no program can use it: see HEDDLE_KEY_FILE"
			   : "sealed by TLS 1.3 with the key of HEDDLE_KEY_FILE";
}

static void describe_families(int error, char *note, size_t size)
{
	bool v4 = has_family(AF_INET), v6 = has_family(AF_INET6);

	snprintf(note, size, "%s; %s",
		 v4 && v6 ? "IPv4 and IPv6"
		 : v4	  ? "IPv4 only"
		 : v6	  ? "IPv6 only"
			  : "no IP here",
		 describe_key(error));
}

static const void *address_bytes(const struct sockaddr *sa)
{
	if (sa->sa_family == AF_INET)
		return &((const struct sockaddr_in *)sa)->sin_addr;
	return &((const struct sockaddr_in6 *)sa)->sin6_addr;
}

static bool host_same_address(const struct sockaddr *a, const struct sockaddr *b)
{
	return a && a->sa_family == b->sa_family &&
	       !memcmp(address_bytes(a), address_bytes(b), b->sa_family == AF_INET ? 4 : 16);
}

/* The first interface that has the address, for the reader's sake alone. */
static void name_interface(const struct ifaddrs *all, const struct sockaddr *sa, char *name)
{
	name[0] = '\0';
	while (all && !host_same_address(all->ifa_addr, sa))
		all = all->ifa_next;
	if (all)
		snprintf(name, IF_NAMESIZE, "%s", all->ifa_name);
}

static void read_addresses(struct hd_host *host, const struct hd_node *node)
{
	struct sockaddr_storage address;
	struct sockaddr *sa = (struct sockaddr *)&address;
	struct ifaddrs *all = NULL;

	if (hd_interfaces(&all))
		all = NULL;
	for (unsigned i = 0; i < HD_HOST_ADDRESSES && hd_node_address(node, i, &address); i++) {
		struct hd_host_address *to = &host->addresses[host->address_count++];

		inet_ntop(sa->sa_family, address_bytes(sa), to->text, sizeof(to->text));
		name_interface(all, sa, to->interface);
	}
	hd_interfaces_free(all);
}

void hd_host_read(struct hd_host *host)
{
	struct hd_node_attr attr = { .front = "info" };
	struct hd_node *node;

	*host = (struct hd_host){ 0 };
	host->error = -hd_node_open(&attr, &node);
	if (!host->error) {
		read_addresses(host, node);
		hd_node_close(node);
	}

	unsigned choice = hd_config_choice(HD_SET_TRANSPORT);
	struct hd_host_transport *shm = &host->transports[0], *tcp = &host->transports[1];
	*shm = (struct hd_host_transport){ .name = "shm", .used = choice != HD_USE_TCP };
	if (describe_memory(shm->note, sizeof(shm->note)))
		describe_copies(shm->note, sizeof(shm->note));
	*tcp = (struct hd_host_transport){ .name = "tcp", .used = choice != HD_USE_SHM };
	describe_families(host->error, tcp->note, sizeof(tcp->note));
}
