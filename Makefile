# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# SPDX-FileCopyrightText: 2026 The Heddle authors
#
# A thin front of Meson: `make help` lists what it does.

PREFIX ?= /usr/local
DESTDIR ?=
BUILD := build
MESON_FLAGS ?=

# A warning must not stop somebody with a newer compiler; it must stop us.
ifdef CI
MESON_FLAGS += -Dwerror=true
endif

SOURCES = $(shell git ls-files '*.c' '*.h')

.PHONY: all help demo check check-all bench conformance install fmt clean deps

all: $(BUILD)/build.ninja
	@ninja -C $(BUILD)

help:
	@echo 'make                         set up and build into $(BUILD)/'
	@echo 'make demo                    set up, build, show fi_pingpong beside the other providers, an RDMA and a uDAPL program'
	@echo 'make check                   set up, build and test, the short way; the last line is "N passed, N failed"'
	@echo 'make check-all               the same with all that takes long'
	@echo 'make conformance             the conformance cases on heddle and on the other providers, as a table'
	@echo 'make bench                   benchmarks beside the other libraries'
	@echo 'make install PREFIX= DESTDIR=   install below PREFIX ($(PREFIX))'
	@echo 'make fmt                     format the C sources'
	@echo 'make clean                   remove $(BUILD)/'

deps:
	@ci/install-deps build

$(BUILD)/build.ninja: | deps
	@meson setup $(BUILD) --prefix=$(abspath $(PREFIX)) $(MESON_FLAGS)

demo:
	@ci/demo

check:
	@ci/check

check-all:
	@ci/check --all

conformance:
	@ci/install-deps build check
	@$(MAKE) --no-print-directory all
	@tests/conformance/matrix $(BUILD)

bench:
	@ci/install-deps build bench
	@$(MAKE) --no-print-directory all
	@bench/run

install: all
	@meson configure $(BUILD) --prefix=$(abspath $(PREFIX)) && ninja -C $(BUILD)
	@DESTDIR=$(if $(DESTDIR),$(abspath $(DESTDIR))) meson install -C $(BUILD) --no-rebuild
	@fragment=$(abspath $(PREFIX))/share/heddle/heddle.dat.conf; \
	if [ -e "$(if $(DESTDIR),$(abspath $(DESTDIR)))$$fragment" ]; then \
		echo "uDAPL: 'heddle run' needs nothing more. To offer adapter heddle to all programs: cat $$fragment >> /etc/dat.conf"; \
	fi

fmt:
	@clang-format -i $(SOURCES)

clean:
	@rm -rf $(BUILD)
