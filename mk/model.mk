# The registry's protocol, checked exhaustively by Spin; and again with a rule broken, which has to be found.

MODEL := spec/model/registry.pml
# Membership and leadership from an empty registry on; names in one that runs.
MODEL_members := -DEMPTY -DWRITES=0 -DEPOCHS=3 -DTOKENS=4 -DFAULTS=1
MODEL_names := -DWRITES=1 -DQUEUE=1 -DEPOCHS=3 -DTOKENS=4 -DFAULTS=1
MODEL_RULES := COPY FENCE DOWN BASE LET_GO LATE
# Where a breach is found among fewer states.
MODEL_broken_LATE := -DWRITES=1 -DQUEUE=1 -DEPOCHS=2 -DTOKENS=3 -DFAULTS=1

# States are known again by a hash (HC4): whole ones would take three times the memory.
# $(1): a name, $(2): the bounds; leaves the report in build/model/NAME/report
define check_model
@mkdir -p $(BUILD)/model/$(1) && cd $(BUILD)/model/$(1) && spin -a $(2) $(abspath $(MODEL)) >spin.log && \
  gcc -w -O3 -DSAFETY -DHC4 -o pan pan.c && ./pan -m1000000 -w26 >report 2>&1; \
  awk '/errors:/ { errors = $$NF } /states, stored/ { states = $$1 } /elapsed time/ { seconds = $$4 } \
    END { printf "%-12s %11s states %5s errors %7s s\n", "$(1)", states, errors, seconds }' report
endef

.PHONY: model
model: packages-model ## check the registry's protocol exhaustively, for three nodes (spin; a quarter of an hour or more, 3 GB)
	$(call check_model,members,$(MODEL_members))
	@grep -q 'errors: 0' $(BUILD)/model/members/report && ! grep -q 'Search not completed' $(BUILD)/model/members/report
	$(call check_model,names,$(MODEL_names))
	@grep -q 'errors: 0' $(BUILD)/model/names/report && ! grep -q 'Search not completed' $(BUILD)/model/names/report
	@for rule in $(MODEL_RULES); do $(MAKE) --no-print-directory model-broken RULE=$$rule; done

.PHONY: model-broken
model-broken: packages-model
	$(call check_model,broken-$(RULE),$(or $(MODEL_broken_$(RULE)),$(MODEL_names)) -DBREAK_$(RULE))
	@grep -q 'assertion violated' $(BUILD)/model/broken-$(RULE)/report
