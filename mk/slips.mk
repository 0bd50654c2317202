# Slips that nobody thought of, made of the tokens of C and Lua: docs/own-tests.md.
N ?=
SLIPS_SEED = $(if $(filter file,$(origin SEED)),,$(SEED))
CHANGED ?=
SLIPS_SECONDS ?=
SLIPS_JOBS ?= 2

.PHONY: slips
slips: packages-build packages-test packages-lint all test-helpers ## make slips and see whether a test notices (SEED= N= FOLDER= CHANGED=1 BASE= NARROW=1 SLIPS_SECONDS=)
	@luajit tools/slips.lua run seed='$(SLIPS_SEED)' n='$(N)' folder='$(FOLDER)' changed='$(CHANGED)' base='$(BASE)' narrow='$(NARROW)' seconds='$(SLIPS_SECONDS)' jobs='$(SLIPS_JOBS)'

.PHONY: slips-list
slips-list: packages-build ## the slips that such a run would make
	@luajit tools/slips.lua list seed='$(SLIPS_SEED)' n='$(N)' folder='$(FOLDER)' changed='$(CHANGED)' base='$(BASE)'

.PHONY: slips-check
slips-check: packages-build
	@luajit tools/slips.lua check

# The table of which tests execute which functions, without which `make slips` runs all that spec/suites names.
EXECUTED := $(abspath build-executed)
UNITS_EXECUTED = $(or $(UNITS),$(patsubst spec/%.c,%,$(wildcard spec/c/*/*_test.c)))
.PHONY: executed
executed: packages-build packages-test test-helpers ## note which functions each test executes, so that slips run those tests only (UNITS=: c/FOLDER/NAME_test, spec/..._spec.lua)
	@mkdir -p build-slips $(EXECUTED)/places && chmod 1777 $(EXECUTED)/places
	@$(CC) $(filter-out -MMD -MP,$(ALL_CFLAGS)) -DEXECUTED_DIRECTORY='"$(EXECUTED)/places"' -c -o $(EXECUTED)/executed.o tools/slips/executed.c
	@$(MAKE) --no-print-directory -s BUILD=build-executed PROGRAM=build-executed/crown-lua CFLAGS='-O0 -g -fsanitize-coverage=trace-pc' \
	  LDFLAGS='$(EXECUTED)/executed.o' build-executed/crown-lua $(patsubst %.c,build-executed/%,$(wildcard spec/c/*/*_test.c))
	@luajit tools/slips.lua executed units='$(strip $(UNITS_EXECUTED))'
