# `make test` has 25 faults on most stores, the same each time. Real candidates on real stores, hurt by random faults; what counts is what their children's ticks say.
STORE ?= all
FAULTS ?= 25
SEED ?= 1

.PHONY: torture
torture: packages-test all test-helpers ## hurt candidates and stores at random, and read the children's ticks (STORE= FAULTS= SEED=; JOBS=1: hosts with a crontab)
	@BUILD=$(BUILD) PROGRAM=$(PROGRAM) tools/run-torture.sh $(if $(filter command,$(firstword $(origin JOBS))),jobs:)$(STORE) $(FAULTS) $(SEED)

.PHONY: week
week: packages-test all test-helpers ## a week of a crontab on three hosts and a real store, in about two minutes (STORE=redis)
	@CROWN_LUA=$(CURDIR)/$(PROGRAM) CROWN_TICKER=$(CURDIR)/$(BUILD)/ticker \
	  tools/with-temp.sh ./$(PROGRAM) --log-level warn spec/torture/week.lua $(if $(filter all,$(STORE)),redis,$(STORE))
