/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* The key file of a node, the module that seals with it, and the handshake of a connection: seal.h. */
#include "transport/tcp/seal.h"

#include "base/clock.h"
#include "base/config.h"
#include "base/key_file.h"
#include "base/log.h"
#include "base/macros.h"
#include "transport/tcp/tcp.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>

#define MODULE "libheddle-tls.so"

static_assert(HD_SEAL_KEY == HD_KEY_SIZE, "the key of the file is that of the seal");
static_assert(HD_SEAL_ID == sizeof(struct hd_node_id), "a caller says which node it is");

/* The module stands beside the library that this code is in, or one folder above it, as preload/ and compat/ are below it. */
static void *module_load(void)
{
	static const char *const places[] = { "", "../" };
	char path[PATH_MAX];
	const char *end;
	Dl_info self;
	void *lib = NULL;

	if (!dladdr((void *)(uintptr_t)hd_seal_open, &self) || !self.dli_fname)
		return NULL;
	end = strrchr(self.dli_fname, '/');
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]) && !lib; i++) {
		snprintf(path, sizeof(path), "%.*s%s" MODULE, end ? (int)(end - self.dli_fname + 1) : 0,
			 self.dli_fname, places[i]);
		lib = strchr(path, '/') ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
	}
	if (!lib)
		hd_error(
			"HEDDLE_KEY_FILE is set, but what seals connections cannot be loaded: %s: install Heddle whole, and OpenSSL 3",
			dlerror());
	return lib;
}

static const struct hd_seal_module *module_find(void)
{
	static _Atomic(const struct hd_seal_module *)
		found; /* relaxed: constant, and the same whoever loads it */
	const struct hd_seal_module *module = atomic_load_explicit(&found, memory_order_relaxed);
	void *lib;

	if (module)
		return module;
	lib = module_load();
	module = lib ? dlsym(lib, HD_SEAL_SYMBOL) : NULL;
	if (lib && (!module || module->version != HD_SEAL_VERSION)) {
		hd_error(MODULE " is of another version of Heddle: install Heddle whole");
		return NULL;
	}
	atomic_store_explicit(&found, module, memory_order_relaxed);
	return module;
}

int hd_seal_open(struct hd_tcp_port *port)
{
	const char *path = hd_config_str(HD_SET_KEY_FILE), *why;
	struct hd_sealer_attr attr = { 0 };
	int rc;

	if (!*path)
		return 0;
	rc = hd_key_file_read(path, attr.key, &why);
	if (rc < 0) {
		hd_error("the key file %s cannot be used: %s%s%s", path, strerror(-rc), *why ? ": " : "",
			 why);
		return rc;
	}
	memcpy(attr.id, hd_node_id(port->port.node), HD_SEAL_ID);
	port->seals = module_find();
	rc = port->seals ? port->seals->open(&attr, &port->sealer) : -ENOENT;
	explicit_bzero(&attr, sizeof(attr));
	if (rc < 0)
		port->seals = NULL;
	return rc;
}

void hd_seal_close(struct hd_tcp_port *port)
{
	if (port->seals)
		port->seals->close(port->sealer);
	port->seals = NULL;
}

/* ---- the handshake ---- */

static void shake_expired(struct hd_timer *timer)
{
	struct hd_tcp_link *l = hd_container(timer, struct hd_tcp_link, timer);

	hd_tcp_link_down(l, -ETIMEDOUT,
			 "the other end does not show that it has our key within HEDDLE_CONNECT_TIMEOUT");
}

int hd_seal_begin(struct hd_tcp_link *l, bool calls)
{
	struct hd_tcp_port *port = tcp_port_of(l);

	l->seal = port->seals->begin(port->sealer, l->watch.fd, calls);
	if (!l->seal)
		return -ENOMEM;
	l->state = HD_TCP_SHAKING;
	l->calls = calls;
	l->timer.fn = shake_expired;
	hd_timer_set(l->link.node, &l->timer, hd_config_ms(HD_SET_CONNECT_TIMEOUT) * HD_NS_PER_MS);
	hd_seal_shake(l);
	return 0;
}

static const char *shake_failed(int err)
{
	switch (err) {
	case -EACCES:
		return "the other end has not our key: give both ends the same HEDDLE_KEY_FILE";
	case -ECONNRESET:
		return "the other end hangs up on us: perhaps it has no HEDDLE_KEY_FILE, or another one";
	default:
		return "the connection cannot be sealed";
	}
}

/*
 * Somebody may have sent us back what we had said (RFC 9257, 4.1). A node that calls itself is fine, but its words come from an address of its
 * own.
 */
static bool is_echo(const struct hd_tcp_link *l)
{
	return !l->calls && tcp_port_of((struct hd_tcp_link *)l)->seals->heard_self(l->seal) &&
	       !l->link.is_local;
}

void hd_seal_shake(struct hd_tcp_link *l)
{
	bool writes;
	int err = tcp_port_of(l)->seals->shake(l->seal, &writes);

	if (err == -EAGAIN)
		err = hd_tcp_link_watch(l, writes ? EPOLLIN | EPOLLOUT : EPOLLIN);
	else if (!err && is_echo(l))
		err = -EACCES;
	else if (!err)
		return hd_tcp_link_ready(l);
	if (err < 0)
		hd_tcp_link_down(l, err == -EACCES && !l->calls ? -EACCES : err, shake_failed(err));
}
