# crown-lua. `make help` lists what there is; no target needs a manual step before it.
SHELL := /bin/bash
# Elsewhere [a-z] may lack a letter, as it does "i" in Turkish. What $(shell) runs has to say so itself.
export LC_ALL := C.UTF-8
.DEFAULT_GOAL := all

VERSION := 0.2.0-dev
PREFIX ?= /usr/local
BUILD ?= build
PROGRAM ?= crown-lua
CC := $(if $(filter default,$(origin CC)),gcc,$(CC))

# runtime/main.c is the program's; every folder is a layer: runtime/LAYERS.
FOLDERS := base election process loop net postgres http lua telemetry child candidate host bind
WARNINGS := -Wall -Wextra -Wpedantic -Werror -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wvla
CFLAGS ?= -O2 -g
ALL_CFLAGS = -std=c11 -D_GNU_SOURCE $(WARNINGS) -fPIE -pthread -MMD -MP \
  -DCROWN_VERSION='"$(VERSION)"' -ffile-prefix-map=$(CURDIR)=. -Iruntime -I/usr/include/luajit-2.1 -I/usr/include/postgresql $(CFLAGS)
LDLIBS = -lluajit-5.1 -llua5.1-cjson -lev -lcares -lhiredis -lbsd -lm -ldl -pthread
ALL_LDFLAGS = -pie -rdynamic -Wl,-z,relro,-z,now -Wl,--as-needed $(LDFLAGS)

SOURCES := $(foreach f,$(FOLDERS),$(wildcard runtime/$(f)/*.c))
HEADERS := $(foreach f,$(FOLDERS),$(wildcard runtime/$(f)/*.h))
OBJECTS := $(SOURCES:%.c=$(BUILD)/%.o) $(BUILD)/embedded.o
LUA_SOURCES := $(shell find lua/crown lua/stores lua/oracles -name '*.lua' 2>/dev/null | LC_ALL=C sort)
INSTALL_PACKAGES := tools/install-packages.sh

.PHONY: all
all: packages-build ## build ./crown-lua
	@$(MAKE) --no-print-directory $(PROGRAM)

# The first two groups of `make help`; everything else proves or measures something.
HELP_USE := all run demo install uninstall deb docs dist help
HELP_DEVELOP := check test lint layers sentences status-pictures format clean test-c test-spec test-fault coverage executed mutants-note mutants-repath

.PHONY: help
help: ## this list
	@sed -n 's/^\([a-z][a-z-]*\):.*## \(.*\)/\1\t\2/p' $(MAKEFILE_LIST) | sort | awk -F'\t' ' \
	  function show(title, lines) { printf "%s:\n%s\n", title, lines } \
	  BEGIN { split("$(HELP_USE)", names, " "); for (i in names) group[names[i]] = "use"; \
	    split("$(HELP_DEVELOP)", names, " "); for (i in names) group[names[i]] = "develop" } \
	  { line = sprintf("  make %-20s %s\n", $$1, $$2); kind = ($$1 in group) ? group[$$1] : "prove"; list[kind] = list[kind] line } \
	  END { show("Use", list["use"]); show("Develop", list["develop"]); show("Prove and measure", list["prove"]) }'

.PHONY: packages-build packages-test packages-lint packages-check packages-bench packages-model packages-coverage packages-docs packages-package packages-kubernetes packages-curator
packages-build packages-test packages-lint packages-check packages-bench packages-model packages-coverage packages-docs packages-package packages-kubernetes packages-curator: packages-%:
	@$(INSTALL_PACKAGES) build $*

$(PROGRAM): $(OBJECTS) $(BUILD)/runtime/main.o
	@echo "  LD    $@"; $(CC) $(ALL_CFLAGS) $(ALL_LDFLAGS) -o $@ $^ $(LDLIBS)

$(BUILD)/embedded.c: $(LUA_SOURCES) tools/embed.lua tools/bytecode.lua
	@mkdir -p $(@D)
	@echo "  EMBED $@"; luajit tools/embed.lua $(LUA_SOURCES) > $@.new && mv $@.new $@

$(BUILD)/embedded.o: $(BUILD)/embedded.c
	@echo "  CC    $<"; $(CC) $(ALL_CFLAGS) -c -o $@ $<

# What says the version is made again when that changes.
$(BUILD)/runtime/main.o $(BUILD)/runtime/bind/bind_core.o: Makefile

$(BUILD)/%.o: %.c
	@mkdir -p $(@D)
	@echo "  CC    $<"; $(CC) $(ALL_CFLAGS) -c -o $@ $<

.PHONY: run
run: all ## lead an election on this host, explained as it goes
	./$(PROGRAM) lua/examples/hello.lua $(SECONDS_TO_RUN)

include $(filter-out mk/install.mk,$(wildcard mk/*.mk))

include mk/install.mk

.PHONY: clean
clean: ## remove what was built
	rm -rf build build-* crown-lua

-include $(shell find $(BUILD) -name '*.d' 2>/dev/null)
