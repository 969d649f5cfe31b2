/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* Names that are nearly those of settings, and variables that are none. */
#include "base/spelling.h"

#include <stdlib.h>
#include <string.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/log.h"

static void near_names_are_found(void **state)
{
	assert_int_equal(hd_setting_like("TRANSPROT"), HD_SET_TRANSPORT);
	assert_int_equal(hd_setting_like("heddle_adr"), HD_SET_ADDR);
	assert_int_equal(hd_setting_like("HEDDLE_LOG_LEVEL"), HD_SET_LOG);
	assert_int_equal(hd_setting_like("HEDDLE_ADDRESS"), HD_SET_ADDR);
	assert_int_equal(hd_setting_like("EAGER"), HD_SET_EAGER_SHM);
	assert_int_equal(hd_setting_like("HEDDLE_LOG"), HD_SET_COUNT);
	assert_int_equal(hd_setting_like("HEDDLE_HOME"), HD_SET_COUNT);
	assert_int_equal(hd_setting_like(""), HD_SET_COUNT);
	assert_int_equal(hd_setting_like("TRANSPORTTRANSPORTTRANSPORTTRANSPORTTRANSPORT"), HD_SET_COUNT);
}

struct told {
	int lines;
	char last[HD_LOG_MAX];
};

static bool tell(void *arg, enum hd_log_level level, const char *room, const char *message)
{
	struct told *told = arg;

	told->lines++;
	strcpy(told->last, message);
	return true;
}

static void warns_of(const char *name, const char *message)
{
	struct told told = { 0 };

	hd_log_set_sink(tell, &told);
	setenv(name, "1", 1);
	hd_spelling_check();
	unsetenv(name);
	hd_log_set_sink(NULL, NULL);
	assert_int_equal(told.lines, message ? 1 : 0);
	if (message)
		assert_string_equal(told.last, message);
}

static void variables_are_told(void **state)
{
	warns_of("HEDDLE_TRANSPROT", "HEDDLE_TRANSPROT is no setting: is it HEDDLE_TRANSPORT?");
	warns_of("FI_HEDDLE_EAGER_SMH", "FI_HEDDLE_EAGER_SMH is no setting: is it FI_HEDDLE_EAGER_SHM?");
	warns_of(
		"HEDDLE_GROUPS_OF_PEOPLE",
		"HEDDLE_GROUPS_OF_PEOPLE is no setting: the nearest is HEDDLE_GROUP_PORT; 'heddle info' lists all");
	warns_of("HEDDLE_Log", "HEDDLE_Log is no setting: is it HEDDLE_LOG?");
	warns_of("HEDDLE_LOG", NULL);
	warns_of("FI_HEDDLE_LOG", NULL);
	warns_of("HEDDLE", NULL);
	warns_of("MY_HEDDLE_LOGS", NULL);
	warns_of(
		"HEDDLE_TRANSPORTTRANSPORTTRANSPORTTRANSPORTTRANSPORTTRANSPORT",
		"HEDDLE_TRANSPORTTRANSPORTTRANSPORTTRANSPORTTRANSPORTTRANSPORT is no setting: is it HEDDLE_TRANSPORT?");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(near_names_are_found),
		cmocka_unit_test(variables_are_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
