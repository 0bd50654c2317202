# Real candidates on real stores, hurt by random faults; what counts is what their children's ticks say.
STORE ?= all
FAULTS ?= 25
SEED ?= 1

.PHONY: torture
torture: packages-test all test-helpers ## hurt candidates and stores at random, and read the children's ticks (STORE= FAULTS= SEED=)
	@CROWN_LUA=$(abspath $(PROGRAM)) CROWN_TICKER=$(abspath $(BUILD)/ticker) ./$(PROGRAM) --log-level warn spec/torture/main.lua $(STORE) $(FAULTS) $(SEED)
