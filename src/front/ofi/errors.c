/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * The engine speaks errno; libfabric's errnos are the same numbers up to 255 and have names of
 * their own above. Only these differ.
 */
#include "base/log.h"
#include "front/ofi/ofi.h"

#include <stdio.h>

int hd_fi_errno(int err)
{
	switch (err) {
	case EMSGSIZE: /* a message longer than its buffer */
		return FI_ETRUNC;
	case ENOKEY:
		return FI_ENOKEY;
	case EOVERFLOW: /* completions were lost */
		return FI_EOVERRUN;
	default:
		return err;
	}
}

void hd_fi_refused(int err, const char *where, int line, const char *why)
{
	hd_event("a call is refused in %s, line %d: %s%s%s", where, line, fi_strerror(err), *why ? ": " : "",
		 why);
}

int hd_fi_ret_at(int result, const char *where, int line, const char *why)
{
	if (result >= 0 || result == -EAGAIN || result == -ETIMEDOUT || result == -EINTR)
		return result;
	if (result == -ENOKEY)
		result = -FI_ENOKEY;
	hd_fi_refused(-result, where, line, why);
	return result;
}

const char *hd_fi_strerror(int prov_errno, char *buf, size_t len)
{
	const char *text = fi_strerror(hd_fi_errno(prov_errno));

	if (buf && len)
		snprintf(buf, len, "%s", text);
	return buf && len ? buf : text;
}
