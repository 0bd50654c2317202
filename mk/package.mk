# Packages: made and tried in clean minimal Debians (tools/package/debian.sh). As root.
SUITE ?= bookworm

.PHONY: deb
deb: packages-package ## build the Debian package of what is committed, for SUITE (bookworm), into build/package/SUITE
	@tools/package/deb.sh $(SUITE) build/package/$(SUITE)

PARTS ?=
.PHONY: package-test
package-test: packages-package packages-test all test-helpers ## try the packages: Debian's, the rocks, the image, two versions in one election; says what it skips (PARTS=)
	@tools/package/test.sh $(PARTS)
