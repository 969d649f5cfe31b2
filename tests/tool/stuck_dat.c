/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* stuck-dat: a program of uDAPL that calls another, which listens and never accepts; see two.h. */
#include "two.h"

#include <dat2/udat.h>

#define NAME ((DAT_NAME_PTR) "heddle")
#define WAIT_US 20000000

static void must(DAT_RETURN rc, const char *what)
{
	const char *major = "", *minor = "";

	if (rc == DAT_SUCCESS)
		return;
	dat_strerror(rc, &major, &minor);
	fprintf(stderr, "stuck-dat: %s: %s %s\n", what, major, minor);
	exit(1);
}

static DAT_EVD_HANDLE queue(DAT_IA_HANDLE ia, DAT_EVD_FLAGS flags)
{
	DAT_EVD_HANDLE evd;

	must(dat_evd_create(ia, 16, DAT_HANDLE_NULL, flags, &evd), "dat_evd_create");
	return evd;
}

/* The program hears whom to call, and then that its call has come. */
static void listens(const struct two *t, DAT_IA_HANDLE ia)
{
	const DAT_CONN_QUAL service = 0x1000000 + (DAT_CONN_QUAL)getpid();
	DAT_EVD_HANDLE calls = queue(ia, DAT_EVD_CR_FLAG);
	DAT_PSP_HANDLE psp;
	DAT_EVENT event;
	DAT_COUNT more;

	must(dat_psp_create(ia, service, calls, DAT_PSP_CONSUMER_FLAG, &psp), "dat_psp_create");
	two_tell(t, service);
	must(dat_evd_wait(calls, WAIT_US, 1, &event, &more), "dat_evd_wait");
	two_tell(t, 0);
}

static void calls(const struct two *t, DAT_IA_HANDLE ia)
{
	DAT_EVD_HANDLE data = queue(ia, DAT_EVD_DTO_FLAG), up = queue(ia, DAT_EVD_CONNECTION_FLAG);
	DAT_IA_ATTR attr;
	DAT_EP_HANDLE ep;
	DAT_PZ_HANDLE pz;

	must(dat_ia_query(ia, NULL, DAT_IA_FIELD_ALL, &attr, 0, NULL), "dat_ia_query");
	must(dat_pz_create(ia, &pz), "dat_pz_create");
	must(dat_ep_create(ia, pz, data, data, up, NULL, &ep), "dat_ep_create");
	must(dat_ep_connect(ep, attr.ia_address_ptr, two_hear(t), DAT_TIMEOUT_INFINITE, 0, NULL,
			    DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG),
	     "dat_ep_connect");
	two_hear(t);
}

int main(void)
{
	const struct two t = two_begin();
	DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
	DAT_IA_HANDLE ia;

	must(dat_ia_open(NAME, 8, &async, &ia), "dat_ia_open");
	if (t.is_child)
		listens(&t, ia);
	else
		calls(&t, ia);
	two_hang(&t);
	return 0;
}
