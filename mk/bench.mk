# Figures, with peers in the same run. make bench ROWS=pattern N=5 for a quick look; SAVE=file keeps every figure.
# STORE_URL=postgres://… measures a store of one's own instead of servers on loopback.
ROWS ?=
N ?= 20
SAVE ?=
STORE_URL ?=
MINUTES ?= 10
FIGURES := bench/figures.tsv

.PHONY: bench
bench: packages-test packages-bench all ## measure failover, start, memory and scale, with peers (ROWS= N= SAVE= STORE_URL=)
	@$(MAKE) --no-print-directory $(BUILD)/ticker
	-@$(MAKE) --no-print-directory $(BUILD)/etcd_election
	@CROWN_LUA=$(abspath $(PROGRAM)) CROWN_TICKER=$(abspath $(BUILD)/ticker) CROWN_ETCD_ELECTION=$(abspath $(BUILD)/etcd_election) \
	  BENCH_SAVE='$(SAVE)' BENCH_STORE_URL='$(STORE_URL)' BENCH_MINUTES=$(MINUTES) \
	  tools/with-temp.sh ./$(PROGRAM) bench/main.lua '$(subst ','\'',$(ROWS))' $(N)

# Of Debian's Go and its packages, without the network.
$(BUILD)/etcd_election: bench/etcd_election.go
	@mkdir -p $(@D)
	@echo "  GO    $@"; GO111MODULE=off GOPATH=/usr/share/gocode GOCACHE=$(abspath $(BUILD))/go-cache go build -o $@ $<

.PHONY: bench-figures
bench-figures: all ## draw docs/figures/failover.svg and growth.svg from bench/figures.tsv (make bench SAVE=bench/figures.tsv)
	@./$(PROGRAM) bench/plot.lua $(FIGURES) docs/figures

.PHONY: demo
demo: packages-test all ## three candidates, a failover every few seconds by another fault
	@$(MAKE) --no-print-directory $(BUILD)/ticker
	@CROWN_LUA=$(abspath $(PROGRAM)) CROWN_TICKER=$(abspath $(BUILD)/ticker) tools/with-temp.sh ./$(PROGRAM) tools/demo.lua
