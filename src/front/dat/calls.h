/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * The functions of the provider table, declared by its own types: what each does is
 * said in udat(3) of its name.
 */
#ifndef HEDDLE_FRONT_DAT_CALLS_H
#define HEDDLE_FRONT_DAT_CALLS_H

#define HU_CALL(type, name) __typeof__(*(type)0) hu_##name;
#include "front/dat/calls.def"
#undef HU_CALL

#endif
