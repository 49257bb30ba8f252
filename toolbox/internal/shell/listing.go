// SPDX-License-Identifier: Apache-2.0

package shell

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/interp"
	"mvdan.cc/sh/v3/syntax"
)

// ownVariables are those by which this package keeps what is the shell's.
func ownVariables() []string {
	return []string{lastBackground, shellID, shellName, exitTrap, tableName, subshell, trapStatus, tested, optionPlace}
}

// listed makes a call of export and readonly without names, which list: the interpreter's do nothing.
func listed(st *syntax.Stmt) {
	cmd, ok := st.Cmd.(*syntax.DeclClause)
	if !ok || cmd.Variant.Value != "export" && cmd.Variant.Value != "readonly" {
		return
	}
	for _, a := range cmd.Args {
		if a.Name != nil || a.Value.Lit() != "-p" {
			return
		}
	}
	st.Cmd = &syntax.CallExpr{Args: []*syntax.Word{literal(inner + "list"), literal(cmd.Variant.Value)}}
}

// list prints variables as the commands that make them: all, or those that are exported or readonly.
func (s *session) list(hc interp.HandlerContext, which string) []string {
	lines := map[string]string{}
	for name, v := range hc.Env.Each { // a variable comes once for each shell and subshell that has set it
		if delete(lines, name); !v.IsSet() || slices.Contains(ownVariables(), name) || !syntax.ValidName(name) ||
			which == "export" && !v.Exported || which == "readonly" && !v.ReadOnly {
			continue
		}
		switch line := name + "=" + strings.TrimSuffix(quote([]string{v.String()}), " "); {
		case which != "":
			lines[name] = which + " " + line
		case v.Kind == expand.String:
			lines[name] = line
		default:
			lines[name] = fmt.Sprintf("%s=(%s)", name, strings.TrimSuffix(quote(v.List), " "))
		}
	}
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(lines)) {
		b.WriteString(lines[name] + "\n")
	}
	if _, err := io.WriteString(hc.Stdout, b.String()); err != nil {
		return []string{inner + "status", "1"}
	}
	return []string{inner + "status", "0"}
}

// find is command -v and -V for what the interpreter does not find: words of the grammar, and commands of the toolbox
// that are nowhere in PATH.
func (s *session) find(hc interp.HandlerContext, args []string) []string {
	if args[1] == "-V" {
		args = append([]string{"type"}, args[2:]...)
	}
	name := args[len(args)-1]
	is := ""
	if _, err := interp.LookPathDir(hc.Dir, hc.Env, name); syntax.IsKeyword(name) {
		is = " is a shell keyword"
	} else if err != nil && !interp.IsBuiltin(name) && s.runnerOf(hc).Funcs[name] == nil && s.known(name) {
		is = " is a command of the toolbox"
	}
	switch {
	case is == "" || len(args) != 2 && args[0] == "type" || len(args) != 3 && args[0] != "type":
		return args
	case args[0] == "command":
		is = ""
	}
	fmt.Fprintln(hc.Stdout, name+is)
	return []string{inner + "status", "0"}
}

// shift is the command, which takes away no more than there is.
func (s *session) shift(hc interp.HandlerContext, args []string) []string {
	n := 1
	if len(args) == 2 {
		if _, err := fmt.Sscan(args[1], &n); err != nil {
			return args // which says what is wrong
		}
	}
	if have := len(s.runnerOf(hc).Params); n < 0 || n > have {
		fmt.Fprintf(hc.Stderr, "shift: there are %d parameters\n", have)
		return []string{inner + "status", "1"}
	}
	return args
}
