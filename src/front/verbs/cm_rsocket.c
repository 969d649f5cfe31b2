/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * rsocket(7). The real ones read what librdmacm keeps behind its own identifiers, and would take ours for these; so they must not run.
 * There are no rsockets here: none can be made, so no descriptor is one, and programs that can do without (those preloaded with librspreload) go
 * on with the kernel's sockets.
 */
#include "front/verbs/cm.h"

#include <errno.h>
#include <poll.h>
#include <rdma/rsocket.h>
#include <sys/select.h>

HV_PUBLIC int rsocket(int domain, int type, int protocol)
{
	return hv_cm_ret(-EPROTONOSUPPORT);
}

/* Without rsockets among them, descriptors are the kernel's: these two are poll(2) and select(2). */
HV_PUBLIC int rpoll(struct pollfd *fds, nfds_t nfds, int timeout)
{
	return poll(fds, nfds, timeout);
}

HV_PUBLIC int rselect(int nfds, fd_set *readfds, fd_set *writefds, fd_set *exceptfds, struct timeval *timeout)
{
	return select(nfds, readfds, writefds, exceptfds, timeout);
}

/* What wants an rsocket, and gets something else. */
#define NO_RSOCKET(type, name, ...) \
	HV_PUBLIC type name(__VA_ARGS__) \
	{ \
		return (type)hv_cm_ret(-EBADF); \
	}

NO_RSOCKET(int, rbind, int socket, const struct sockaddr *addr, socklen_t addrlen)
NO_RSOCKET(int, rlisten, int socket, int backlog)
NO_RSOCKET(int, raccept, int socket, struct sockaddr *addr, socklen_t *addrlen)
NO_RSOCKET(int, rconnect, int socket, const struct sockaddr *addr, socklen_t addrlen)
NO_RSOCKET(int, rshutdown, int socket, int how)
NO_RSOCKET(int, rclose, int socket)
NO_RSOCKET(ssize_t, rrecv, int socket, void *buf, size_t len, int flags)
NO_RSOCKET(ssize_t, rrecvfrom, int socket, void *buf, size_t len, int flags, struct sockaddr *src_addr,
	   socklen_t *addrlen)
NO_RSOCKET(ssize_t, rrecvmsg, int socket, struct msghdr *msg, int flags)
NO_RSOCKET(ssize_t, rsend, int socket, const void *buf, size_t len, int flags)
NO_RSOCKET(ssize_t, rsendto, int socket, const void *buf, size_t len, int flags,
	   const struct sockaddr *dest_addr, socklen_t addrlen)
NO_RSOCKET(ssize_t, rsendmsg, int socket, const struct msghdr *msg, int flags)
NO_RSOCKET(ssize_t, rread, int socket, void *buf, size_t count)
NO_RSOCKET(ssize_t, rreadv, int socket, const struct iovec *iov, int iovcnt)
NO_RSOCKET(ssize_t, rwrite, int socket, const void *buf, size_t count)
NO_RSOCKET(ssize_t, rwritev, int socket, const struct iovec *iov, int iovcnt)
NO_RSOCKET(int, rgetpeername, int socket, struct sockaddr *addr, socklen_t *addrlen)
NO_RSOCKET(int, rgetsockname, int socket, struct sockaddr *addr, socklen_t *addrlen)
NO_RSOCKET(int, rsetsockopt, int socket, int level, int optname, const void *optval, socklen_t optlen)
NO_RSOCKET(int, rgetsockopt, int socket, int level, int optname, void *optval, socklen_t *optlen)
NO_RSOCKET(int, rfcntl, int socket, int cmd, ...)
NO_RSOCKET(off_t, riomap, int socket, void *buf, size_t len, int prot, int flags, off_t offset)
NO_RSOCKET(int, riounmap, int socket, void *buf, size_t len)
NO_RSOCKET(size_t, riowrite, int socket, const void *buf, size_t count, off_t offset, int flags)
