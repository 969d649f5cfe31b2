/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
#ifndef HEDDLE_BASE_CONFIG_H
#define HEDDLE_BASE_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The settings of heddle(7), from the table in settings.def: HD_SET_TRANSPORT and so on. */
enum hd_setting {
#define HD_SETTING(name, kind, allowed, fallback, meaning) HD_SET_##name,
#include "base/settings.def"
#undef HD_SETTING
	HD_SET_COUNT,
};

enum hd_setting_kind {
	HD_KIND_STRING,
	HD_KIND_CHOICE, /* one of a list of words */
	HD_KIND_SIZE,	/* bytes, with an optional K, M or G of 1024 */
	HD_KIND_COUNT,
	HD_KIND_BOOL,	/* yes or no; 1, 0, true, false, on and off are understood */
	HD_KIND_MS,	/* milliseconds */
	HD_KIND_RANGE,	/* first-last, or one number */
	HD_KIND_SUBNET, /* of IPv4, or empty */
};

/* What hd_config_choice(HD_SET_TRANSPORT) returns. */
enum hd_transport_choice {
	HD_USE_AUTO,
	HD_USE_SHM,
	HD_USE_TCP,
};

struct hd_setting_info {
	const char *name; /* "EAGER_SHM" */
	const char *env;  /* "HEDDLE_EAGER_SHM" */
	enum hd_setting_kind kind;
	const char *allowed;  /* as in settings.def */
	const char *fallback; /* the default, as text */
	const char *meaning;  /* one sentence */
};

struct hd_range {
	uint32_t first, last; /* both included */
};

struct hd_subnet {
	uint32_t net, mask;
};

/*
 * hd_config_load reads every setting from the environment and sets the log level. A bad value is
 * warned of once and the default is used; the first load warns of variables that are no setting
 * too. Called when a node opens; cheap. Any thread.
 */
void hd_config_load(void);

/*
 * The getters return the value of the last load (the first one loads). The kind must fit the
 * setting; a getter of another kind returns 0. Any thread.
 *
 * hd_config_str returns the value of any kind as text, which stays valid until Heddle is unloaded.
 */
const char *hd_config_str(enum hd_setting id);
uint64_t hd_config_size(enum hd_setting id); /* bytes */
uint64_t hd_config_count(enum hd_setting id);
bool hd_config_bool(enum hd_setting id);
unsigned hd_config_ms(enum hd_setting id);	     /* milliseconds */
unsigned hd_config_choice(enum hd_setting id);	     /* index into the list of words */
struct hd_range hd_config_range(enum hd_setting id); /* {0, 0} when unset */
/* address and mask in the host's byte order, both 0 when unset */
struct hd_subnet hd_config_subnet(enum hd_setting id);

/*
 * hd_config_source names the variable that the value came from, or returns NULL
 * for a default. Any thread.
 */
const char *hd_config_source(enum hd_setting id);

/*
 * hd_setting_at returns the description of setting `i`, or NULL from
 * HD_SET_COUNT on. Static storage.
 */
const struct hd_setting_info *hd_setting_at(unsigned i);

/*
 * hd_setting_find returns the setting of that name, with or without HEDDLE_ in front, in any case
 * of letters; HD_SET_COUNT when there is none.
 */
enum hd_setting hd_setting_find(const char *name);

/* hd_setting_valid tells whether a load would take this text as a value. Any thread. */
bool hd_setting_valid(unsigned i, const char *text);

/*
 * hd_setting_help writes what values a setting takes, such as "one of auto, shm, tcp", into
 * `text`, cut to `size` bytes.
 */
void hd_setting_help(unsigned i, char *text, size_t size);

#endif
