# Slips that nobody thought of, made of the tokens of C and Lua: docs/own-tests.md.
N ?=
SLIPS_SEED = $(if $(filter file,$(origin SEED)),,$(SEED))
CHANGED ?=
SLIPS_SECONDS ?=
SLIPS_JOBS ?= 2

.PHONY: slips
slips: packages-build packages-test packages-lint all test-helpers ## make slips and see whether a test notices (SEED= N= FOLDER= CHANGED=1 BASE= NARROW=1 SLIPS_SECONDS=)
	@luajit tools/slips.lua run seed='$(SLIPS_SEED)' n='$(N)' folder='$(FOLDER)' changed='$(CHANGED)' base='$(BASE)' narrow='$(NARROW)' seconds='$(SLIPS_SECONDS)' jobs='$(SLIPS_JOBS)'

.PHONY: slips-list
slips-list: packages-build ## the slips that such a run would make
	@luajit tools/slips.lua list seed='$(SLIPS_SEED)' n='$(N)' folder='$(FOLDER)' changed='$(CHANGED)' base='$(BASE)'

.PHONY: slips-check
slips-check: packages-build
	@luajit tools/slips.lua check
