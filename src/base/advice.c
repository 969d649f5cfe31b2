/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
#include "base/advice.h"

#include <errno.h>

const char *hd_advice(int error)
{
	switch (error) {
	case EMFILE:
		return ": raise the limit of open files (ulimit -n, LimitNOFILE)";
	case ENFILE:
		return ": raise sysctl fs.file-max";
	case ENOMEM:
		return ": give this process more memory (ulimit -v, the limit of its container)";
	case EPERM:
	case ENOSYS:
		return ": let the filter of system calls (seccomp) of its container or service allow that";
	case ENOSPC:
	case EDQUOT:
		return ": make room there";
	case EROFS:
		return ": choose a folder that can be written to";
	case EADDRNOTAVAIL:
		return ": this host has no such address, or no port left for it: see `ip address` and sysctl net.ipv4.ip_local_port_range";
	default:
		return "";
	}
}

const char *hd_advice_call(int error)
{
	switch (error) {
	case ECONNREFUSED:
		return ": is the other program running, and is that its address and port?";
	case ETIMEDOUT:
		return ": is that host up, and does its firewall let HEDDLE_PORTS in?";
	case EHOSTUNREACH:
	case EHOSTDOWN:
	case ENETUNREACH:
	case ENETDOWN:
	case EINVAL: /* of a route that is a black hole */
		return ": `ip route get` says whether there is a way to it";
	case EACCES:
		return ": the other end does not let us in: HEDDLE_ALLOW there, HEDDLE_KEY_FILE and authorization keys at both; or a route here prohibits it: `ip route get`";
	case EPERM:
		return ": a firewall here lets nobody out to it (`nft list ruleset`), or the filter of system calls (seccomp) of this container or service does not";
	case ENOBUFS:
		return ": one end has no room for another peer: raise HEDDLE_UNEXPECTED_MAX there, or the limit of open files (ulimit -n); one other user or host gets a part of either";
	case ECONNRESET:
		return ": it has hung up: its log may say why (HEDDLE_LOG=info there)";
	case EPROTO:
		return ": is a program of the same Heddle at that address and port?";
	case EAFNOSUPPORT:
		return ": this host has no addresses of that kind: see `ip address`";
	default:
		return hd_advice(error);
	}
}

bool hd_is_short(int error)
{
	return error == ENOMEM || error == ENOBUFS || error == ENOSPC || error == EMFILE || error == ENFILE;
}
