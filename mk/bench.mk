# Figures, with peers in the same run. make bench ROWS=pattern N=5 for a quick look.
ROWS ?=
N ?= 20

.PHONY: bench
bench: packages-test packages-bench all ## measure failover, start, memory and scale, with peers (ROWS= N=)
	@$(MAKE) --no-print-directory $(BUILD)/ticker
	@CROWN_LUA=$(abspath $(PROGRAM)) CROWN_TICKER=$(abspath $(BUILD)/ticker) tools/with-temp.sh ./$(PROGRAM) bench/main.lua '$(ROWS)' $(N)

.PHONY: demo
demo: packages-test all ## three candidates, a failover every few seconds by another fault
	@$(MAKE) --no-print-directory $(BUILD)/ticker
	@CROWN_LUA=$(abspath $(PROGRAM)) CROWN_TICKER=$(abspath $(BUILD)/ticker) tools/with-temp.sh ./$(PROGRAM) tools/demo.lua
