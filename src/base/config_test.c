/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <pthread.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/config.h"
#include "base/lock.h"
#include "base/log.h"

static unsigned warnings;
static char last_warning[HD_LOG_MAX];

static bool count_warning(void *arg, enum hd_log_level level, const char *room, const char *message)
{
	warnings++;
	snprintf(last_warning, sizeof(last_warning), "%s", message);
	return true;
}

static int clean_environment(void **state)
{
	for (unsigned i = 0; i < HD_SET_COUNT; i++) {
		char variable[64];

		snprintf(variable, sizeof(variable), "FI_%s", hd_setting_at(i)->env);
		unsetenv(variable);
		unsetenv(hd_setting_at(i)->env);
	}
	hd_log_set_sink(count_warning, NULL);
	hd_config_load();
	warnings = 0;
	last_warning[0] = '\0';
	return 0;
}

static void set(const char *variable, const char *value)
{
	setenv(variable, value, 1);
	hd_config_load();
}

/*
 * Every default must parse, or a bad value could not fall back to it; each line says what it means.
 */
static void every_line_of_the_table_is_sound(void **state)
{
	for (unsigned i = 0; i < HD_SET_COUNT; i++) {
		const struct hd_setting_info *info = hd_setting_at(i);

		set(info->env, info->fallback);
		assert_int_equal(warnings, 0);
		assert_string_equal(hd_config_str(i), info->fallback);
		assert_true(strlen(info->meaning) > 10);
		assert_int_equal(info->meaning[strlen(info->meaning) - 1], '.');
		assert_int_equal(strncmp(info->env, "HEDDLE_", 7), 0);
	}
	assert_null(hd_setting_at(HD_SET_COUNT));
}

static void defaults_hold_in_an_empty_environment(void **state)
{
	assert_int_equal(hd_config_choice(HD_SET_TRANSPORT), HD_USE_AUTO);
	assert_int_equal(hd_config_size(HD_SET_EAGER_SHM), 32 << 10);
	assert_int_equal(hd_config_ms(HD_SET_CONNECT_TIMEOUT), 5000);
	assert_true(hd_config_bool(HD_SET_DIRECT_COPY));
	assert_int_equal(hd_config_range(HD_SET_PORTS).last, 0);
	assert_string_equal(hd_config_str(HD_SET_ADDR), "");
	assert_null(hd_config_source(HD_SET_ADDR));
}

static void sizes_take_suffixes(void **state)
{
	set("HEDDLE_EAGER_SHM", "8192");
	assert_int_equal(hd_config_size(HD_SET_EAGER_SHM), 8192);
	set("HEDDLE_EAGER_SHM", "3k");
	assert_int_equal(hd_config_size(HD_SET_EAGER_SHM), 3 << 10);
	set("HEDDLE_EAGER_SHM", "2M");
	assert_int_equal(hd_config_size(HD_SET_EAGER_SHM), 2 << 20);
	set("HEDDLE_UNEXPECTED_MAX", "7G");
	assert_int_equal(hd_config_size(HD_SET_UNEXPECTED_MAX), 7ULL << 30);
	assert_int_equal(warnings, 0);
}

static void choices_give_their_index(void **state)
{
	set("HEDDLE_TRANSPORT", "shm");
	assert_int_equal(hd_config_choice(HD_SET_TRANSPORT), HD_USE_SHM);
	set("HEDDLE_TRANSPORT", "TCP");
	assert_int_equal(hd_config_choice(HD_SET_TRANSPORT), HD_USE_TCP);
}

static void bools_take_the_usual_words(void **state)
{
	static const char *const no[] = { "no", "0", "false", "OFF" };
	static const char *const yes[] = { "Yes", "1", "true", "on" };

	for (int i = 0; i < 4; i++) {
		set("HEDDLE_DIRECT_COPY", no[i]);
		assert_false(hd_config_bool(HD_SET_DIRECT_COPY));
		set("HEDDLE_DIRECT_COPY", yes[i]);
		assert_true(hd_config_bool(HD_SET_DIRECT_COPY));
	}
}

static void ranges_take_one_port_or_two(void **state)
{
	set("HEDDLE_PORTS", "4000-4010");
	assert_int_equal(hd_config_range(HD_SET_PORTS).first, 4000);
	assert_int_equal(hd_config_range(HD_SET_PORTS).last, 4010);
	set("HEDDLE_PORTS", "4001");
	assert_int_equal(hd_config_range(HD_SET_PORTS).first, 4001);
	assert_int_equal(hd_config_range(HD_SET_PORTS).last, 4001);
}

static void libfabric_name_counts_where_ours_is_unset(void **state)
{
	set("FI_HEDDLE_TRANSPORT", "tcp");
	assert_int_equal(hd_config_choice(HD_SET_TRANSPORT), HD_USE_TCP);
	assert_string_equal(hd_config_source(HD_SET_TRANSPORT), "FI_HEDDLE_TRANSPORT");
	set("HEDDLE_TRANSPORT", "shm");
	assert_int_equal(hd_config_choice(HD_SET_TRANSPORT), HD_USE_SHM);
	assert_string_equal(hd_config_source(HD_SET_TRANSPORT), "HEDDLE_TRANSPORT");
}

static void bad_values_warn_once_and_give_the_default(void **state)
{
	static const struct {
		enum hd_setting id;
		const char *text, *says;
	} bad[] = {
		{ HD_SET_TRANSPORT, "sh", "one of auto, shm, tcp" },
		{ HD_SET_TRANSPORT, "auto|shm", "one of auto, shm, tcp" },
		{ HD_SET_EAGER_SHM, "-1", "a size in bytes" },
		{ HD_SET_EAGER_SHM, "16KK", "a size in bytes" },
		{ HD_SET_EAGER_SHM, "2G", "from 0 to 1G" },
		{ HD_SET_EAGER_SHM, "99999999999999999999", "a size in bytes" },
		{ HD_SET_EAGER_SHM, "17179869184G", "a size in bytes" },
		{ HD_SET_EAGER_SHM, " 5", "a size in bytes" },
		{ HD_SET_CONNECT_TIMEOUT, "0", "milliseconds from 1 to 3600000" },
		{ HD_SET_CONNECT_TIMEOUT, "5s", "milliseconds" },
		{ HD_SET_CONNECT_TIMEOUT, "5K", "milliseconds" },
		{ HD_SET_PORTS, "9-8", "first-last" },
		{ HD_SET_PORTS, "70000", "to 65535" },
		{ HD_SET_PORTS, "0-9", "first-last" },
		{ HD_SET_PORTS, "1-2-3", "first-last" },
		{ HD_SET_DIRECT_COPY, "maybe", "yes or no" },
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		const struct hd_setting_info *info = hd_setting_at(bad[i].id);

		clean_environment(NULL);
		set(info->env, bad[i].text);
		hd_config_load();
		assert_int_equal(warnings, 1);
		assert_non_null(strstr(last_warning, bad[i].says));
		assert_non_null(strstr(last_warning, info->env));
		assert_string_equal(hd_config_str(bad[i].id), info->fallback);
		assert_null(hd_config_source(bad[i].id));
	}
}

static void empty_value_is_the_default(void **state)
{
	set("HEDDLE_TRANSPORT", "");
	set("HEDDLE_EAGER_SHM", "");
	assert_int_equal(warnings, 0);
	assert_int_equal(hd_config_size(HD_SET_EAGER_SHM), 32 << 10);
}

static void empty_value_hides_no_other_name(void **state)
{
	set("FI_HEDDLE_TRANSPORT", "tcp");
	set("HEDDLE_TRANSPORT", "");
	assert_int_equal(hd_config_choice(HD_SET_TRANSPORT), HD_USE_TCP);
	assert_string_equal(hd_config_source(HD_SET_TRANSPORT), "FI_HEDDLE_TRANSPORT");
	set("FI_HEDDLE_ADDR", "lo");
	set("HEDDLE_ADDR", "");
	assert_string_equal(hd_config_str(HD_SET_ADDR), "lo");
}

static void subnets_are_of_ip4(void **state)
{
	static const char *const bad[] = { "abc",	   "10.1.0.0",	 "10.1.0.0/",
					   "10.1.0.0/32",  "10.1.0.0/0", "10.1.0/16",
					   "10.1.0.0/16x", "/16",	 "fd00::/8" };

	set("HEDDLE_LID_SUBNET", "10.1.2.3/16");
	assert_int_equal(hd_config_subnet(HD_SET_LID_SUBNET).net, 0x0a010000);
	assert_int_equal(hd_config_subnet(HD_SET_LID_SUBNET).mask, 0xffff0000);
	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		set("HEDDLE_LID_SUBNET", bad[i]);
		assert_int_equal(warnings, i + 1);
		assert_int_equal(hd_config_subnet(HD_SET_LID_SUBNET).mask, 0);
		assert_string_equal(hd_config_str(HD_SET_LID_SUBNET), "");
		assert_null(hd_config_source(HD_SET_LID_SUBNET));
	}
}

static void text_stays_valid_after_a_reload(void **state)
{
	set("HEDDLE_ALLOW", "10.0.0.0/8");
	const char *before = hd_config_str(HD_SET_ALLOW);
	set("HEDDLE_ALLOW", "192.168.0.0/16");
	assert_string_equal(before, "10.0.0.0/8");
	assert_string_equal(hd_config_str(HD_SET_ALLOW), "192.168.0.0/16");
}

static void getter_of_another_kind_returns_zero(void **state)
{
	assert_int_equal(hd_config_size(HD_SET_CONNECT_TIMEOUT), 0);
	assert_int_equal(hd_config_ms(HD_SET_EAGER_SHM), 0);
	assert_false(hd_config_bool(HD_SET_PORTS));
}

static void settings_are_found_by_either_name(void **state)
{
	assert_int_equal(hd_setting_find("EAGER_SHM"), HD_SET_EAGER_SHM);
	assert_int_equal(hd_setting_find("heddle_eager_tcp"), HD_SET_EAGER_TCP);
	assert_int_equal(hd_setting_find("HEDDLE_"), HD_SET_COUNT);
	assert_int_equal(hd_setting_find("EAGER"), HD_SET_COUNT);
	assert_true(hd_setting_valid(HD_SET_TRANSPORT, "tcp"));
	assert_false(hd_setting_valid(HD_SET_TRANSPORT, "udp"));
	assert_false(hd_setting_valid(HD_SET_COUNT, "tcp"));
}

static void log_setting_sets_the_level(void **state)
{
	set("HEDDLE_LOG", "debug");
	assert_true(hd_log_on(HD_LOG_DEBUG));
	set("HEDDLE_LOG", "error");
	assert_false(hd_log_on(HD_LOG_WARN));
	assert_true(hd_log_on(HD_LOG_ERROR));
}

static struct hd_lock outer;
static atomic_bool over;

static void *load_with_a_lock(void *arg)
{
	while (!atomic_load(&over)) {
		hd_lock_take(&outer);
		sched_yield(); /* somebody forks */
		hd_config_load();
		hd_lock_give(&outer);
	}
	return NULL;
}

/* Somebody who has another lock reads settings, as a call is screened: a fork waits for both. */
static void a_fork_waits_for_who_loads(void **state)
{
	pthread_t thread;
	int status;

	assert_int_equal(pthread_create(&thread, NULL, load_with_a_lock, NULL), 0);
	for (int i = 0; i < 100; i++) {
		pid_t pid = fork();

		assert_true(pid >= 0);
		if (!pid) {
			alarm(20); /* never a hang */
			hd_config_load();
			_exit(0);
		}
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_int_equal(status, 0);
	}
	atomic_store(&over, true);
	assert_int_equal(pthread_join(thread, NULL), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(every_line_of_the_table_is_sound, clean_environment),
		cmocka_unit_test_setup(defaults_hold_in_an_empty_environment, clean_environment),
		cmocka_unit_test_setup(sizes_take_suffixes, clean_environment),
		cmocka_unit_test_setup(choices_give_their_index, clean_environment),
		cmocka_unit_test_setup(bools_take_the_usual_words, clean_environment),
		cmocka_unit_test_setup(ranges_take_one_port_or_two, clean_environment),
		cmocka_unit_test_setup(libfabric_name_counts_where_ours_is_unset, clean_environment),
		cmocka_unit_test_setup(bad_values_warn_once_and_give_the_default, clean_environment),
		cmocka_unit_test_setup(empty_value_is_the_default, clean_environment),
		cmocka_unit_test_setup(empty_value_hides_no_other_name, clean_environment),
		cmocka_unit_test_setup(subnets_are_of_ip4, clean_environment),
		cmocka_unit_test_setup(text_stays_valid_after_a_reload, clean_environment),
		cmocka_unit_test_setup(getter_of_another_kind_returns_zero, clean_environment),
		cmocka_unit_test_setup(settings_are_found_by_either_name, clean_environment),
		cmocka_unit_test_setup(log_setting_sets_the_level, clean_environment),
		cmocka_unit_test_setup(a_fork_waits_for_who_loads, clean_environment),
	};
	int failed;

	hd_lock_init(&outer, HD_LOCK_OUTER); /* before a first load, as a library has its locks */
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	hd_lock_fini(&outer);
	return failed;
}
