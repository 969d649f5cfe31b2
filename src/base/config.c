/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
#include "base/config.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/auxv.h>

#include "base/lock.h"
#include "base/log.h"
#include "base/spelling.h"

static const struct hd_setting_info settings[] = {
#define HD_SETTING(name_, kind_, allowed_, fallback_, meaning_) \
	[HD_SET_##name_] = { \
		.name = #name_, \
		.env = "HEDDLE_" #name_, \
		.kind = HD_KIND_##kind_, \
		.allowed = allowed_, \
		.fallback = fallback_, \
		.meaning = meaning_, \
	},
#include "base/settings.def"
#undef HD_SETTING
};

/* What a text means: one number, or two for a range. */
struct meaning {
	uint64_t first, last;
};

struct value {
	_Atomic(const char *) text;   /* interned */
	_Atomic(const char *) source; /* interned, or NULL for the default */
	_Atomic uint64_t number;      /* a range is first << 32 | last */
	const char *seen;	      /* load_lock: the text last parsed, good or bad; interned */
};

static struct value values[HD_SET_COUNT];
/* A child may open a node of its own: no thread is inside a load when it is forked. */
HD_LOCK_DEFINE(load_lock);
static _Atomic bool loaded;

/*
 * Texts handed out stay valid, so a reload must not free them; there are as many as different
 * values were ever set. They go when the library is unloaded.
 */
struct interned {
	struct interned *next;
	char text[];
};

static struct interned *interned_texts; /* load_lock */

static const char *intern(const char *text)
{
	for (struct interned *i = interned_texts; i; i = i->next)
		if (!strcmp(i->text, text))
			return i->text;

	size_t size = strlen(text) + 1;
	struct interned *i = malloc(sizeof(*i) + size);

	if (!i)
		return NULL;
	memcpy(i->text, text, size);
	i->next = interned_texts;
	interned_texts = i;
	return i->text;
}

#define LAST 101 /* of all destructors: the first number that a program may use */

static void __attribute__((destructor(LAST))) free_interned(void)
{
	while (interned_texts) {
		struct interned *next = interned_texts->next;

		free(interned_texts);
		interned_texts = next;
	}
}

/*
 * Reads digits and, where allowed, a K, M or G; returns what follows, or NULL
 * when there is no number.
 */
static const char *parse_number(const char *s, bool suffix, uint64_t *out)
{
	static const char units[] = "KMG";
	char *end;

	if (*s < '0' || *s > '9')
		return NULL;
	errno = 0;
	uint64_t n = strtoull(s, &end, 10);
	if (errno)
		return NULL;
	const char *unit = suffix && *end ? strchr(units, *end & ~0x20) : NULL;
	if (unit) {
		unsigned shift = 10 * (unsigned)(unit - units + 1);

		if (n > UINT64_MAX >> shift)
			return NULL;
		n <<= shift;
		end++;
	}
	*out = n;
	return end;
}

static struct meaning limits_of(const struct hd_setting_info *info)
{
	struct meaning limits = { 0, UINT64_MAX };
	const char *rest = parse_number(info->allowed, true, &limits.first);

	if (rest && !strncmp(rest, "..", 2))
		parse_number(rest + 2, true, &limits.last);
	return limits;
}

static bool config_within(const struct hd_setting_info *info, uint64_t n)
{
	struct meaning limits = limits_of(info);

	return n >= limits.first && n <= limits.last;
}

static bool parse_amount(const struct hd_setting_info *info, const char *text, struct meaning *out)
{
	const char *rest = parse_number(text, info->kind == HD_KIND_SIZE, &out->first);

	return rest && !*rest && config_within(info, out->first);
}

static bool parse_range(const struct hd_setting_info *info, const char *text, struct meaning *out)
{
	const char *rest = parse_number(text, false, &out->first);

	if (!rest)
		return false;
	out->last = out->first;
	if (*rest == '-') {
		rest = parse_number(rest + 1, false, &out->last);
		if (!rest || !out->first)
			return false;
	}
	return !*rest && out->first <= out->last && config_within(info, out->first) &&
	       config_within(info, out->last);
}

/* "10.1.0.0/16", or nothing. */
static bool parse_subnet(const char *text, struct meaning *out)
{
	char address[16];
	size_t len = strcspn(text, "/");
	const char *rest = *text ? parse_number(text + len + !!text[len], false, &out->last) : NULL;
	struct in_addr in;

	if (!*text)
		return true;
	if (!rest || *rest || !text[len] || out->last < 1 || out->last > 31 || len >= sizeof(address))
		return false;
	memcpy(address, text, len);
	address[len] = '\0';
	if (inet_pton(AF_INET, address, &in) != 1)
		return false;
	out->last = UINT32_MAX << (32 - out->last) & UINT32_MAX;
	out->first = ntohl(in.s_addr) & out->last;
	return true;
}

static bool parse_choice(const struct hd_setting_info *info, const char *text, struct meaning *out)
{
	size_t len = strlen(text);
	const char *word = info->allowed;

	for (out->first = 0;; out->first++) {
		size_t word_len = strcspn(word, "|");

		if (len == word_len && !strncasecmp(text, word, len))
			return true;
		if (!word[word_len])
			return false;
		word += word_len + 1;
	}
}

static bool parse_bool(const char *text, struct meaning *out)
{
	static const char *const words[][2] = {
		{ "no", "yes" }, { "0", "1" }, { "false", "true" }, { "off", "on" }
	};

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		for (out->first = 0; out->first < 2; out->first++)
			if (!strcasecmp(text, words[i][out->first]))
				return true;
	return false;
}

static bool config_parse(const struct hd_setting_info *info, const char *text, struct meaning *out)
{
	*out = (struct meaning){ 0 };
	switch (info->kind) {
	case HD_KIND_STRING:
		return true;
	case HD_KIND_CHOICE:
		return parse_choice(info, text, out);
	case HD_KIND_BOOL:
		return parse_bool(text, out);
	case HD_KIND_RANGE:
		return parse_range(info, text, out);
	case HD_KIND_SUBNET:
		return parse_subnet(text, out);
	case HD_KIND_SIZE:
	case HD_KIND_COUNT:
	case HD_KIND_MS:
		return parse_amount(info, text, out);
	}
	return false;
}

static void allowed_words(const char *allowed, char *text, size_t size)
{
	int used = snprintf(text, size, "one of ");

	for (; *allowed && used < (int)size; allowed++)
		used += snprintf(text + used, size - used, *allowed == '|' ? ", " : "%c", *allowed);
}

static void allowed_numbers(const struct hd_setting_info *info, const char *what, char *text, size_t size)
{
	int least = (int)strcspn(info->allowed, ".");

	snprintf(text, size, "%s from %.*s to %s", what, least, info->allowed, info->allowed + least + 2);
}

void hd_setting_help(unsigned i, char *text, size_t size)
{
	const struct hd_setting_info *info = hd_setting_at(i);

	if (!info)
		return;
	switch (info->kind) {
	case HD_KIND_STRING:
		snprintf(text, size, "a text such as %s", info->allowed);
		break;
	case HD_KIND_SUBNET:
		snprintf(text, size, "an IPv4 subnet such as %s", info->allowed);
		break;
	case HD_KIND_CHOICE:
		allowed_words(info->allowed, text, size);
		break;
	case HD_KIND_BOOL:
		snprintf(text, size, "yes or no");
		break;
	case HD_KIND_RANGE:
		allowed_numbers(info, "first-last or one number,", text, size);
		break;
	case HD_KIND_SIZE:
		allowed_numbers(info, "a size in bytes, or with K, M or G,", text, size);
		break;
	case HD_KIND_COUNT:
		allowed_numbers(info, "a number", text, size);
		break;
	case HD_KIND_MS:
		allowed_numbers(info, "milliseconds", text, size);
		break;
	}
}

static void warn_bad_value(unsigned i, const char *variable, const char *text)
{
	char help[160] = "";

	hd_setting_help(i, help, sizeof(help));
	hd_warn("%s=\"%s\" is not understood: it takes %s; using the default, %s", variable, text, help,
		*settings[i].fallback ? settings[i].fallback : "which is empty");
}

static void config_store(struct value *value, const char *text, const struct meaning *m, bool two,
			 const char *source)
{
	atomic_store(&value->number, two ? m->first << 32 | m->last : m->first);
	atomic_store(&value->source, source);
	atomic_store(&value->text, text);
}

/* What this variable says; NULL: it is unset, or empty, which is no different. */
static const char *config_said(const char *variable)
{
	const char *text = secure_getenv(variable);

	return text && *text ? text : NULL;
}

/* load_lock held. */
static void load_one(unsigned i)
{
	const struct hd_setting_info *info = &settings[i];
	struct value *value = &values[i];
	struct meaning m;
	char variable[64];

	snprintf(variable, sizeof(variable), "%s", info->env);
	const char *text = config_said(variable);
	if (!text) {
		snprintf(variable, sizeof(variable), "FI_%s", info->env);
		text = config_said(variable);
	}
	const char *source = text ? intern(variable) : NULL;
	text = text ? intern(text) : NULL;
	if (!text) {
		text = info->fallback;
		source = NULL;
	}
	bool first_time = value->seen != text;

	value->seen = text;
	if (!config_parse(info, text, &m)) {
		if (first_time)
			warn_bad_value(i, variable, text);
		text = info->fallback;
		source = NULL;
		config_parse(info, text, &m);
	}
	config_store(value, text, &m, info->kind == HD_KIND_RANGE || info->kind == HD_KIND_SUBNET, source);
}

void hd_config_load(void)
{
	hd_lock_take(&load_lock);
	/* the level first, so that warnings about the others obey it */
	load_one(HD_SET_LOG);
	hd_log_set_level((enum hd_log_level)atomic_load(&values[HD_SET_LOG].number));
	for (unsigned i = 0; i < HD_SET_COUNT; i++)
		if (i != HD_SET_LOG)
			load_one(i);
	if (!atomic_exchange(&loaded, true) && !getauxval(AT_SECURE))
		hd_spelling_check();
	hd_lock_give(&load_lock);
}

static struct value *value_of(enum hd_setting id)
{
	if (!atomic_load(&loaded))
		hd_config_load();
	return &values[id];
}

static uint64_t config_number_of(enum hd_setting id, enum hd_setting_kind kind)
{
	if ((unsigned)id >= HD_SET_COUNT || settings[id].kind != kind)
		return 0;
	return atomic_load(&value_of(id)->number);
}

const char *hd_config_str(enum hd_setting id)
{
	return (unsigned)id < HD_SET_COUNT ? atomic_load(&value_of(id)->text) : "";
}

uint64_t hd_config_size(enum hd_setting id)
{
	return config_number_of(id, HD_KIND_SIZE);
}

uint64_t hd_config_count(enum hd_setting id)
{
	return config_number_of(id, HD_KIND_COUNT);
}

bool hd_config_bool(enum hd_setting id)
{
	return config_number_of(id, HD_KIND_BOOL);
}

unsigned hd_config_ms(enum hd_setting id)
{
	return (unsigned)config_number_of(id, HD_KIND_MS);
}

unsigned hd_config_choice(enum hd_setting id)
{
	return (unsigned)config_number_of(id, HD_KIND_CHOICE);
}

struct hd_range hd_config_range(enum hd_setting id)
{
	uint64_t n = config_number_of(id, HD_KIND_RANGE);

	return (struct hd_range){ .first = (uint32_t)(n >> 32), .last = (uint32_t)n };
}

struct hd_subnet hd_config_subnet(enum hd_setting id)
{
	uint64_t n = config_number_of(id, HD_KIND_SUBNET);

	return (struct hd_subnet){ (uint32_t)(n >> 32), (uint32_t)n };
}

const char *hd_config_source(enum hd_setting id)
{
	return (unsigned)id < HD_SET_COUNT ? atomic_load(&value_of(id)->source) : NULL;
}

const struct hd_setting_info *hd_setting_at(unsigned i)
{
	return i < HD_SET_COUNT ? &settings[i] : NULL;
}

enum hd_setting hd_setting_find(const char *name)
{
	unsigned i = 0;

	if (!strncasecmp(name, "HEDDLE_", 7))
		name += 7;
	while (i < HD_SET_COUNT && strcasecmp(name, settings[i].name))
		i++;
	return (enum hd_setting)i;
}

bool hd_setting_valid(unsigned i, const char *text)
{
	struct meaning m;

	return i < HD_SET_COUNT && config_parse(&settings[i], text, &m);
}
