# The simulations: virtual clusters around the real election core and the real members of a registry, thousands of seeds,
# faults between any two steps.

# How many virtual clusters: from seed 1 on, the same each time; and new ones of each run of all tests.
SEEDS ?= 20000
REGISTRY_SEEDS ?= 150
NEW_SEEDS ?= 2000
MUTATION_SEEDS ?= 2000
REGISTER_SEEDS ?= 300
SIM_OBJECTS := $(patsubst %.c,$(BUILD)/%.o,$(wildcard spec/sim/*.c runtime/election/*.c runtime/base/*.c))

$(BUILD)/simulate: $(SIM_OBJECTS)
	@echo "  LD    $@"; $(CC) $(ALL_CFLAGS) $(ALL_LDFLAGS) -o $@ $^ -lm

# What the registry's members need of the program's C, for luajit alone: not sanitized, since luajit is not.
ROWS_LIBRARY := build/rows.so
$(ROWS_LIBRARY): runtime/base/rows.c runtime/bind/bind_rows.c runtime/base/rows.h
	@echo "  LD    $@"; mkdir -p $(@D) && $(CC) -std=c11 -D_GNU_SOURCE -O2 -fPIC -shared -Iruntime -I/usr/include/luajit-2.1 -o $@ \
	  $(filter %.c,$^)

# All of a small world instead of much of a large one: what every order of at most so many faults leads to, then what
# messages lead to that are slower than the patience of who waits for them.
EXHAUST_SECONDS ?= 150
# Breaches that one fault is enough for, those that two are, and those that need none but slow answers, or messages that outlive
# their calls.
EXHAUST_ONE := late-anchor no-margin foreign-clock unknown-is-lost no-lead lazy-keeper no-deadman release-first exec-outlives \
  lost-outlives tree-given-up armed-while-releasing unsure-claim epoch-reused late-loss stale-claim forgetting-believed gives-up \
  barred-claims barred-leads never-allowed
EXHAUST_TWO := no-room unsure-message release-by-token no-refresh-while-stopping message-ends-sit-out
EXHAUST_SLOW := late-follower
EXHAUST_LATE := claims-unordered
EXHAUST_MUTATIONS := $(EXHAUST_ONE:%=%:--faults:1) $(EXHAUST_TWO:%=%:--faults:2) $(EXHAUST_SLOW:%=%:--faults:0:--patience:2) \
  $(EXHAUST_LATE:%=%:--faults:0:--delay:4:--patience:1:--requests:3)
EXHAUST_OBJECTS := $(patsubst %.c,$(BUILD)/%.o,$(wildcard spec/sim/exhaust/*.c runtime/election/*.c runtime/base/*.c) \
  spec/sim/store.c spec/sim/mutate.c spec/sim/watch.c spec/c/election/scenario.c)

$(BUILD)/exhaust: $(EXHAUST_OBJECTS)
	@echo "  LD    $@"; $(CC) $(ALL_CFLAGS) $(ALL_LDFLAGS) -o $@ $^ -lm

.PHONY: exhaust
exhaust: packages-build ## go through every state of two candidates: two faults; late messages (EXHAUST_SECONDS= each, at most)
	@$(MAKE) --no-print-directory $(BUILD)/exhaust
	$(BUILD)/exhaust --faults 2 --delay 1 --patience 3 --seconds $(EXHAUST_SECONDS)
	$(BUILD)/exhaust --faults 0 --delay 1 --patience 2 --seconds $(EXHAUST_SECONDS)
	$(BUILD)/exhaust --faults 0 --delay 2 --patience 1 --seconds $(EXHAUST_SECONDS)

.PHONY: exhaust-quick
exhaust-quick: $(BUILD)/exhaust ## the same with one fault, then prove that broken rules are found
	$(BUILD)/exhaust --faults 1 --delay 1 --patience 3
	@for m in $(EXHAUST_MUTATIONS); do \
	  if $(BUILD)/exhaust --mutate $$(echo $$m | tr : ' ') > $(BUILD)/mutation.log; then \
	    echo "the mutation $${m%%:*} was not found"; exit 1; \
	  else echo "mutation $${m%%:*}: found ($$(tail -1 $(BUILD)/mutation.log))"; fi; done

.PHONY: simulate
simulate: packages-build ## simulate SEEDS= and REGISTRY_SEEDS= virtual clusters, then prove that broken rules are found
	@$(MAKE) --no-print-directory $(BUILD)/simulate $(ROWS_LIBRARY)
	$(BUILD)/simulate --seeds $(SEEDS)
	@seq 1 50 $(REGISTRY_SEEDS) | xargs -P 2 -I FROM luajit spec/sim/registry.lua FROM 50
	@$(MAKE) --no-print-directory simulate-register simulate-broken

.PHONY: simulate-broken
simulate-broken: $(BUILD)/simulate
	@for m in $$($(BUILD)/simulate --mutations); do \
	  if $(BUILD)/simulate --seeds $(MUTATION_SEEDS) --mutate $$m > $(BUILD)/mutation.log; then \
	    echo "the mutation $$m was not found"; exit 1; \
	  else echo "mutation $$m: found ($$(head -1 $(BUILD)/mutation.log))"; fi; done

.PHONY: simulate-register
simulate-register: ## simulate REGISTER_SEEDS= clusters of each kind around the register's rule, then prove that broken rules are found
	luajit -joff spec/register/simulate.lua $(REGISTER_SEEDS)
	luajit -joff spec/register/simulate.lua broken

.PHONY: exhaust-register
exhaust-register: ## every place for one fault, and for two that are close, in a small world of the register (EXHAUST_SECONDS= at most)
	luajit -joff spec/register/exhaust.lua $(EXHAUST_SECONDS)
