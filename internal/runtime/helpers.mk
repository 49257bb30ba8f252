# SPDX-License-Identifier: Apache-2.0
#
# The helper programs that are embedded into wherry. Included by the top Makefile; paths are from its folder.
#
#   make helpers        builds what is out of date
#   make clean-helpers  removes them

HELPERS_DIR := internal/runtime/bundle/bin
HELPERS_OBJ := bin/.helpers
PROGRAMS    := $(addprefix $(HELPERS_OBJ)/,runc containerd-shim-runc-v2 containerd-shim-wherry-v1 wherry-shim wherry-cni wherry-first wherry-session)
IMAGES      := $(addprefix $(HELPERS_DIR)/,pause.tar toolbox.tar)
HELPERS     := $(patsubst $(HELPERS_OBJ)/%,$(HELPERS_DIR)/%.zst,$(PROGRAMS)) $(IMAGES)

HELPER_LDFLAGS := -s -w
# Of programs that run many at a time, or within a debug session's limit of memory (docs/decisions/084-small-pages-for-small-programs.md).
SMALL_LDFLAGS  := $(HELPER_LDFLAGS) -X=runtime.godebugDefault=disablethp=1

# sources are the files of this repository that a program is made of, wherever they are: $(call sources,FOLDER OF ITS MODULE,PACKAGE).
# A prerequisite with two dollar signs is expanded only when its target's turn has come: nobody else waits for that.
OWN_FILES = {{$$d := .Dir}}{{with .Module}}{{if .Main}}{{range $$.GoFiles}}{{$$d}}/{{.}} {{end}}{{range $$.EmbedFiles}}{{$$d}}/{{.}} {{end}}{{end}}{{end}}
sources = $(shell cd $(1) && go list -deps -f '$(OWN_FILES)' $(2))
.SECONDEXPANSION:

.PHONY: helpers clean-helpers
helpers: $(HELPERS_DIR)/SHA256SUMS ## Build the helper programs that are embedded: runc, shim, CNI plug-in, pause image, debug image

# runc is C in part: static, and with seccomp when libseccomp's static library is there (libseccomp-dev), which setup sees to first: a
# runc without it starts no ordinary pod. Versions come from go.mod, so a change there rebuilds; what was found is kept in a stamp.
$(HELPERS_OBJ)/runc-tags: setup
	@mkdir -p $(@D)
	@tags=$$(echo 'int main(void){return 0;}' | gcc -static -x c -o /dev/null - -lseccomp 2>/dev/null && echo seccomp); \
	test -n "$$tags" || echo "note: libseccomp.a not found (apt install libseccomp-dev): seccomp profiles will not work"; \
	echo "$$tags" | cmp -s - $@ || echo "$$tags" > $@

$(HELPERS_OBJ)/runc: go.mod internal/runtime/helpers.mk $(HELPERS_OBJ)/runc-tags
	CGO_ENABLED=1 go build -o $@ -trimpath -tags "$$(cat $(HELPERS_OBJ)/runc-tags) netgo osusergo urfave_cli_no_docs" \
		-ldflags '$(HELPER_LDFLAGS) -extldflags -static' github.com/opencontainers/runc
	@touch $@

$(HELPERS_OBJ)/containerd-shim-runc-v2: go.mod internal/runtime/helpers.mk
	CGO_ENABLED=0 go build -o $@ -trimpath -tags no_grpc -ldflags '$(HELPER_LDFLAGS)' \
		github.com/containerd/containerd/v2/cmd/containerd-shim-runc-v2
	@touch $@

$(HELPERS_OBJ)/wherry-shim: go.mod internal/runtime/helpers.mk $$(call sources,.,./cmd/wherry-shim)
	CGO_ENABLED=0 go build -o $@ -trimpath -tags no_grpc -ldflags '$(SMALL_LDFLAGS)' ./cmd/wherry-shim
	@touch $@

$(HELPERS_OBJ)/containerd-shim-wherry-v1: $(wildcard internal/shim/front/*.[ch])
	@mkdir -p $(@D)
	gcc -static -Os -s -Wall -Wextra -Wno-implicit-fallthrough -o $@ $(filter %.c,$^)

$(HELPERS_OBJ)/wherry-cni: go.mod internal/runtime/helpers.mk $$(call sources,.,./cmd/wherry-cni)
	CGO_ENABLED=0 go build -o $@ -trimpath -ldflags '$(HELPER_LDFLAGS)' ./cmd/wherry-cni
	@touch $@

$(HELPERS_OBJ)/wherry-first: internal/hostdebug/first/first.c
	@mkdir -p $(@D)
	gcc -static -Os -s -Wall -Wextra -o $@ $<

# It is rebuilt with what it is made of, which carries none of the helpers.
$(HELPERS_OBJ)/wherry-session: go.mod internal/runtime/helpers.mk $$(call sources,.,./cmd/wherry-session)
	CGO_ENABLED=0 go build -o $@ -trimpath -ldflags '$(SMALL_LDFLAGS)' ./cmd/wherry-session
	@touch $@

# Programs are carried compressed (docs/decisions/067-helper-programs-are-compressed.md).
$(HELPERS_DIR)/%.zst: $(HELPERS_OBJ)/% $$(call sources,.,./tools/pack)
	go run ./tools/pack -o $@ $<

$(HELPERS_OBJ)/pause: internal/runtime/pause/pause.c
	@mkdir -p $(@D)
	gcc -static -Os -s -Wall -Wextra -o $@ $<

# The name in the archive is not used: the runtime names the image by the archive's hash.
$(HELPERS_DIR)/pause.tar: $(HELPERS_OBJ)/pause $$(call sources,.,./tools/mkimage)
	go run ./tools/mkimage -o $@ -ref wherry.dev/pause:build -file $<=/pause -entrypoint /pause -user 65535:65535

# The debug image's program is a module of its own: what it is made of is none of wherry's.
$(HELPERS_OBJ)/toolbox: toolbox/go.mod toolbox/go.sum internal/runtime/helpers.mk $$(call sources,toolbox,.)
	@mkdir -p $(@D)
	cd toolbox && CGO_ENABLED=0 go build -o ../$@ -trimpath -ldflags '$(SMALL_LDFLAGS)' .
	@touch $@

$(HELPERS_DIR)/toolbox.tar: $(HELPERS_OBJ)/toolbox tools/toolbox-image.sh LICENSE $$(call sources,.,./tools/mkimage)
	tools/toolbox-image.sh $< $@

# Of the programs as they are unpacked, and of the images as they are.
$(HELPERS_DIR)/SHA256SUMS: $(HELPERS)
	{ (cd $(HELPERS_OBJ) && sha256sum $(notdir $(PROGRAMS))) && (cd $(HELPERS_DIR) && sha256sum $(notdir $(IMAGES))); } > $@.new
	rm -f $(addprefix $(HELPERS_DIR)/,$(notdir $(PROGRAMS))) # what releases before have left would be carried, too
	mv $@.new $@

clean-helpers: ## Remove the helper programs
	rm -rf $(HELPERS) $(HELPERS_DIR)/SHA256SUMS $(HELPERS_OBJ)
