/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
#include "front/verbs/tree.h"

#include "front/verbs/verbs_front.h"

#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CLASS "/sys/class/infiniband"
#define VERBS "/sys/class/infiniband_verbs"
#define DEVICES "/dev/infiniband"
/* of a device with an Ethernet link layer: a folder for each interface that has GIDs */
#define NETWORK "device/net"

/*
 * What a file says is written by one of these; i: the number at the end of its name.
 * False: there is no such file.
 */
struct view {
	const struct hv_device *device;
	struct hv_port port;
};
typedef bool (*write_fn)(const struct view *v, int i, char *text, size_t size);

static bool guid(const struct view *v, int i, char *text, size_t size)
{
	uint64_t g = be64toh(v->port.guid);

	return snprintf(text, size, "%04x:%04x:%04x:%04x\n", (unsigned)(g >> 48),
			(unsigned)(g >> 32) & 0xffff, (unsigned)(g >> 16) & 0xffff, (unsigned)g & 0xffff) > 0;
}

static bool node_type(const struct view *v, int i, char *text, size_t size)
{
	return snprintf(text, size, "1: CA\n") > 0;
}

static bool name(const struct view *v, int i, char *text, size_t size)
{
	return snprintf(text, size, "%s\n", v->device->name) > 0;
}

static bool firmware(const struct view *v, int i, char *text, size_t size)
{
	return snprintf(text, size, "%s\n", HD_VERSION) > 0;
}

static bool board(const struct view *v, int i, char *text, size_t size)
{
	return snprintf(text, size, "heddle\n") > 0;
}

static bool zero(const struct view *v, int i, char *text, size_t size)
{
	return snprintf(text, size, "0\n") > 0;
}

static bool numa(const struct view *v, int i, char *text, size_t size)
{
	return snprintf(text, size, "-1\n") > 0;
}

static bool abi(const struct view *v, int i, char *text, size_t size)
{
	return snprintf(text, size, "1\n") > 0;
}

static bool state(const struct view *v, int i, char *text, size_t size)
{
	return snprintf(text, size, v->port.state == IBV_PORT_ACTIVE ? "4: ACTIVE\n" : "1: DOWN\n") > 0;
}

static bool phys_state(const struct view *v, int i, char *text, size_t size)
{
	return snprintf(text, size, v->port.state == IBV_PORT_ACTIVE ? "5: LinkUp\n" : "3: Disabled\n") > 0;
}

static bool lid(const struct view *v, int i, char *text, size_t size)
{
	return snprintf(text, size, "0x%x\n", v->port.lid) > 0;
}

static bool cap_mask(const struct view *v, int i, char *text, size_t size)
{
	return snprintf(text, size, "0x%08x\n", hv_port_cap_flags(v->device)) > 0;
}

static bool rate(const struct view *v, int i, char *text, size_t size)
{
	return snprintf(text, size, "100 Gb/sec (4X EDR)\n") > 0;
}

static bool link_layer(const struct view *v, int i, char *text, size_t size)
{
	return snprintf(text, size, v->device->index == HV_ETHERNET ? "Ethernet\n" : "InfiniBand\n") > 0;
}

static bool pkey(const struct view *v, int i, char *text, size_t size)
{
	return i == 0 && snprintf(text, size, "0x%04x\n", HV_PKEY) > 0;
}

static bool gid(const struct view *v, int i, char *text, size_t size)
{
	const uint8_t *g;
	int at = 0;

	if (i < 0 || i >= v->port.gid_count)
		return false;
	g = v->port.gids[i].gid.raw;
	for (int k = 0; k < 16; k += 2)
		at += snprintf(text + at, size - (size_t)at, "%02x%02x%c", g[k], g[k + 1],
			       k < 14 ? ':' : '\n');
	return true;
}

static bool gid_type(const struct view *v, int i, char *text, size_t size)
{
	if (i < 0 || i >= v->port.gid_count)
		return false;
	return snprintf(text, size, v->port.gids[i].type == IBV_GID_TYPE_IB ? "IB/RoCE v1\n" : "RoCE v2\n") >
	       0;
}

static bool gid_ndev(const struct view *v, int i, char *text, size_t size)
{
	if (i < 0 || i >= v->port.gid_count || !v->port.gids[i].interface[0])
		return false;
	return snprintf(text, size, "%s\n", v->port.gids[i].interface) > 0;
}

/*
 * Below a device's folder. A folder has no function; a name that ends in '#'
 * stands for numbers from 0 on.
 */
struct file {
	const char *path;
	write_fn write;
};

static const struct file class_files[] = {
	{ "", NULL },
	{ "node_guid", guid },
	{ "sys_image_guid", guid },
	{ "node_type", node_type },
	{ "node_desc", name },
	{ "fw_ver", firmware },
	{ "hca_type", board },
	{ "board_id", board },
	{ "hw_rev", abi },
	{ "device", NULL },
	{ "device/numa_node", numa },
	{ NETWORK, NULL },
	{ "ports", NULL },
	{ "ports/1", NULL },
	{ "ports/1/state", state },
	{ "ports/1/phys_state", phys_state },
	{ "ports/1/lid", lid },
	{ "ports/1/sm_lid", lid },
	{ "ports/1/lid_mask_count", zero },
	{ "ports/1/sm_sl", zero },
	{ "ports/1/cap_mask", cap_mask },
	{ "ports/1/rate", rate },
	{ "ports/1/link_layer", link_layer },
	{ "ports/1/gids", NULL },
	{ "ports/1/gids/#", gid },
	{ "ports/1/pkeys", NULL },
	{ "ports/1/pkeys/#", pkey },
	{ "ports/1/gid_attrs", NULL },
	{ "ports/1/gid_attrs/types", NULL },
	{ "ports/1/gid_attrs/types/#", gid_type },
	{ "ports/1/gid_attrs/ndevs", NULL },
	{ "ports/1/gid_attrs/ndevs/#", gid_ndev },
	{ NULL },
};

static const struct file interface_folder = { NETWORK "/", NULL };

static const struct file verbs_files[] = {
	{ "", NULL },
	{ "ibdev", name },
	{ "abi_version", abi },
	{ "device", NULL },
	{ "device/numa_node", numa },
	{ NULL },
};

/* ---- finding --------------------------------------------------------------------------------- */

/* The i-th interface whose addresses are GIDs, or false. */
static bool interface_at(const struct hv_device *device, int i, char *out)
{
	struct hv_port port;

	if (device->index != HV_ETHERNET || hv_port_load(device, &port) < 0)
		return false;
	for (int g = 0; g < port.gid_count; g++) {
		const char *name = port.gids[g].interface;
		int before = 0;

		while (before < g && strcmp(port.gids[before].interface, name))
			before++;
		if (!*name || before < g || i-- > 0)
			continue;
		snprintf(out, 256, "%s", name);
		return true;
	}
	return false;
}

/* What follows a folder's name in the path, "" for the folder itself; NULL: it is not below it. */
static const char *tree_below(const char *path, const char *folder)
{
	size_t len = strlen(folder);

	if (strncmp(path, folder, len) || (path[len] && path[len] != '/'))
		return NULL;
	return path[len] ? path + len + 1 : path + len;
}

/* The device that the rest of a path begins with, and what comes after. */
static const struct hv_device *device_in(const char **rest)
{
	for (int i = 0; i < HV_DEVICES; i++) {
		const char *after = *rest ? tree_below(*rest, hv_devices[i].name) : NULL;

		if (after) {
			*rest = after;
			return &hv_devices[i];
		}
	}
	return NULL;
}

static bool same_path(const char *a, const char *b)
{
	size_t len = strlen(b);

	while (len && b[len - 1] == '/')
		len--;
	return strlen(a) == len && !strncmp(a, b, len);
}

/* Does the path name this file? *index: the number at its end. */
static bool matches(const struct file *f, const char *path, int *index)
{
	size_t len = strlen(f->path);
	char *end;
	long n;

	*index = 0;
	if (!len || f->path[len - 1] != '#')
		return same_path(f->path, path);
	if (strncmp(path, f->path, len - 1) || path[len - 1] < '0' || path[len - 1] > '9')
		return false;
	n = strtol(path + len - 1, &end, 10);
	*index = n < HV_GIDS ? (int)n : -1;
	return !*end;
}

struct found {
	const struct hv_device *device;
	const struct file *files; /* the table */
	const struct file *file;
	const char *rest;
	int index;
};

/*
 * A device with an InfiniBand link layer has no interfaces: programs look
 * whether it has the folder.
 */
static bool is_there(const struct hv_device *device, const struct file *file)
{
	return device->index == HV_ETHERNET || !file->path || strcmp(file->path, NETWORK) != 0;
}

/* Is it the folder of an interface? */
static bool is_interface(const struct found *f)
{
	const char *rest = tree_below(f->rest, NETWORK);
	char name[HV_FILE_SIZE];

	for (int i = 0; rest && *rest && interface_at(f->device, i, name); i++)
		if (same_path(name, rest))
			return true;
	return false;
}

static bool tree_find(const char *path, struct found *f)
{
	f->rest = tree_below(path, CLASS);
	f->files = class_files;
	f->device = device_in(&f->rest);
	if (!f->device) {
		f->rest = tree_below(path, VERBS);
		f->files = verbs_files;
		f->device = device_in(&f->rest);
	}
	if (!f->device)
		return false;
	for (f->file = f->files; f->file->path; f->file++)
		if (matches(f->file, f->rest, &f->index))
			return is_there(f->device, f->file);
	f->file = &interface_folder;
	return is_interface(f);
}

static bool is_shared_dir(const char *path)
{
	return same_path(CLASS, path) || same_path(VERBS, path) || same_path(DEVICES, path);
}

static ssize_t contents(const struct found *f, char *buf, size_t size)
{
	struct view v = { .device = f->device };
	char text[HV_FILE_SIZE];
	size_t len;

	if (!f->file->write)
		return -EISDIR;
	if (hv_port_load(f->device, &v.port) < 0 || !f->file->write(&v, f->index, text, sizeof(text)))
		return -ENOENT;
	len = strlen(text);
	if (len > size)
		len = size;
	memcpy(buf, text, len);
	return (ssize_t)len;
}

enum hv_file_kind hv_file_kind(const char *path)
{
	const char *rest = tree_below(path, DEVICES);
	struct found f;
	char text[HV_FILE_SIZE];

	if (is_shared_dir(path))
		return HV_FILE_SHARED_DIR;
	if (rest)
		return device_in(&rest) && !*rest ? HV_FILE_DEVICE : HV_FILE_NONE;
	if (!tree_find(path, &f))
		return HV_FILE_NONE;
	if (!f.file->write)
		return HV_FILE_DIR;
	return contents(&f, text, sizeof(text)) >= 0 ? HV_FILE_PLAIN : HV_FILE_NONE;
}

ssize_t hv_file_read(const char *path, char *buf, size_t size)
{
	struct found f;

	if (is_shared_dir(path))
		return -EISDIR;
	return tree_find(path, &f) ? contents(&f, buf, size) : -ENOENT;
}

/* ---- all of it ------------------------------------------------------------------------------- */

struct walk {
	struct view view;
	hv_tree_fn visit;
	void *arg;
	int rc; /* what the last visit returned */
};

static bool visit(struct walk *w, enum hv_file_kind kind, const char *text, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

/* False: it is enough. */
static bool visit(struct walk *w, enum hv_file_kind kind, const char *text, const char *fmt, ...)
{
	char path[HV_TREE_PATH];
	va_list args;

	va_start(args, fmt);
	vsnprintf(path, sizeof(path), fmt, args);
	va_end(args);
	w->rc = w->visit(path, kind, text, w->arg);
	return w->rc == 0;
}

/* One line of a table: a folder, a file, or as many as there are. */
static bool walk_file(struct walk *w, const char *root, const struct file *f)
{
	const char *device = w->view.device->name;
	size_t len = strlen(f->path);
	char text[HV_FILE_SIZE];

	if (!f->write)
		return visit(w, HV_FILE_DIR, NULL, "%s/%s%s%s", root, device, len ? "/" : "", f->path);
	if (f->path[len - 1] != '#')
		return !f->write(&w->view, 0, text, sizeof(text)) ||
		       visit(w, HV_FILE_PLAIN, text, "%s/%s/%s", root, device, f->path);
	for (int i = 0; f->write(&w->view, i, text, sizeof(text)); i++)
		if (!visit(w, HV_FILE_PLAIN, text, "%s/%s/%.*s%d", root, device, (int)len - 1, f->path, i))
			return false;
	return true;
}

static bool walk_interfaces(struct walk *w)
{
	char name[HV_FILE_SIZE];

	for (int i = 0; interface_at(w->view.device, i, name); i++)
		if (!visit(w, HV_FILE_DIR, NULL, CLASS "/%s/" NETWORK "/%s", w->view.device->name, name))
			return false;
	return true;
}

static bool walk_files(struct walk *w, const char *root, const struct file *files)
{
	for (const struct file *f = files; f->path; f++)
		if (is_there(w->view.device, f) && !walk_file(w, root, f))
			return false;
	return true;
}

static bool walk_device(struct walk *w, const struct hv_device *device)
{
	w->view.device = device;
	if (hv_port_load(device, &w->view.port) < 0)
		return true;
	return walk_files(w, CLASS, class_files) && walk_interfaces(w) && walk_files(w, VERBS, verbs_files) &&
	       visit(w, HV_FILE_DEVICE, NULL, DEVICES "/%s", device->name);
}

int hv_tree_walk(hv_tree_fn fn, void *arg)
{
	static const char *const shared[] = { CLASS, VERBS, DEVICES };
	struct walk w = { .visit = fn, .arg = arg };

	for (int i = 0; i < 3; i++)
		if (!visit(&w, HV_FILE_SHARED_DIR, NULL, "%s", shared[i]))
			return w.rc;
	for (int i = 0; i < HV_DEVICES; i++)
		if (!walk_device(&w, &hv_devices[i]))
			break;
	return w.rc;
}
