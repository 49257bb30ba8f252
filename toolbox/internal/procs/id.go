// SPDX-License-Identifier: Apache-2.0

package procs

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/wherryproject/wherry/toolbox/internal/accounts"
	"github.com/wherryproject/wherry/toolbox/internal/applet"
)

func id(c *applet.Call) error {
	user, group := c.Bool("u,user", "the user only"), c.Bool("g,group", "the group only")
	groups, name := c.Bool("G,groups", "all groups only"), c.Bool("n,name", "names, not numbers")
	c.Bool("r,real", "does nothing")
	if err := c.Parse(0, 1); err != nil {
		return err
	}
	if *name && !*user && !*group && !*groups {
		return applet.Usage("-n needs -u, -g or -G")
	}
	var names accounts.Names
	uid, gid := os.Geteuid(), os.Getegid()
	all, err := os.Getgroups()
	if err != nil {
		return err
	}
	if len(c.Args) == 1 {
		u, err := names.Find(c.Args[0])
		if err != nil {
			return err
		}
		uid, gid, all = u.UID, u.GID, []int{u.GID}
	}
	if !slices.Contains(all, gid) {
		all = append([]int{gid}, all...)
	}
	one := func(n int, word func(int) string) string {
		if *name {
			return word(n)
		}
		return strconv.Itoa(n)
	}
	both := func(n int, word func(int) string) string {
		if w := word(n); w != strconv.Itoa(n) {
			return fmt.Sprintf("%d(%s)", n, w)
		}
		return strconv.Itoa(n)
	}
	list := func(f func(int, func(int) string) string, sep string) string {
		var out []string
		for _, g := range all {
			out = append(out, f(g, names.Group))
		}
		return strings.Join(out, sep)
	}
	switch {
	case *user:
		c.Println(one(uid, names.User))
	case *group:
		c.Println(one(gid, names.Group))
	case *groups:
		c.Println(list(one, " "))
	default:
		c.Printf("uid=%s gid=%s groups=%s\n", both(uid, names.User), both(gid, names.Group), list(both, ","))
	}
	return nil
}

func groups(c *applet.Call) error {
	if err := c.Parse(0, -1); err != nil {
		return err
	}
	if len(c.Args) == 0 {
		c.Args = []string{"-Gn"}
		return id(c)
	}
	var names accounts.Names
	for _, name := range c.Args {
		u, err := names.Find(name)
		if err == nil && u.Name != name {
			err = fmt.Errorf("there is no user %q in /etc/passwd", name)
		}
		if err != nil {
			c.Warn(err)
			continue
		}
		if len(c.Args) > 1 {
			c.Printf("%s : ", name)
		}
		c.Println(names.Group(u.GID))
	}
	return nil
}

func whoami(c *applet.Call) error {
	if err := c.Parse(0, 0); err != nil {
		return err
	}
	var names accounts.Names
	c.Println(names.User(os.Geteuid()))
	return nil
}
