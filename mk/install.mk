# Where things go. DESTDIR=, ETC= for packagers.
ETC ?= /etc
MAN := $(DESTDIR)$(PREFIX)/share/man
DOC := $(DESTDIR)$(PREFIX)/share/doc/crown-lua
COMPLETIONS := $(DESTDIR)$(PREFIX)/share/bash-completion/completions/crown-lua \
  $(DESTDIR)$(PREFIX)/share/zsh/site-functions/_crown-lua $(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d/crown-lua.fish
SERVICES := $(patsubst %,$(DESTDIR)$(PREFIX)/lib/systemd/system/%,crown-lua@.service crown-run@.service)
MONITORING := $(DESTDIR)$(PREFIX)/share/crown-lua/monitoring
VERBS = $(shell ./$(PROGRAM) completion fish | LC_ALL=C sed -n 's/.*__fish_use_subcommand -a \([a-z-]*\) .*/\1/p')

.PHONY: install
install: all ## install to PREFIX (/usr/local): program, manual pages, completions, systemd units, monitoring
	install -D -m 755 $(PROGRAM) $(DESTDIR)$(PREFIX)/bin/crown-lua
	install -d $(DOC)/examples $(DOC)/docs $(MAN)/man1 $(MAN)/man3 $(dir $(COMPLETIONS) $(firstword $(SERVICES))) $(MONITORING) $(DESTDIR)$(ETC)/crown-lua
	install -m 644 README.md CHANGELOG.md CONTRIBUTING.md LICENSE SECURITY.md $(DOC)
	cp -r docs/. $(DOC)/docs
	cp -r lua/examples/. $(DOC)/examples
	./$(PROGRAM) help --man crown-lua.1 > $(MAN)/man1/crown-lua.1
	./$(PROGRAM) help --man crown-lua.3 > $(MAN)/man3/crown-lua.3
	for verb in $(VERBS); do ./$(PROGRAM) help --man $$verb > $(MAN)/man1/crown-lua-$$verb.1 || exit 1; done
	./$(PROGRAM) completion bash > $(word 1,$(COMPLETIONS))
	./$(PROGRAM) completion zsh > $(word 2,$(COMPLETIONS))
	./$(PROGRAM) completion fish > $(word 3,$(COMPLETIONS))
	for unit in $(SERVICES); do sed 's|@PREFIX@|$(PREFIX)|; s|/etc/|$(ETC)/|' tools/systemd/$${unit##*/} > $$unit || exit 1; done
	install -m 644 tools/monitoring/* $(MONITORING)

.PHONY: uninstall
uninstall: ## take away what install put there
	rm -rf $(DESTDIR)$(PREFIX)/bin/crown-lua $(DOC) $(MAN)/man1/crown-lua*.1 $(MAN)/man3/crown-lua.3 $(COMPLETIONS) $(SERVICES) $(dir $(MONITORING))
