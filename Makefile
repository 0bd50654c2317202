# crown-lua. `make help` lists what there is; no target needs a manual step before it.
SHELL := /bin/bash
.DEFAULT_GOAL := all

VERSION := 0.1.0
PREFIX ?= /usr/local
BUILD ?= build
CC ?= gcc

FOLDERS := base election process loop net lua host bind
PKGS := luajit libcares openssl libbsd lua5.1-cjson
WARNINGS := -Wall -Wextra -Wpedantic -Werror -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wvla
CFLAGS ?= -O2 -g
ALL_CFLAGS = -std=c11 -D_GNU_SOURCE $(WARNINGS) -fPIE -pthread -MMD -MP \
  -DCROWN_VERSION='"$(VERSION)"' -Iruntime -I/usr/include/luajit-2.1 $(shell pkg-config --cflags libcares openssl) $(CFLAGS)
LDLIBS = -lluajit-5.1 -llua5.1-cjson -lev -lcares -lssl -lcrypto -lbsd -lm -ldl -pthread
ALL_LDFLAGS = -pie -rdynamic -Wl,-z,relro,-z,now $(LDFLAGS)

SOURCES := $(foreach f,$(FOLDERS),$(wildcard runtime/$(f)/*.c))
OBJECTS := $(SOURCES:%.c=$(BUILD)/%.o) $(BUILD)/embedded.o
LUA_SOURCES := $(shell find lua/crown lua/oracles -name '*.lua' 2>/dev/null | sort)
PROGRAM ?= crown-lua

.PHONY: all
all: $(PROGRAM) ## build ./crown-lua

$(PROGRAM): $(OBJECTS) $(BUILD)/runtime/main.o
	@echo "  LD    $@"; $(CC) $(ALL_CFLAGS) $(ALL_LDFLAGS) -o $@ $^ $(LDLIBS)

$(BUILD)/embedded.c: $(LUA_SOURCES) tools/embed.lua
	@mkdir -p $(@D)
	luajit tools/embed.lua $(LUA_SOURCES) > $@.new && mv $@.new $@

$(BUILD)/embedded.o: $(BUILD)/embedded.c
	@echo "  CC    $<"; $(CC) $(ALL_CFLAGS) -c -o $@ $<

$(BUILD)/%.o: %.c
	@mkdir -p $(@D)
	@echo "  CC    $<"; $(CC) $(ALL_CFLAGS) -c -o $@ $<

# C unit tests: spec/c/FOLDER/NAME_test.c becomes build/spec/c/FOLDER/NAME_test, linked with every folder
# that runtime/LAYERS lets FOLDER include.
allowed = $(1) $(shell sed -n 's/^$(1): *//p' runtime/LAYERS)
C_TESTS := $(patsubst %.c,$(BUILD)/%,$(wildcard spec/c/*/*_test.c))
.SECONDEXPANSION:
$(C_TESTS): $(BUILD)/%: $(BUILD)/%.o $$(foreach f,$$(call allowed,$$(notdir $$(patsubst %/,%,$$(dir $$*)))),$$(patsubst %.c,$(BUILD)/%.o,$$(wildcard runtime/$$f/*.c))) $(BUILD)/embedded.o
	@echo "  LD    $@"; $(CC) $(ALL_CFLAGS) $(ALL_LDFLAGS) -o $@ $^ -lcmocka $(LDLIBS)

.PHONY: test-c
test-c: $(C_TESTS) ## run the C unit tests
	@set -e; for t in $^; do echo "== $$t"; $$t; done

.PHONY: clean
clean: ## remove what was built
	rm -rf $(BUILD) $(PROGRAM)

-include $(shell find $(BUILD) -name '*.d' 2>/dev/null)
