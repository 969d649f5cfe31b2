/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
#ifndef HEDDLE_TOOL_JSON_H
#define HEDDLE_TOOL_JSON_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/*
 * Writes JSON (RFC 8259) to a stream, indented. The key is NULL for a member of an array. Texts are
 * bytes of unknown origin: what is not printable ASCII is escaped byte by byte.
 */
struct hd_json {
	FILE *out;
	unsigned depth;
	bool filled; /* the innermost array or object has a member */
};

void hd_json_open(struct hd_json *json, const char *key, char bracket);	     /* '{' or '[' */
void hd_json_close(struct hd_json *json, char bracket);			     /* '}' or ']' */
void hd_json_text(struct hd_json *json, const char *key, const char *value); /* NULL is null */
void hd_json_number(struct hd_json *json, const char *key, int64_t value);
void hd_json_bool(struct hd_json *json, const char *key, bool value);

#endif
