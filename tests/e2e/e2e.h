/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Faults at the level of processes, on the harness of tests/conformance/ofi. Unlike the conformance
 * rows these know Heddle: its settings, and "heddle info" (the program named by the variable
 * HEDDLE, or the one in FI_PROVIDER_PATH).
 */
#ifndef E2E_H
#define E2E_H

#include "../conformance/ofi/ct.h"

/* e2e_set sets an environment variable of this process, before it opens anything. */
void e2e_set(struct ct *ct, const char *name, const char *value);
/* e2e_link gives what heddle info says of this process's only link, as JSON text. */
void e2e_link(struct ct *ct, struct ct_ep *e, char *text, size_t room);
/* e2e_over fails unless that link is of this transport, "shm" or "tcp". */
void e2e_over(struct ct *ct, struct ct_ep *e, const char *transport);
/*
 * e2e_forced tells whether the environment forces this transport; cases
 * about choosing it need none.
 */
bool e2e_forced(const char *transport);
/* e2e_port: the n-th port that these cases may count upon, up to 99: ct_port's. */
int e2e_port(int n);
/* e2e_ports sets HEDDLE_PORTS to those from the n-th on. */
void e2e_ports(struct ct *ct, int n, int count);
/* e2e_exchange sends len bytes both ways between this rank and another, tagged, and checks them. */
void e2e_exchange(struct ct *ct, struct ct_ep *e, int rank, size_t len, uint64_t seed);
size_t e2e_rss(struct ct *ct); /* bytes resident in this process */
int e2e_fds(struct ct *ct);    /* open descriptors of this process */
/* e2e_shm_files counts the files in /dev/shm that belong to this user. */
int e2e_shm_files(struct ct *ct);

#endif
