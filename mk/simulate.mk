# The simulation: a virtual cluster around the real election core, thousands of seeds, faults between any two steps.

SEEDS ?= 100000
MUTATIONS := late-anchor no-margin lazy-keeper no-deadman release-first release-by-token claims-unordered
SIM_OBJECTS := $(patsubst %.c,$(BUILD)/%.o,$(wildcard spec/sim/*.c runtime/election/*.c runtime/base/*.c))

$(BUILD)/simulate: $(SIM_OBJECTS)
	@echo "  LD    $@"; $(CC) $(ALL_CFLAGS) $(ALL_LDFLAGS) -o $@ $^ -lm

.PHONY: simulate
simulate: packages-build ## simulate SEEDS= virtual clusters, then prove that broken rules are found
	@$(MAKE) --no-print-directory $(BUILD)/simulate
	$(BUILD)/simulate --seeds $(SEEDS)
	@for m in $(MUTATIONS); do \
	  if $(BUILD)/simulate --seeds 20000 --mutate $$m > $(BUILD)/mutation.log; then \
	    echo "the mutation $$m was not found"; exit 1; \
	  else echo "mutation $$m: found ($$(head -1 $(BUILD)/mutation.log))"; fi; done
