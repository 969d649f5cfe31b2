/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * What a key file brings in: connections that are sealed by TLS 1.3 with the key (HEDDLE_KEY_FILE,
 * heddle(7)). What speaks TLS is a module of its own, src/transport/tls, loaded when there is a
 * key; without one nothing of this is touched and nothing of OpenSSL is in the process.
 *
 *	struct hd_sealer   what a node has: the key
 *	struct hd_seal     one connection's end
 *	struct hd_seal_group   a membership in a group: datagrams that are sealed one by one
 *
 * Threads: with the node's lock. Nothing blocks. All of what goes wrong with a
 * seal ends the connection.
 */
#ifndef HEDDLE_BASE_SEAL_H
#define HEDDLE_BASE_SEAL_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#define HD_SEAL_VERSION 4
#define HD_SEAL_HEAD 48 /* bytes of a sealed datagram in front of what it holds */
#define HD_SEAL_MORE 64 /* that it is longer than that */
#define HD_SEAL_KEY 32	/* bytes */
#define HD_SEAL_ID 16

struct hd_sealer;
struct hd_seal;
struct hd_seal_group;

struct hd_sealer_attr {
	uint8_t key[HD_SEAL_KEY];
	/*
	 * of the node: a caller says it with its first words, so that a node
	 * that hears itself notices
	 */
	uint8_t id[HD_SEAL_ID];
	int (*copy)(void *to, const void *from,
		    size_t n); /* hd_copy, for payloads, whose memory may be gone */
	/* after so many records of one key another one follows; 0: RFC 8446, 5.5 decides */
	uint64_t records;
};

/* A module's table; it exports one, under the name HD_SEAL_SYMBOL. */
struct hd_seal_module {
	uint32_t version;

	/* open: 0 or a negative errno; the attr is not kept. close: after the last of its seals. */
	int (*open)(const struct hd_sealer_attr *attr, struct hd_sealer **out);
	void (*close)(struct hd_sealer *sealer);

	/*
	 * begin: for a connected socket, which stays the caller's; `calls`: our end has
	 * called. NULL: no memory.
	 */
	struct hd_seal *(*begin)(struct hd_sealer *sealer, int fd, bool calls);

	/*
	 * shake: go on with the handshake: 0 when both ends have proved that they have the key,
	 * -EAGAIN when the socket has to be readable first, or (*writes) writable; -EACCES: the
	 * other end has not our key, or speaks no TLS. heard_self: it was the node itself that
	 * called.
	 */
	int (*shake)(struct hd_seal *seal, bool *writes);
	bool (*heard_self)(const struct hd_seal *seal);

	/*
	 * read: as readv(2), but fills more of iov than one record does; 0 at the end, or a
	 * negative errno. *more: there may be something that no wake-up of the socket tells of,
	 * also where it returns fewer bytes than were asked for, or -EAGAIN: who says little in
	 * many records is heard in portions. *gone is set where memory in iov is gone: then what
	 * belongs there is lost, and counts.
	 */
	ssize_t (*read)(struct hd_seal *seal, const struct iovec *iov, int count, bool *gone, bool *more);

	/*
	 * write: seal what is in iov and give it to the socket. Returns how many bytes were taken,
	 * which need not be kept any more, or a negative errno, -EFAULT: the first is not there;
	 * *left: sealed bytes that wait here for the socket. With count 0 these alone are tried.
	 */
	ssize_t (*write)(struct hd_seal *seal, const struct iovec *iov, int count, size_t *left);

	void (*end)(struct hd_seal *seal);

	/*
	 * group: what is said in one group, which `name` stands for: nothing of it is taken for
	 * another group's. NULL: no memory. group_end: it is left. wrap: seal a datagram; returns
	 * its length, at most `room`, or a negative errno. unwrap: open one: its length; -EACCES:
	 * it is not of somebody with the key, or was changed; -EALREADY: it has come before, or is
	 * older than the last 1024 of its sender. `out` may be `in`; what is wrapped may stand
	 * HD_SEAL_HEAD behind `out`.
	 */
	struct hd_seal_group *(*group)(struct hd_sealer *sealer, const void *name, size_t len);
	ssize_t (*wrap)(struct hd_seal_group *group, const struct iovec *iov, int count, void *out,
			size_t room);
	ssize_t (*unwrap)(struct hd_seal_group *group, const void *in, size_t len, void *out, size_t room);
	void (*group_end)(struct hd_seal_group *group);
};
#define HD_SEAL_SYMBOL "hd_seal_module"

/*
 * hd_sealer_open: what the key file says, for the node with this id: 0 with both set, or with
 * *module NULL where there is no key file. -EACCES: the file is not fit to be used; -ENOENT: it, or
 * the module, is not there. What is wrong is logged, with what to do. Any thread; reads files. What
 * is opened is given back by module->close.
 */
int hd_sealer_open(const uint8_t id[HD_SEAL_ID], const struct hd_seal_module **module,
		   struct hd_sealer **sealer);

#endif
