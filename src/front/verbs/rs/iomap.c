/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * riomap, riounmap, riowrite: memory of one end that the other writes. What is mapped, and what is
 * no longer, is told in the stream, so that it is known to the other end before what is sent later.
 */
#include "front/verbs/ops.h"
#include "front/verbs/rs/rs.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- ours ------------------------------------------------------------------------------------ */

/* Until there is a place in the send queue. */
static int await_room(struct rs *rs)
{
	int rc = rs_sendable(&rs->conn);

	while (!rc && (rs->conn.state != RS_CONNECTED || !rs_has_place(&rs->out))) {
		rc = rs_wait_for(rs, -1);
		if (!rc)
			rc = rs_sendable(&rs->conn);
	}
	return rc;
}

static int iomap_show(struct rs *rs, uint32_t index, const struct rs_map *map)
{
	const struct rs_map_wire wire = { htobe32(index), htobe32(map->key), htobe64(map->offset),
					  htobe64(map->addr), htobe64(map->len) };
	int rc = await_room(rs);

	return rc ? rc : rs_tell(rs, RS_MAP, &wire, sizeof(wire));
}

/* A free place in ours, or NULL with errno. */
static struct rs_map *place_for(struct rs_maps *maps, bool shown)
{
	struct rs_map **table = shown ? &maps->ours : &maps->locals, *more;
	uint32_t *count = shown ? &maps->count : &maps->local_count;

	if (shown && !*table)
		*table = calloc((size_t)*count + 1, sizeof(**table));
	for (uint32_t i = 0; *table && i < *count; i++)
		if (!(*table)[i].mr)
			return &(*table)[i];
	if (shown)
		return hv_fail(ENOMEM);
	more = realloc(*table, (*count + 1) * sizeof(**table));
	if (!more)
		return hv_fail(ENOMEM);
	*table = more;
	memset(&more[*count], 0, sizeof(*more));
	return &more[(*count)++];
}

static bool overlaps(const struct rs_maps *maps, uint64_t offset, size_t len)
{
	for (uint32_t i = 0; maps->ours && i < maps->count; i++) {
		const struct rs_map *m = &maps->ours[i];

		if (m->mr && offset < m->offset + m->len && m->offset < offset + len)
			return true;
	}
	return false;
}

static int map_make(struct rs *rs, struct rs_map *map, struct rs_map wanted, bool shown)
{
	int access = IBV_ACCESS_LOCAL_WRITE | (shown ? IBV_ACCESS_REMOTE_WRITE : 0), rc = 0;

	wanted.mr = hv_ibv_reg_mr_iova2(rs->v.pd, (void *)(uintptr_t)wanted.addr, wanted.len, wanted.addr,
					access);
	if (!wanted.mr)
		return -errno;
	wanted.key = wanted.mr->rkey;
	*map = wanted;
	if (shown)
		rc = iomap_show(rs, (uint32_t)(map - rs->maps.ours), map);
	if (rc && map->mr == wanted.mr) {
		/* else another thread has unmapped it while this one waited */
		hv_ibv_dereg_mr(map->mr);
		map->mr = NULL;
	}
	return rc;
}

static off_t iomap_map(struct rs *rs, struct rs_map wanted, int prot)
{
	struct rs_map *place;
	int rc;

	rs_step(rs);
	if (prot & ~PROT_WRITE || !wanted.addr || !wanted.len || wanted.offset > INT64_MAX)
		return -EINVAL;
	if (rs->conn.state != RS_CONNECTED && rs->conn.state != RS_ACCEPTED)
		return -ENOTCONN;
	if (prot && overlaps(&rs->maps, wanted.offset, wanted.len))
		return -EINVAL;
	place = place_for(&rs->maps, prot);
	if (!place)
		return -errno;
	rc = map_make(rs, place, wanted, prot);
	return rc ? rc : (off_t)wanted.offset;
}

HV_PUBLIC off_t riomap(int socket, void *buf, size_t len, int prot, int flags, off_t offset)
{
	struct rs_map wanted = { .offset = offset == -1 ? (uintptr_t)buf : (uint64_t)offset,
				 .addr = (uintptr_t)buf,
				 .len = len };
	struct rs *rs = rs_enter(socket);
	off_t rc;

	if (!rs)
		return -1;
	rc = rs->type == SOCK_STREAM ? iomap_map(rs, wanted, prot) : -EOPNOTSUPP;
	if (rc < 0)
		return rs_leave(rs, (int)rc);
	rs_leave(rs, 0);
	return rc;
}

static struct rs_map *find_own(struct rs_map *table, uint32_t count, const void *buf, size_t len)
{
	for (uint32_t i = 0; table && i < count; i++)
		if (table[i].mr && table[i].addr == (uintptr_t)buf && table[i].len == len)
			return &table[i];
	return NULL;
}

/*
 * The memory is nobody's any more when this returns, whether the other end
 * can still be told or not.
 */
static int iomap_unmap(struct rs *rs, const void *buf, size_t len)
{
	struct rs_map *m = find_own(rs->maps.ours, rs->maps.count, buf, len);
	bool shown = m;

	if (!m)
		m = find_own(rs->maps.locals, rs->maps.local_count, buf, len);
	if (!m)
		return -EINVAL;
	if (hv_ibv_dereg_mr(m->mr))
		return -errno;
	*m = (struct rs_map){ 0 };
	rs_step(rs);
	if (shown && rs->conn.state == RS_CONNECTED && !rs->conn.shut_write)
		(void)iomap_show(rs, (uint32_t)(m - rs->maps.ours), m);
	return 0;
}

HV_PUBLIC int riounmap(int socket, void *buf, size_t len)
{
	struct rs *rs = rs_enter(socket);

	return rs ? rs_leave(rs, iomap_unmap(rs, buf, len)) : -1;
}

/* ---- theirs ---------------------------------------------------------------------------------- */

/* The mapping that this offset is in, and how much of it is behind; NULL: none. */
static const struct rs_map *find_far(const struct rs_maps *maps, int count, uint64_t offset, uint64_t *left)
{
	for (int i = 0; i < count; i++) {
		const struct rs_map *m = &maps->theirs[i];

		if (offset - m->offset < m->len) {
			*left = m->len - (offset - m->offset);
			return m;
		}
	}
	return NULL;
}

static ssize_t post_far(struct rs *rs, const char *from, uint32_t len, const struct rs_map *far)
{
	bool is_small = len <= RS_SMALL;
	int rc;

	if (!is_small)
		from = memcpy(rs_block(&rs->out), from, len);
	rc = rs_post(rs, &(struct rs_message){ RS_DATA, from, len, !is_small, far });
	if (rc)
		return rc;
	if (!is_small)
		rs_block_used(&rs->out);
	return len;
}

/* One piece of it: bytes, or -errno; 0: not now. */
static ssize_t write_some(struct rs *rs, const char *from, size_t len, uint64_t offset)
{
	int rc = rs_sendable(&rs->conn);
	const struct rs_map *m;
	uint64_t left;

	if (rc || rs->conn.state != RS_CONNECTED)
		return rc;
	m = find_far(&rs->maps, rs->opt.iomaps, offset, &left);
	if (!m)
		return -EFAULT;
	if (!rs->out.free || !rs_has_place(&rs->out))
		return 0;
	len = len < left ? len : left;
	return post_far(rs, from, len < RS_BLOCK ? (uint32_t)len : RS_BLOCK,
			&(struct rs_map){ .addr = m->addr + (offset - m->offset), .key = m->key });
}

static ssize_t write_all(struct rs *rs, const char *from, size_t count, uint64_t offset, int flags)
{
	size_t done = 0;
	ssize_t rc = 0;

	if (flags & (MSG_OOB | MSG_ERRQUEUE))
		return -EOPNOTSUPP;
	rs_step(rs);
	while (done < count && rc >= 0) {
		rc = write_some(rs, from + done, count - done, offset + done);
		if (rc > 0)
			done += (size_t)rc;
		else if (rc == 0)
			rc = rs_wait(rs, !(flags & MSG_DONTWAIT));
	}
	return done ? (ssize_t)done : rc;
}

HV_PUBLIC size_t riowrite(int socket, const void *buf, size_t count, off_t offset, int flags)
{
	struct rs *rs = rs_enter(socket);
	ssize_t rc;

	if (!rs)
		return (size_t)-1;
	rc = rs->type == SOCK_STREAM ? write_all(rs, buf, count, (uint64_t)offset, flags) : -EOPNOTSUPP;
	if (rc < 0)
		return (size_t)rs_leave(rs, (int)rc);
	rs_leave(rs, 0);
	return (size_t)rc;
}
