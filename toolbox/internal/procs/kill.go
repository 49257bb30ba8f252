// SPDX-License-Identifier: Apache-2.0

package procs

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/wherryproject/wherry/toolbox/internal/accounts"
	"github.com/wherryproject/wherry/toolbox/internal/applet"
)

// ParseSignal reads 9, KILL or SIGKILL.
func ParseSignal(text string) (syscall.Signal, error) {
	if n, err := strconv.Atoi(text); err == nil && n >= 0 && n < 65 {
		return syscall.Signal(n), nil
	}
	name := strings.TrimPrefix(strings.ToUpper(text), "SIG")
	if s := unix.SignalNum("SIG" + name); s != 0 {
		return s, nil
	}
	return 0, applet.Usage("signal %q is not known", text)
}

// takeSignal takes -9, -KILL, -s KILL out of the arguments before flags are read.
func takeSignal(c *applet.Call) (syscall.Signal, error) {
	for i, a := range c.Args {
		if a == "--" {
			break
		}
		if a == "-s" && i+1 < len(c.Args) {
			sig, err := ParseSignal(c.Args[i+1])
			c.Args = slices.Delete(c.Args, i, i+2)
			return sig, err
		}
		if len(a) > 1 && a[0] == '-' && (a[1] >= '0' && a[1] <= '9' || a[1] >= 'A' && a[1] <= 'Z') && i == 0 {
			sig, err := ParseSignal(a[1:])
			c.Args = c.Args[1:]
			return sig, err
		}
	}
	return unix.SIGTERM, nil
}

// translate prints names of numbers and numbers of names. A number may be the exit code of what a signal has ended.
func translate(c *applet.Call) error {
	for _, a := range c.Args {
		n, err := strconv.Atoi(a)
		if err != nil {
			sig, err := ParseSignal(a)
			if err != nil {
				c.Warn(err)
				continue
			}
			c.Println(int(sig))
			continue
		}
		name := unix.SignalName(syscall.Signal(n & 0x7f))
		if name == "" {
			c.Warn(fmt.Errorf("signal %s is not known", a))
			continue
		}
		c.Println(strings.TrimPrefix(name, "SIG"))
	}
	return nil
}

func kill(c *applet.Call) error {
	list := c.Bool("l", "list the signals, or translate those named")
	sig, err := takeSignal(c)
	if err != nil {
		return err
	}
	for i, a := range c.Args { // a process group
		if len(a) > 1 && a[0] == '-' && a[1] >= '0' && a[1] <= '9' {
			c.Args = slices.Insert(c.Args, i, "--")
			break
		}
	}
	if err := c.Parse(0, -1); err != nil {
		return err
	}
	if *list && len(c.Args) > 0 {
		return translate(c)
	}
	if *list {
		for n := range 65 {
			if name := unix.SignalName(syscall.Signal(n)); name != "" {
				c.Printf("%2d %s\n", n, name)
			}
		}
		return nil
	}
	if len(c.Args) == 0 {
		return applet.Usage("missing process")
	}
	for _, a := range c.Args {
		pid, err := strconv.Atoi(a)
		if err != nil {
			return applet.Usage("process %q is not a number (by name: pkill)", a)
		}
		if err := unix.Kill(pid, sig); err != nil {
			c.Warn(fmt.Errorf("process %d: %w", pid, err))
		}
	}
	return nil
}

// match finds processes by a pattern, without this one.
func match(c *applet.Call, full, exact bool, user string) ([]*Proc, error) {
	text := ""
	if len(c.Args) > 0 {
		text = c.Args[0]
	}
	if exact {
		text = "^(?:" + text + ")$"
	}
	re, err := regexp.Compile(text)
	if err != nil {
		return nil, applet.Usage("pattern %q: %v", text, err)
	}
	uid := -1
	if user != "" {
		var names accounts.Names
		u, err := names.Find(user)
		if err != nil {
			return nil, err
		}
		uid = u.UID
	}
	list, err := All()
	return slices.DeleteFunc(list, func(p *Proc) bool {
		of := p.Name
		if full {
			of = p.Command()
		}
		return p.PID == os.Getpid() || !re.MatchString(of) || uid >= 0 && p.UID != uid
	}), err
}

func pgrep(c *applet.Call) error {
	full, exact := c.Bool("f,full", "look at whole command lines"), c.Bool("x,exact", "the whole name")
	long, all := c.Bool("l,list-name", "print names too"), c.Bool("a,list-full", "print command lines too")
	newest, oldest := c.Bool("n,newest", "the newest only"), c.Bool("o,oldest", "the oldest only")
	count, user := c.Bool("c,count", "how many only"), c.String("u,euid", "USER", "", "of this user only")
	if err := c.Parse(0, 1); err != nil {
		return err
	}
	if len(c.Args) == 0 && *user == "" {
		return applet.Usage("missing pattern")
	}
	list, err := match(c, *full, *exact, *user)
	if err != nil {
		return err
	}
	if n := len(list); n > 0 && (*newest || *oldest) {
		slices.SortFunc(list, func(a, b *Proc) int { return a.Start.Compare(b.Start) })
		if *newest {
			list = list[n-1:]
		} else {
			list = list[:1]
		}
	}
	if *count {
		c.Println(len(list))
	}
	for _, p := range list {
		switch {
		case *count:
		case *all:
			c.Printf("%d %s\n", p.PID, p.Command())
		case *long:
			c.Printf("%d %s\n", p.PID, p.Name)
		default:
			c.Println(p.PID)
		}
	}
	if len(list) == 0 {
		return applet.Exit(1)
	}
	return nil
}

func pkill(c *applet.Call) error {
	sig, err := takeSignal(c)
	if err != nil {
		return err
	}
	full, exact := c.Bool("f,full", "look at whole command lines"), c.Bool("x,exact", "the whole name")
	user := c.String("u,euid", "USER", "", "of this user only")
	if err := c.Parse(0, 1); err != nil {
		return err
	}
	if len(c.Args) == 0 && *user == "" {
		return applet.Usage("missing pattern")
	}
	list, err := match(c, *full, *exact, *user)
	if err != nil {
		return err
	}
	for _, p := range list {
		if err := unix.Kill(p.PID, sig); err != nil {
			c.Warn(fmt.Errorf("process %d: %w", p.PID, err))
		}
	}
	if len(list) == 0 {
		return applet.Exit(1)
	}
	return nil
}

func pidof(c *applet.Call) error {
	if err := c.Parse(0, -1); err != nil {
		return err
	}
	list, err := All()
	if err != nil {
		return err
	}
	var out []string
	for _, p := range slices.Backward(list) {
		name := p.Name
		if len(p.Args) > 0 {
			name = p.Args[0][strings.LastIndexByte(p.Args[0], '/')+1:]
		}
		if slices.Contains(c.Args, name) || slices.Contains(c.Args, p.Name) {
			out = append(out, strconv.Itoa(p.PID))
		}
	}
	if len(out) == 0 {
		return applet.Exit(1)
	}
	c.Println(strings.Join(out, " "))
	return nil
}
