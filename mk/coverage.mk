# What no test executes: a report, not a goal. gcov counts C; Lua's lines are counted by spec/support/coverage.c, since the
# hook that luacov needs belongs to the runtime. A process that is ended by SIGKILL leaves no count of its own.
COVERAGE := $(abspath build-coverage)

.PHONY: coverage
coverage: packages-build packages-test packages-coverage ## what no test executes, C and Lua (UNITS=: of some tests only)
	@mkdir -p $(COVERAGE)/lines && chmod 1777 $(COVERAGE)/lines && rm -f $(COVERAGE)/lines/* && \
	  find $(COVERAGE) -name '*.gcda' -delete
	@$(CC) $(filter-out -MMD -MP,$(ALL_CFLAGS)) -DCOVERAGE_DIRECTORY='"$(COVERAGE)/lines"' -c -o $(COVERAGE)/coverage.o \
	  spec/support/coverage.c
	@$(MAKE) --no-print-directory BUILD=build-coverage PROGRAM=build-coverage/crown-lua CFLAGS='-O0 -g --coverage -include \
	  spec/support/coverage.h' LDFLAGS='$(COVERAGE)/coverage.o -lluajit-5.1' coverage-tests
	@luajit tools/coverage.lua $(COVERAGE) | tee $(COVERAGE)/report

.PHONY: coverage-tests
coverage-tests: $(PROGRAM) test-helpers $(C_TESTS)
	-@$(RUN_UNITS) everything $(if $(UNITS),$(UNITS),$(C_TESTS) $(SPECS))
