# A tarball of the sources as committed, with the documentation as a site in site/: the same bytes each time it is made of one
# commit.
DIST = crown-lua-$(VERSION)
COMMITTED = $(shell git log -1 --format=%ct)
COMMITTED_DAY = $(shell git log -1 --format=%cs)

.PHONY: dist
dist: packages-docs ## make a tarball of the committed sources with the documentation as a site, the same bytes each time
	@rm -rf $(BUILD)/dist && mkdir -p $(BUILD)/dist/$(DIST)
	@git archive HEAD | tar -x -C $(BUILD)/dist/$(DIST)
	@SOURCE_DATE_EPOCH=$(COMMITTED) $(MAKE) -s -C $(BUILD)/dist/$(DIST) site BUILD=build INSTALL_PACKAGES=true DOCS_DATE=$(COMMITTED_DAY) >/dev/null
	@mv $(BUILD)/dist/$(DIST)/build/site $(BUILD)/dist/$(DIST)/site && rm -rf $(BUILD)/dist/$(DIST)/build
	@tar --sort=name --mtime=@$(COMMITTED) --owner=0 --group=0 --numeric-owner --mode=go=rX,u+rw -cf $(BUILD)/$(DIST).tar -C $(BUILD)/dist $(DIST)
	@gzip -n -9 -f $(BUILD)/$(DIST).tar && sha256sum $(BUILD)/$(DIST).tar.gz
