// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/wherryproject/wherry/internal/cli"
)

// A command that is added below `wherry debug` is one to the short program too: otherwise that would take its name for a pod's.
func TestUpToDate(t *testing.T) {
	want, err := render(cli.New(cli.Terminal{}))
	if err != nil {
		t.Fatal(err)
	}
	is, err := os.ReadFile("../../internal/cli/short/zz_generated.words.go")
	if err != nil || string(is) != string(want) {
		t.Errorf("run make generate: the commands are now (%v)\n%s", err, want)
	}
}

func TestRender(t *testing.T) {
	root := &cobra.Command{Use: "wherry"}
	debug := &cobra.Command{Use: "debug"}
	debug.AddCommand(&cobra.Command{Use: "watch POD", Aliases: []string{"w"}}, &cobra.Command{Use: "end"})
	root.AddCommand(debug)
	if _, err := render(root); err == nil {
		t.Error("a tree without exec is taken")
	}
	root.AddCommand(&cobra.Command{Use: "exec"})
	text, err := render(root)
	if err != nil || !strings.Contains(string(text), `{"end", "w", "watch"}`) {
		t.Errorf("%v\n%s", err, text)
	}
}
