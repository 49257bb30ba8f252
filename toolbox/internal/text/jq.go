// SPDX-License-Identifier: Apache-2.0

package text

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/itchyny/gojq"

	"github.com/wherryproject/wherry/toolbox/internal/applet"
)

// jqFlags is what jq is asked for.
type jqFlags struct {
	raw, joined, ascii, compact, status bool
	none, slurp, lines                  bool
	indent                              string

	names  []string // of variables, with $
	values []any
	named  map[string]any
	list   []any // of --args
}

// jq queries JSON: gojq does the work. As there, an object's keys come out sorted.
func jq(c *applet.Call) error {
	f := &jqFlags{indent: "  ", named: map[string]any{}, list: []any{}}
	args, err := f.variables(c.Args)
	if err != nil {
		return err
	}
	if c.Args, err = f.positional(args, true); err != nil {
		return err
	}
	for _, s := range []struct {
		names, help string
		to          *bool
	}{
		{"r,raw-output", "print strings as they are, not as JSON", &f.raw},
		{"j,join-output", "as -r, and no line ends", &f.joined},
		{"a,ascii-output", "nothing but ASCII", &f.ascii}, {"c,compact-output", "a line for each value", &f.compact},
		{"e,exit-status", "exit code 1 if the last value was false or null, 4 if there was none", &f.status},
		{"n,null-input", "read no input: the query takes it with input and inputs", &f.none},
		{"s,slurp", "make one array of all values", &f.slurp}, {"R,raw-input", "each line is a string", &f.lines},
	} {
		c.Do(s.names, s.help, func() { *s.to = true })
	}
	file := c.String("f,from-file", "FILE", "", "the query is in a file")
	indent := c.Int(",indent", "N", 2, "how many blanks to a level")
	tabs := c.Bool(",tab", "a tab to a level")
	c.Bool("S,sort-keys", "does nothing: keys are always sorted")
	c.Bool("M,monochrome-output", "does nothing: there are no colours")
	c.Bool("C,color-output", "does nothing: there are no colours")
	for _, o := range [][2]string{ // they are taken out above, and are here for the help
		{"arg", "NAME TEXT: $NAME is a string"}, {"argjson", "NAME JSON: $NAME is that value"},
		{"rawfile", "NAME FILE: $NAME is the file's text"},
		{"slurpfile", "NAME FILE: $NAME is the array of the file's values"},
		{"args", "TEXT...: strings for $ARGS.positional"},
		{"jsonargs", "JSON...: values for $ARGS.positional"},
	} {
		c.Do(","+o[0], o[1], func() {})
	}
	if err := c.Parse(0, -1); err != nil {
		return err
	}
	if f.indent = strings.Repeat(" ", max(0, min(*indent, 16))); *tabs {
		f.indent = "\t"
	}
	code, err := f.compile(c, *file)
	if err != nil {
		return err
	}
	return code(c)
}

// variables takes those flags out that have two values.
func (f *jqFlags) variables(args []string) (rest []string, err error) {
	for len(args) > 0 {
		kind := args[0]
		switch kind {
		case "--":
			return append(rest, args...), nil
		case "--arg", "--argjson", "--slurpfile", "--rawfile":
		default:
			rest, args = append(rest, kind), args[1:]
			continue
		}
		if len(args) < 3 {
			return nil, applet.Usage("%s needs a name and a value", kind)
		}
		name, value := args[1], any(args[2])
		args = args[3:]
		switch kind {
		case "--argjson":
			value, err = oneJSON(value.(string))
		case "--slurpfile":
			value, err = slurpFile(value.(string))
		case "--rawfile":
			var text []byte
			text, err = os.ReadFile(value.(string))
			value = string(text)
		}
		if err != nil {
			return nil, applet.Fail(2, "%s %s: %w", kind, name, err)
		}
		f.names, f.values = append(f.names, "$"+name), append(f.values, value)
		f.named[name] = value
	}
	return rest, nil
}

// positional takes out what follows --args and --jsonargs, but for flags and, if it comes only then, the query.
func (f *jqFlags) positional(args []string, query bool) (rest []string, err error) {
	at := slices.IndexFunc(args, func(a string) bool { return a == "--args" || a == "--jsonargs" })
	if at < 0 {
		return args, nil
	}
	rest = slices.Clone(args[:at])
	for _, a := range rest {
		query = query && strings.HasPrefix(a, "-") // of flags with values only --indent and -f come before the query
	}
	for _, text := range args[at+1:] {
		if query || len(text) > 1 && text[0] == '-' {
			rest, query = append(rest, text), query && text[0] == '-'
			continue
		}
		var v any = text
		if args[at] == "--jsonargs" {
			if v, err = oneJSON(text); err != nil {
				return nil, applet.Fail(2, "--jsonargs %s: %w", text, err)
			}
		}
		f.list = append(f.list, v)
	}
	return rest, nil
}

func oneJSON(text string) (any, error) {
	all, err := slurp(json.NewDecoder(strings.NewReader(text)))
	if err == nil && len(all) != 1 {
		err = fmt.Errorf("%q is %d JSON values, expected one", text, len(all))
	}
	if err != nil {
		return nil, err
	}
	return all[0], nil
}

func slurpFile(name string) (any, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return slurp(json.NewDecoder(file))
}

func slurp(d *json.Decoder) ([]any, error) {
	d.UseNumber()
	all := []any{}
	for {
		var v any
		if err := d.Decode(&v); err == io.EOF {
			return all, nil
		} else if err != nil {
			return nil, err
		}
		all = append(all, v)
	}
}

// compile makes a program of the query, which is in a file or the first argument; the others are the input's files.
func (f *jqFlags) compile(c *applet.Call, file string) (func(*applet.Call) error, error) {
	query, rest := ".", c.Args
	switch {
	case file != "":
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, applet.Fail(2, "%w", err)
		}
		query = string(text)
	case len(rest) > 0:
		query, rest = rest[0], rest[1:]
	}
	parsed, err := gojq.Parse(query)
	if err != nil {
		return nil, applet.Fail(3, "the query %q: %w", query, err)
	}
	in := &jqInput{c: c, f: f, names: rest}
	if len(rest) == 0 {
		in.names = []string{"-"}
	}
	f.names = append(f.names, "$ARGS")
	f.values = append(f.values, map[string]any{"named": f.named, "positional": f.list})
	code, err := gojq.Compile(parsed, gojq.WithEnvironLoader(os.Environ), gojq.WithVariables(f.names),
		gojq.WithInputIter(in), gojq.WithFunction("input_filename", 0, 0, func(any, []any) any { return in.name() }),
		gojq.WithFunction("debug", 0, 0, func(v any, _ []any) any { return f.debug(c, v) }),
		gojq.WithFunction("stderr", 0, 0, func(v any, _ []any) any { return f.stderr(c, v) }))
	if err != nil {
		return nil, applet.Fail(3, "the query %q: %w", query, err)
	}
	return func(c *applet.Call) error { return f.run(c, code, in) }, nil
}

func (f *jqFlags) debug(c *applet.Call, v any) any {
	text, err := gojq.Marshal([]any{"DEBUG:", v})
	if err == nil {
		fmt.Fprintf(c.Err, "%s\n", text)
	}
	return v
}

func (f *jqFlags) stderr(c *applet.Call, v any) any {
	text, err := gojq.Marshal(v)
	if s, ok := v.(string); ok {
		text = []byte(s)
	}
	if err == nil {
		_, _ = c.Err.Write(text)
	}
	return v
}

// run puts each value of the input through the query.
func (f *jqFlags) run(c *applet.Call, code *gojq.Code, in *jqInput) error {
	defer in.close()
	last, some, failed := true, false, false
	for {
		v, ok := any(nil), true
		if !f.none {
			v, ok = in.Next()
		}
		if !ok {
			break
		}
		if err, bad := v.(error); bad {
			return applet.Fail(2, "%w", err)
		}
		results := code.Run(v, f.values...)
		for {
			v, ok := results.Next()
			if !ok {
				break
			}
			if err, bad := v.(error); bad {
				var halt *gojq.HaltError
				if errors.As(err, &halt) {
					return f.halt(c, halt)
				}
				failed = true
				_ = c.Out.Flush() // so that the message stands where it belongs
				fmt.Fprintf(c.Err, "jq: %v\n", err)
				break
			}
			some, last = true, v != nil && v != false
			if err := f.print(c, v); err != nil {
				return err
			}
		}
		if f.none {
			break
		}
	}
	switch {
	case failed:
		return applet.Exit(5)
	case f.status && !some:
		return applet.Exit(4)
	case f.status && !last:
		return applet.Exit(1)
	}
	return nil
}

// halt ends as halt and halt_error ask for.
func (f *jqFlags) halt(c *applet.Call, h *gojq.HaltError) error {
	if text, ok := h.Value().(string); ok {
		fmt.Fprint(c.Err, text)
	} else if h.Value() != nil {
		f.stderr(c, h.Value())
		fmt.Fprintln(c.Err)
	}
	return applet.Exit(h.ExitCode())
}
