// SPDX-License-Identifier: Apache-2.0

package applet

import (
	"fmt"
	"strconv"
	"strings"
)

// option is a flag of a command.
type option struct {
	short, long string
	meta        string // of its value; empty for a switch
	help        string
	set         func(value string) error
	loose       bool // a switch that may be given a value: behind =, or behind its letter if it wants to know it
	attached    bool // the letter takes all that is behind it in the same argument as its value
}

// add registers a flag named "s", "s,long" or ",long".
func (c *Call) add(names, meta, help string, set func(string) error) {
	short, long, _ := strings.Cut(names, ",")
	c.options = append(c.options, option{short: short, long: long, meta: meta, help: help, set: set})
}

// Bool registers a switch.
func (c *Call) Bool(names, help string) *bool {
	v := new(bool)
	c.add(names, "", help, func(string) error { *v = true; return nil })
	return v
}

// Count registers a switch that counts how often it is given.
func (c *Call) Count(names, help string) *int {
	v := new(int)
	c.add(names, "", help, func(string) error { *v++; return nil })
	return v
}

// Ignore registers a flag that does nothing, with a value behind = or without.
func (c *Call) Ignore(names, help string) {
	c.Bool(names, help)
	c.options[len(c.options)-1].loose = true
}

// Maybe registers a flag that may have a value, which is a part of the same argument: -Ihours, --iso=hours. It is nil
// where the flag is not given.
func (c *Call) Maybe(names, help string) **string {
	v := new(*string)
	c.add(names, "", help, func(s string) error { *v = &s; return nil })
	c.options[len(c.options)-1].loose, c.options[len(c.options)-1].attached = true, true
	return v
}

// Do registers a switch that calls f when it is met: for those of which the last one wins.
func (c *Call) Do(names, help string, f func()) {
	c.add(names, "", help, func(string) error { f(); return nil })
}

// String registers a flag with a value.
func (c *Call) String(names, meta, value, help string) *string {
	c.add(names, meta, help, func(s string) error { value = s; return nil })
	return &value
}

// Strings registers a flag that may be given many times.
func (c *Call) Strings(names, meta, help string) *[]string {
	v := new([]string)
	c.add(names, meta, help, func(s string) error { *v = append(*v, s); return nil })
	return v
}

// Int registers a flag with a whole number.
func (c *Call) Int(names, meta string, value int, help string) *int {
	c.add(names, meta, help, func(s string) error {
		n, err := strconv.Atoi(s)
		if err != nil {
			return fmt.Errorf("%q is not a whole number", s)
		}
		value = n
		return nil
	})
	return &value
}

// Float registers a flag with a number, as of seconds.
func (c *Call) Float(names, meta string, value float64, help string) *float64 {
	c.add(names, meta, help, func(s string) error {
		n, err := strconv.ParseFloat(s, 64)
		if err != nil {
			return fmt.Errorf("%q is not a number", s)
		}
		value = n
		return nil
	})
	return &value
}

// Digits makes -5 mean -n 5, for the flag named.
func (c *Call) Digits(flag string) { c.digits = flag }

// Posix makes flags end at the first argument that is none: what follows is another command's.
func (c *Call) Posix() { c.posix = true }

// Parse takes the flags out of Args and checks how many arguments are left; max < 0 is no limit.
func (c *Call) Parse(least, most int) error {
	var rest []string
	args := c.Args
	for len(args) > 0 {
		arg := args[0]
		args = args[1:]
		if arg == "--" {
			rest = append(rest, args...)
			break
		}
		if len(arg) < 2 || arg[0] != '-' {
			rest = append(rest, arg)
			if c.posix {
				rest = append(rest, args...)
				break
			}
			continue
		}
		var err error
		if name, ok := strings.CutPrefix(arg, "--"); ok {
			args, err = c.long(name, args)
		} else {
			args, err = c.short(arg[1:], args)
		}
		if err != nil {
			return err
		}
	}
	c.Args = rest
	switch {
	case len(rest) < least && least == 1:
		return Usage("missing argument")
	case len(rest) < least && most != least:
		return Usage("expected at least %d arguments, got %d", least, len(rest))
	case len(rest) < least:
		return Usage("expected %d arguments, got %d", least, len(rest))
	case most >= 0 && len(rest) > most:
		return Usage("unexpected argument %q", rest[most])
	}
	return nil
}

func (c *Call) long(name string, args []string) ([]string, error) {
	if name == "help" {
		c.help()
		return nil, Exit(0)
	}
	name, value, given := strings.Cut(name, "=")
	for _, o := range c.options {
		if o.long != name {
			continue
		}
		switch {
		case o.meta == "" && given && !o.loose:
			return nil, Usage("--%s takes no value", name)
		case o.meta != "" && !given && len(args) == 0:
			return nil, Usage("--%s needs a value", name)
		case o.meta != "" && !given:
			value, args = args[0], args[1:]
		}
		if err := o.set(value); err != nil {
			return nil, Usage("--%s: %v", name, err)
		}
		return args, nil
	}
	return nil, Usage("unknown flag --%s", name)
}

func (c *Call) short(letters string, args []string) ([]string, error) {
	if c.digits != "" && strings.Trim(letters, "0123456789") == "" {
		letters = c.digits + letters
	}
	for i := 0; i < len(letters); i++ {
		o, ok := c.find(letters[i : i+1])
		if !ok {
			return nil, Usage("unknown flag -%s", letters[i:i+1])
		}
		value := ""
		if o.attached {
			value, i = letters[i+1:], len(letters)
		}
		if o.meta != "" {
			switch rest := letters[i+1:]; {
			case rest != "":
				value = rest
			case len(args) == 0:
				return nil, Usage("-%s needs a value", o.short)
			default:
				value, args = args[0], args[1:]
			}
			i = len(letters)
		}
		if err := o.set(value); err != nil {
			return nil, Usage("-%s: %v", o.short, err)
		}
	}
	return args, nil
}

func (c *Call) find(short string) (option, bool) {
	for _, o := range c.options {
		if o.short == short {
			return o, true
		}
	}
	return option{}, false
}

// help prints how the command is used.
func (c *Call) help() {
	fmt.Fprintf(c.Out, "Usage: %s", c.Name)
	if len(c.options) > 0 {
		c.Printf(" [FLAG]...")
	}
	if c.Usage != "" {
		c.Printf(" %s", c.Usage)
	}
	c.Printf("\n\n%s.\n", c.Short)
	for i, o := range c.options {
		if i == 0 {
			c.Println()
		}
		var names []string
		if o.short != "" {
			names = append(names, "-"+o.short)
		}
		if o.long != "" {
			names = append(names, "--"+o.long)
		}
		name := strings.Join(names, ", ")
		if o.meta != "" {
			name += " " + o.meta
		}
		c.Printf("  %-22s %s\n", name, o.help)
	}
}
