/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* A statically linked program, which no environment variable can make load anything. */
int main(void)
{
	return 42;
}
