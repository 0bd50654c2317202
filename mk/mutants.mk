# Slips made on purpose, to see whether a test notices: spec/mutants, docs/own-tests.md.
FOLDER ?=
ONLY ?=
SAMPLE ?=
TODO ?=
NARROW ?=
MUTANTS_SECONDS ?=
MUTANTS_JOBS ?= 2
MUTANTS := luajit tools/mutants.lua

.PHONY: mutants
mutants: packages-build packages-test ## break the code, one slip at a time (FOLDER= ONLY= SAMPLE=1 TODO=1|new NARROW=1)
	@$(MUTANTS) run folder='$(FOLDER)' only='$(ONLY)' sample='$(SAMPLE)' todo='$(TODO)' narrow='$(NARROW)' seconds='$(MUTANTS_SECONDS)' jobs='$(MUTANTS_JOBS)'

.PHONY: mutants-report
mutants-report: packages-build ## the last result of every mutant that has one
	@$(MUTANTS) report

.PHONY: mutants-check
mutants-check: packages-build
	@$(MUTANTS) check

.PHONY: mutants-repath
mutants-repath: packages-build ## let the list follow code that moved to another file
	@$(MUTANTS) repath

.PHONY: mutants-note
mutants-note: packages-build ## write into the list what noticed each
	@$(MUTANTS) note
