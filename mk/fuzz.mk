# Fuzzing with libFuzzer: random input, led by what of the code it reaches, under ASan and UBSan.

# So long each; or so many inputs, however long that takes: FUZZ_INPUTS=1000000.
FUZZ_SECONDS ?= 60
FUZZ_INPUTS ?=
FUZZ_MOST = $(or $(FUZZ_INPUTS),$(FUZZ_SECONDS)s)
FUZZ_FLAGS := -O1 -g -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all

# $(1): a target, $(2): the folders of runtime/ that it is linked with
define fuzz
@mkdir -p $(BUILD)/fuzz
@clang $(filter-out -MMD -MP,$(ALL_CFLAGS)) $(FUZZ_FLAGS) -o $(BUILD)/fuzz/$(1) spec/fuzz/$(1)_fuzz.c \
  $(foreach f,$(2),$(wildcard runtime/$(f)/*.c)) -lbsd
@tools/fuzz-core.sh $(abspath $(BUILD)/fuzz/$(1)) $(FUZZ_MOST) $(FUZZ_SEED)
endef

# What servers say to our clients, members and strangers to a member, and guests to the HTTP endpoint: on the program itself, by a seed.
WIRE_TARGETS := resp redis nats etcd postgres mysql http frames handshake
FUZZ_SEED ?= 1
.PHONY: fuzz-wire
fuzz-wire: packages-check ## feed the clients what servers may say, changed at random, under ASan (FUZZ_SECONDS= or FUZZ_INPUTS= each, FUZZ_SEED=)
	@$(MAKE) --no-print-directory BUILD=build-asan PROGRAM=build-asan/crown-lua CFLAGS='$(SANITIZE)' all >/dev/null
	@for target in $(WIRE_TARGETS); do \
	  PROGRAM=build-asan/crown-lua ASAN_OPTIONS=detect_leaks=0 tools/fuzz-unit.sh $$target $(FUZZ_MOST) $(FUZZ_SEED) || exit 1; done

.PHONY: fuzz
fuzz: packages-check fuzz-wire ## feed the core and a child's description nonsense, for FUZZ_SECONDS= or FUZZ_INPUTS= each (clang's libFuzzer)
	$(call fuzz,election,base election)
	$(call fuzz,child_spec,base process)
