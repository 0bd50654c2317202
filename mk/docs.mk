# The documentation as a site: what stands in docs/, with the Lua modules as LDoc shows them.
.PHONY: docs
docs: ## build the documentation as a site, build/site, and take new pictures of the status page where it has changed
	@tools/status-pictures.sh
	@$(MAKE) --no-print-directory site

.PHONY: status-pictures
status-pictures: packages-test ## take the pictures of the status page anew, in headless Chromium
	@tools/status-pictures.sh always

# Dead links fail. DOCS_DATE= is the day that the pages of the modules bear, not today.
.PHONY: site
site: packages-docs
	@luajit tools/check-wrapped.lua *.md $$(find docs -name '*.md')
	@rm -rf $(BUILD)/docs $(BUILD)/site && mkdir -p $(BUILD) && cp -r docs $(BUILD)/docs
	@ldoc --fatalwarnings --quiet -c lua/config.ld $(if $(DOCS_DATE),--date $(DOCS_DATE)) -d $(BUILD)/docs/api -p crown-lua -f markdown lua/crown > /dev/null
	@mkdocs build --quiet --strict
	@cat /usr/share/doc/mkdocs-material/copyright /usr/share/doc/lua-ldoc/copyright > $(BUILD)/site/assets/COPYRIGHT
	@echo "docs: $(BUILD)/site/index.html"
