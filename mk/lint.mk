# Style and static checks; all of them must be silent.

C_FILES := $(wildcard runtime/*.c runtime/*/*.c runtime/*/*.h spec/c/*/*.[ch] spec/sim/*.[ch] spec/sim/*/*.[ch] spec/fuzz/*.c spec/support/*.[ch])
LUA_FILES := $(shell find lua spec bench tools -name '*.lua' 2>/dev/null)

.PHONY: lint
lint: packages-lint layers lint-format lint-lua lint-c lint-docs mutants-check slips-check ## all checks of style, layers and code

.PHONY: layers
layers: ## check that folders use only what runtime/LAYERS and lua/LAYERS allow
	@tools/check-layers.sh && tools/check-lua-layers.sh

.PHONY: lint-format
lint-format: packages-lint
	@clang-format --dry-run -Werror $(C_FILES) && echo "clang-format: ok"

.PHONY: lint-lua
lint-lua: packages-lint
	@luacheck -q $(LUA_FILES)

.PHONY: lint-c
lint-c: packages-lint $(BUILD)/embedded.c
	@for cc in gcc clang; do \
	  $(MAKE) --no-print-directory CC=$$cc BUILD=build-lint-$$cc PROGRAM=build-lint-$$cc/crown-lua build-lint-$$cc/crown-lua >/dev/null || exit 1; \
	  echo "$$cc -Werror: ok"; done
	@cppcheck -q --error-exitcode=1 --inline-suppr --std=c11 -Iruntime runtime && echo "cppcheck: ok"
	@clang-tidy --quiet --warnings-as-errors='*' $(SOURCES) runtime/main.c -- $(filter-out -MMD -MP,$(ALL_CFLAGS)) 2>/dev/null && echo "clang-tidy: ok"
	@! grep -rnE 'ev_timer|ev_now|ev_default_loop' runtime --include='*.c' | grep -v '^runtime/loop/loop.h' || { echo "ev_timer, ev_now and ev_default_loop are banned: loop.h says why"; exit 1; }

PAGES = README.md CONTRIBUTING.md $(sort $(shell find docs -name '*.md'))

.PHONY: lint-docs
lint-docs: site sentences lint-control

# What lintian would find only when a package is made.
.PHONY: lint-control
lint-control:
	@awk '/^Description:/ { within = 1 } within && length > 80 { print "debian/control:" NR ": more than 80 characters"; bad = 1 } \
	  END { exit bad }' debian/control

.PHONY: sentences
sentences: all ## check that no sentence of a page, of help or of a manual page is longer than a reader keeps in mind
	@mkdir -p $(BUILD)/man
	@for page in crown-lua.1 crown-lua.3; do ./$(PROGRAM) help --man $$page > $(BUILD)/man/$$page || exit 1; done
	@for verb in $(VERBS); do ./$(PROGRAM) help --man $$verb > $(BUILD)/man/$$verb.1 || exit 1; done
	@luajit tools/check-sentences.lua $(PAGES) $(BUILD)/man/*

.PHONY: format
format: packages-lint ## let clang-format lay out the C files
	clang-format -i $(C_FILES)
