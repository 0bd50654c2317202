# The documentation as a site: what stands in docs/, with the Lua modules as LDoc shows them.
.PHONY: status-pictures
status-pictures: all packages-test ## take the pictures of the status page anew, in headless Chromium, after the page has changed
	@tools/with-temp.sh env CROWN_LUA=$(CURDIR)/$(PROGRAM) ./$(PROGRAM) tools/status-pictures.lua docs/figures

.PHONY: docs
docs: packages-docs ## build the documentation as a site that needs no network, in build/site; dead links fail. DOCS_DATE=: not today
	@luajit tools/check-wrapped.lua *.md $$(find docs -name '*.md')
	@rm -rf $(BUILD)/docs $(BUILD)/site && mkdir -p $(BUILD) && cp -r docs $(BUILD)/docs
	@ldoc --fatalwarnings --quiet -c lua/config.ld $(if $(DOCS_DATE),--date $(DOCS_DATE)) -d $(BUILD)/docs/api -p crown-lua -f markdown lua/crown > /dev/null
	@mkdocs build --quiet --strict
	@cat /usr/share/doc/mkdocs-material/copyright /usr/share/doc/lua-ldoc/copyright > $(BUILD)/site/assets/COPYRIGHT
	@echo "docs: $(BUILD)/site/index.html"
