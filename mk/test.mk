# Tests: C unit tests, the simulation, specs on the program itself, real processes that are killed and stopped.

# spec/c/FOLDER/NAME_test.c is linked with every folder that runtime/LAYERS lets FOLDER include, and
# with the other C files beside it.
allowed = $(1) $(shell sed -n 's/^$(1): *//p' runtime/LAYERS)
layer = $(notdir $(patsubst %/,%,$(dir $(1))))
# In a function of its own: a per cent sign among the prerequisites would become the stem.
test_objects = $(foreach f,$(call allowed,$(call layer,$(1))),$(patsubst %.c,$(BUILD)/%.o,$(wildcard runtime/$(f)/*.c))) \
  $(patsubst %.c,$(BUILD)/%.o,$(filter-out %_test.c,$(wildcard spec/c/$(call layer,$(1))/*.c)))
C_TESTS := $(patsubst %.c,$(BUILD)/%,$(wildcard spec/c/*/*_test.c))
.SECONDEXPANSION:
$(C_TESTS): $(BUILD)/%: $(BUILD)/%.o $(BUILD)/spec/support/test_filter.o $(BUILD)/spec/support/slept.o $(BUILD)/spec/support/notes.o $(BUILD)/embedded.o $$(call test_objects,$$*)
	@echo "  LD    $@"; $(CC) $(ALL_CFLAGS) $(ALL_LDFLAGS) -o $@ $^ -lcmocka $(LDLIBS)

# A keeper alone, or a warden, whose kernel is the test: these calls are led to it.
PROCESS_CALLS := poll _exit getppid setsid setpgid kill prctl signals_open title_set fds_close_except realtime_enter_again \
  deadman_open deadman_set rounds_kill_all wire_send
KEEPER_CALLS := $(PROCESS_CALLS) getpgrp isatty tcgetpgrp tcsetpgrp shutdown open waitid timerfd_create timerfd_settime \
  clock_boottime_ns signals_add_interrupt realtime_wait rounds_kill_once warden_start
KEEPER_TESTS := $(filter $(BUILD)/spec/c/process/keeper_%,$(C_TESTS))
$(KEEPER_TESTS): ALL_LDFLAGS += $(KEEPER_CALLS:%=-Wl,--wrap=%)
$(KEEPER_TESTS): $(patsubst %,$(BUILD)/spec/support/%.o,whole_keeper whole_kernel whole_process apart)
WARDEN_CALLS := $(PROCESS_CALLS) getpid geteuid getegid wire_pair plain_fork pidns_enter spawn_child realtime_reap pidfd_open \
  process_is_dead process_status child_spec_release stack_release log_warn
WARDEN_TESTS := $(filter $(BUILD)/spec/c/process/warden_%,$(C_TESTS))
$(WARDEN_TESTS): ALL_LDFLAGS += $(WARDEN_CALLS:%=-Wl,--wrap=%)
$(WARDEN_TESTS): $(patsubst %,$(BUILD)/spec/support/%.o,whole_warden whole_process apart)

# What becomes a child, in the same way.
SPAWN_CALLS := mmap munmap clone _exit execvp realtime_wait getpid getppid prctl sigaction syscall sigprocmask open dup2 \
  getrlimit fcntl fds_close_at_exec realtime_leave setpgid getpgrp getpgid isatty tcgetpgrp tcsetpgrp setgroups setresgid \
  setresuid chdir
SPAWN_TEST := $(BUILD)/spec/c/process/spawn_test
$(SPAWN_TEST): ALL_LDFLAGS += $(SPAWN_CALLS:%=-Wl,--wrap=%)
$(SPAWN_TEST): $(BUILD)/spec/support/whole_spawn.o

# Who kills, among processes that are made up.
ROUNDS_CALLS := getpid kill pidfd_open close pidfd_send_signal waitid sigtimedwait realtime_reap opendir readdir closedir \
  process_read process_stat process_is_dead process_has_children
ROUNDS_TEST := $(BUILD)/spec/c/process/rounds_made_test
$(ROUNDS_TEST): ALL_LDFLAGS += $(ROUNDS_CALLS:%=-Wl,--wrap=%)
$(ROUNDS_TEST): $(BUILD)/spec/support/whole_rounds.o

# A supervisor alone, in the same way.
SUPERVISOR_CALLS := poll kill getpid prctl clock_monotonic_ns signals_open_supervisor realtime_enter realtime_lock_memory \
  rseq_leave realtime_wait title_set title_line launch_runtime launch_prepare launch_keeper orphans_kill wills_execute \
  wills_close_ns watchdog_start watchdog_beat watchdog_idle watchdog_heed watchdog_answer watchdog_limit watchdog_look \
  watchdog_next_ns pulse_lasted_ns wire_send wills_close wills_take keepers_full fds_open_standard requests_init \
  log_set_format log_set_level log_warn log_error
SUPERVISOR_TESTS := $(filter $(BUILD)/spec/c/process/supervising_%,$(C_TESTS))
$(SUPERVISOR_TESTS): ALL_LDFLAGS += $(SUPERVISOR_CALLS:%=-Wl,--wrap=%)
$(SUPERVISOR_TESTS): $(patsubst %,$(BUILD)/spec/support/%.o,whole_supervisor whole_watchdog apart)

# Whose clock stands still.
$(BUILD)/spec/c/process/will_test: ALL_LDFLAGS += -Wl,--wrap=clock_monotonic_ns
$(BUILD)/spec/c/process/limits_test: ALL_LDFLAGS += -Wl,--wrap=getrlimit
$(BUILD)/spec/c/candidate/renewals_test: ALL_LDFLAGS += -Wl,--wrap=clock_wall_offset_ns -Wl,--wrap=random_below
# Whose /proc is a folder.
$(BUILD)/spec/c/process/process_stat_made_test: ALL_LDFLAGS += -Wl,--wrap=open -Wl,--wrap=readlink

$(BUILD)/ticker $(BUILD)/deny_calls: $(BUILD)/%: $(BUILD)/spec/support/%.o
	@echo "  LD    $@"; $(CC) $(ALL_CFLAGS) $(ALL_LDFLAGS) -o $@ $^

# They are loaded into programs that are not sanitized.
$(BUILD)/wrong_clock.so $(BUILD)/network_disk.so $(BUILD)/redirect.so: $(BUILD)/%.so: spec/support/%.c
	@echo "  LD    $@"; mkdir -p $(@D) && $(CC) $(filter-out -fsanitize=% -fno-sanitize-recover=%,$(ALL_CFLAGS)) -fPIC -shared -o $@ $<

# What the specs start besides the program.
HELPERS := $(BUILD)/ticker $(BUILD)/deny_calls $(BUILD)/wrong_clock.so $(BUILD)/network_disk.so $(BUILD)/redirect.so build/rows.so
.PHONY: test-helpers
test-helpers: $(HELPERS)

# One spec file is one process, which finds in the user's directory only what is its own: tools/run-spec.sh.
SPECS := $(sort $(wildcard spec/*/*_spec.lua))
FAULT_SPECS := $(filter spec/fault/%,$(SPECS))
RUN_UNITS = BUILD=$(BUILD) PROGRAM=$(PROGRAM) tools/run-units.sh

.PHONY: test
test: packages-test ## install what is missing, build, run every test
	@SEEDS=$(SEEDS) REGISTRY_SEEDS=$(REGISTRY_SEEDS) NEW_SEEDS=$(NEW_SEEDS) tools/run-tests.sh

.PHONY: test-c
test-c: packages-test $(C_TESTS) ## run the C unit tests
	@$(RUN_UNITS) "C units" $(C_TESTS)

.PHONY: test-spec
test-spec: packages-test all test-helpers ## run the specs on the program itself
	@$(RUN_UNITS) specs $(filter-out $(FAULT_SPECS),$(SPECS))

.PHONY: test-fault
test-fault: packages-test all test-helpers ## kill, stop and cut off real leaders
	@$(RUN_UNITS) faults $(FAULT_SPECS)

# Some minutes and 3 GB, once. The specs that need it are skipped without it.
KUBERNETES_PEER ?= $(HOME)/.cache/crown-lua/kubernetes
.PHONY: kubernetes-peer
kubernetes-peer: packages-kubernetes ## build kube-apiserver and a peer by client-go from Debian's source package, into KUBERNETES_PEER
	@nice tools/kubernetes/build-peer.sh $(KUBERNETES_PEER)

.PHONY: curator-peer
curator-peer: packages-curator ## install what candidates of Curator need, beside which spec/fault/zookeeper_peer_spec.lua plays ours

.PHONY: test-matrix
test-matrix: packages-test all test-helpers ## each trick of a server at each step, for each client; `make test` has a part of it
	@MATRIX=all JOBS=$${JOBS:-2} $(RUN_UNITS) matrix $(filter spec/matrix/%,$(SPECS))

# Without SEED= a new one: the default is the torture's. The matrix takes long, and has one test in each file.
FILES ?= $(filter-out spec/matrix/%,$(SPECS))
.PHONY: shuffle
shuffle: packages-test all test-helpers ## specs in an order by SEED= (a new one without), files and the tests of each (FILES=: those only)
	@SHUFFLE=$(strip $(if $(filter-out file,$(origin SEED)),$(SEED),$(shell od -An -N3 -tu4 /dev/urandom))) LOGS=$(BUILD)/shuffle \
	  $(RUN_UNITS) shuffled $(FILES)

RECONNECTS ?= 10000
.PHONY: test-reconnects
test-reconnects: packages-test all test-helpers ## clients whose servers go away 10,000 times each: memory and descriptors (RECONNECTS=)
	@RECONNECTS=$(RECONNECTS) tools/run-spec.sh spec/hostile/reconnects_spec.lua

SANITIZE := -O1 -g -fno-omit-frame-pointer -fsanitize=address,undefined -fno-sanitize-recover=all
# Specs look at how much memory is used: what is freed may not be kept back for long.
.PHONY: test-asan
test-asan: packages-test packages-check ## C tests and specs under ASan and UBSan
	ASAN_OPTIONS=detect_leaks=0:quarantine_size_mb=16:verify_asan_link_order=0 $(MAKE) --no-print-directory BUILD=build-asan PROGRAM=build-asan/crown-lua \
	  CFLAGS='$(SANITIZE)' test-c test-spec

.PHONY: test-gc
test-gc: packages-test all test-helpers ## specs with a full collection before each resume
	@CROWN_TORTURE=gc $(RUN_UNITS) specs $(filter-out $(FAULT_SPECS),$(SPECS))

.PHONY: test-short
test-short: packages-test all test-helpers ## specs with sockets that move one byte at a time
	@CROWN_TORTURE=short $(RUN_UNITS) specs $(filter spec/runtime/%,$(SPECS))

.PHONY: test-valgrind
test-valgrind: packages-check all ## a run that wins, loses and ends, under valgrind
	valgrind -q --error-exitcode=9 --leak-check=full --errors-for-leak-kinds=definite \
	  ./$(PROGRAM) --heartbeat 30 --oracle file:$(abspath $(BUILD))/valgrind lua/examples/hello.lua 1

BASE ?= origin/HEAD
.PHONY: check
check: packages-test packages-lint ## after each edit, within a minute: what changed since BASE=, C units, a thousand clusters
	@BASE=$(BASE) tools/check.sh
