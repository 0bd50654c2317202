# The simulations: virtual clusters around the real election core and the real members of a registry, thousands of seeds,
# faults between any two steps.

# How many virtual clusters: from seed 1 on, the same each time; and new ones of each run of all tests.
SEEDS ?= 20000
REGISTRY_SEEDS ?= 400
NEW_SEEDS ?= 2000
MUTATION_SEEDS ?= 2000
SIM_OBJECTS := $(patsubst %.c,$(BUILD)/%.o,$(wildcard spec/sim/*.c runtime/election/*.c runtime/base/*.c))

$(BUILD)/simulate: $(SIM_OBJECTS)
	@echo "  LD    $@"; $(CC) $(ALL_CFLAGS) $(ALL_LDFLAGS) -o $@ $^ -lm

.PHONY: simulate
simulate: packages-build ## simulate SEEDS= and REGISTRY_SEEDS= virtual clusters, then prove that broken rules are found
	@$(MAKE) --no-print-directory $(BUILD)/simulate
	$(BUILD)/simulate --seeds $(SEEDS)
	@seq 1 100 $(REGISTRY_SEEDS) | xargs -P 2 -I FROM luajit spec/sim/registry.lua FROM 100
	@$(MAKE) --no-print-directory simulate-broken

.PHONY: simulate-broken
simulate-broken: $(BUILD)/simulate
	@for m in $$($(BUILD)/simulate --mutations); do \
	  if $(BUILD)/simulate --seeds $(MUTATION_SEEDS) --mutate $$m > $(BUILD)/mutation.log; then \
	    echo "the mutation $$m was not found"; exit 1; \
	  else echo "mutation $$m: found ($$(head -1 $(BUILD)/mutation.log))"; fi; done
