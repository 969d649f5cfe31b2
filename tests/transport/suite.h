/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * The conformance suite of engine/transport.h. A transport's test file says what the
 * transport is and runs all of it:
 *
 *	int main(void)
 *	{
 *		static const struct suite suite = { .transport = &hd_tcp_transport, .address =
 *		"127.0.0.1" };
 *
 *		return suite_run(&suite);
 *	}
 *
 * Each test runs with all nodes driven in turns by one thread and, where it makes sense, once
 * more with a thread per node. HD_TEST_SEED repeats a random run; HD_TEST_ONLY runs only the
 * tests whose names contain it.
 */
#ifndef HD_TESTS_SUITE_H
#define HD_TESTS_SUITE_H

#include "engine/transport.h"

struct suite {
	const struct hd_transport *transport;
	/* addressed transports: where to listen, such as "127.0.0.1" or "::1" */
	const char *address;
	bool self;    /* a link leads back to its own node */
	bool fetches; /* has offer and get */
	/* the death of a process is noticed although a forked child of it lives */
	bool outlives_fork;
};

/* suite_run runs every test that applies; returns the number of failed tests. */
int suite_run(const struct suite *suite);

#endif
