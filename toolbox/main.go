// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/wherryproject/wherry/toolbox/internal/applet"
	"github.com/wherryproject/wherry/toolbox/internal/capture"
	"github.com/wherryproject/wherry/toolbox/internal/copying"
	"github.com/wherryproject/wherry/toolbox/internal/edit"
	"github.com/wherryproject/wherry/toolbox/internal/files"
	"github.com/wherryproject/wherry/toolbox/internal/network"
	"github.com/wherryproject/wherry/toolbox/internal/procs"
	"github.com/wherryproject/wherry/toolbox/internal/shell"
	"github.com/wherryproject/wherry/toolbox/internal/text"
	"github.com/wherryproject/wherry/toolbox/internal/trace"
)

func main() {
	name := strings.TrimPrefix(filepath.Base(os.Args[0]), "-") // -sh is a login shell
	args := os.Args[1:]
	if a, ok := find(name); ok {
		os.Exit(a.Main(args))
	}
	os.Exit(own(args))
}

// own is the program called by its own name.
func own(args []string) int {
	switch {
	case len(args) == 1 && args[0] == "--list":
		for _, a := range applets() {
			fmt.Println(a.Name)
		}
		return 0
	case len(args) == 2 && args[0] == "--install":
		return install(args[1])
	case len(args) == 0 || args[0] == "--help":
		fmt.Print("Usage: toolbox COMMAND [ARG]...\n       toolbox --list | --install FOLDER\n\nCommands (each has --help):\n\n")
		overview(os.Stdout)
		return 0
	}
	a, ok := find(args[0])
	if !ok {
		fmt.Fprintf(os.Stderr, "toolbox: there is no command %q (see: toolbox --list)\n", args[0])
		return 127
	}
	return a.Main(args[1:])
}

// install makes a link to this program for every command.
func install(dir string) int {
	for _, a := range applets() {
		if err := os.Symlink("toolbox", filepath.Join(dir, a.Name)); err != nil {
			fmt.Fprintln(os.Stderr, "toolbox:", err)
			return 1
		}
	}
	return 0
}

// known tells whether there is a command of that name.
func known(name string) bool {
	_, ok := find(name)
	return ok || name == "toolbox"
}

func find(name string) (applet.Applet, bool) {
	for _, a := range applets() {
		if a.Name == name {
			return a, true
		}
	}
	return applet.Applet{}, false
}

// overview lists the commands in words.
func overview(w io.Writer) {
	for _, a := range applets() {
		fmt.Fprintf(w, "  %-10s %s\n", a.Name, a.Short)
	}
}

// help is the command help: all commands, or one's flags.
func help(c *applet.Call) error {
	if err := c.Parse(0, 1); err != nil {
		return err
	}
	if len(c.Args) == 1 {
		a, ok := find(c.Args[0])
		if !ok {
			return applet.Fail(1, "there is no command %q in the toolbox (help lists them)", c.Args[0])
		}
		if code := a.Main([]string{"--help"}); code != 0 {
			return applet.Exit(code)
		}
		return nil
	}
	c.Println("The toolbox's commands. Each has --help: flags and what they do.")
	c.Println()
	overview(c.Out)
	c.Println("\nFirst looks:\n  ps aux; ss -tlnp; ip addr        what runs, what listens, which addresses\n" +
		"  ls /proc/1/root; cat /c/NAME/... a container's files, where processes or /c are shared\n" +
		"  curl -v URL; nslookup NAME       does it answer, is the name known\n" +
		"  openssl s_client -connect H:443  which certificate, until when\n" +
		"  strace -f -p 1                   what it does")
	return nil
}

// applets lists all commands by name.
func applets() []applet.Applet {
	all := slices.Concat(capture.Applets(), copying.Applets(), edit.Applets(), files.Applets(), network.Applets(),
		procs.Applets(known), shell.Applets(known), text.Applets(), trace.Applets(),
		[]applet.Applet{{Name: "help", Usage: "[COMMAND]", Short: "List the commands, or a command's flags",
			Run: help}})
	slices.SortFunc(all, func(a, b applet.Applet) int { return cmp.Compare(a.Name, b.Name) })
	return all
}
