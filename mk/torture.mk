# `make test` has 25 faults on most stores, the same each time. Real candidates on real stores, hurt by random faults; what counts is what their children's ticks say.
STORE ?= all
FAULTS ?= 25
SEED ?= 1

.PHONY: torture
torture: packages-test all test-helpers ## hurt candidates and stores at random, and read the children's ticks (STORE= FAULTS= SEED=)
	@BUILD=$(BUILD) PROGRAM=$(PROGRAM) tools/run-torture.sh $(STORE) $(FAULTS) $(SEED)
