/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
#include "tool/json.h"

static void put_text(FILE *out, const char *text)
{
	putc('"', out);
	for (const unsigned char *p = (const unsigned char *)text; *p; p++) {
		if (*p == '"' || *p == '\\')
			fprintf(out, "\\%c", *p);
		else if (*p < ' ' || *p >= 127)
			fprintf(out, "\\u%04x", *p);
		else
			putc(*p, out);
	}
	putc('"', out);
}

static void new_line(struct hd_json *json)
{
	fprintf(json->out, "\n%*s", (int)json->depth * 2, "");
}

static void begin_member(struct hd_json *json, const char *key)
{
	if (json->filled)
		putc(',', json->out);
	if (json->depth)
		new_line(json);
	json->filled = true;
	if (key) {
		put_text(json->out, key);
		fputs(": ", json->out);
	}
}

void hd_json_open(struct hd_json *json, const char *key, char bracket)
{
	begin_member(json, key);
	putc(bracket, json->out);
	json->depth++;
	json->filled = false;
}

void hd_json_close(struct hd_json *json, char bracket)
{
	json->depth--;
	if (json->filled)
		new_line(json);
	putc(bracket, json->out);
	json->filled = true;
	if (!json->depth)
		putc('\n', json->out);
}

void hd_json_text(struct hd_json *json, const char *key, const char *value)
{
	begin_member(json, key);
	if (value)
		put_text(json->out, value);
	else
		fputs("null", json->out);
}

void hd_json_number(struct hd_json *json, const char *key, int64_t value)
{
	begin_member(json, key);
	fprintf(json->out, "%lld", (long long)value);
}

void hd_json_bool(struct hd_json *json, const char *key, bool value)
{
	begin_member(json, key);
	fputs(value ? "true" : "false", json->out);
}
