# A tarball of the sources as committed: the same bytes each time it is made of one commit.
DIST = crown-lua-$(VERSION)

.PHONY: dist
dist: ## make a tarball of the committed sources, the same bytes each time
	@mkdir -p $(BUILD)
	@git archive --format=tar --prefix=$(DIST)/ HEAD > $(BUILD)/$(DIST).tar
	@gzip -n -9 -f $(BUILD)/$(DIST).tar && sha256sum $(BUILD)/$(DIST).tar.gz
