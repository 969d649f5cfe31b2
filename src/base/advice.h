/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
#ifndef HEDDLE_BASE_ADVICE_H
#define HEDDLE_BASE_ADVICE_H

#include <stdbool.h>

/*
 * hd_advice returns what a user can do about a system call that has failed with this error, such as
 * ": raise the limit of open files (ulimit -n)", to be written behind strerror(); "" where nothing
 * can be said in general. hd_advice_call: where it is a peer that does not answer. Static storage;
 * any thread.
 *
 * hd_is_short: does this error say that this process or its host has run out of something?
 */
const char *hd_advice(int error);
const char *hd_advice_call(int error);
bool hd_is_short(int error);

#endif
