/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* What tests of peers that are not well-behaved share: the log, and a peer that is. */
#ifndef HD_TEST_HOSTILE_H
#define HD_TEST_HOSTILE_H

#include "base/log.h"
#include "engine/test/test_wire.h"

#include "transport/tcp/frame.h"

extern unsigned log_lines;
extern char log_last_line[HD_LOG_MAX];

/*
 * listen_to_the_log: count warnings in log_lines from now on, and keep the last one; or no
 * more. serves: does the node serve a well-behaved peer? until_alone: until it has no peer any
 * more. Both fail the test.
 */
void listen_to_the_log(bool on);
void serves(struct side *s);
void until_alone(struct side *s);

#endif
