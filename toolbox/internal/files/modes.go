// SPDX-License-Identifier: Apache-2.0

package files

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/wherryproject/wherry/toolbox/internal/accounts"
	"github.com/wherryproject/wherry/toolbox/internal/applet"
)

// ParseMode returns what a MODE makes of old permission bits (with 07000).
func ParseMode(text string, umask uint32) (func(old uint32, dir bool) uint32, error) {
	if n, err := strconv.ParseUint(text, 8, 12); err == nil {
		return func(uint32, bool) uint32 { return uint32(n) }, nil
	}
	var steps []func(old uint32, dir bool) uint32
	for clause := range strings.SplitSeq(text, ",") {
		step, err := parseClause(clause, umask)
		if err != nil {
			return nil, err
		}
		steps = append(steps, step)
	}
	return func(old uint32, dir bool) uint32 {
		for _, s := range steps {
			old = s(old, dir)
		}
		return old
	}, nil
}

// parseClause reads as "ug+rwX".
func parseClause(text string, umask uint32) (func(uint32, bool) uint32, error) {
	at := strings.IndexAny(text, "+-=")
	if at < 0 || len(text) == at {
		return nil, fmt.Errorf("mode %q is neither octal nor as u+rx,go-w", text)
	}
	who, err := parseWho(text[:at], umask)
	if err != nil {
		return nil, fmt.Errorf("mode %q: %w", text, err)
	}
	p, err := parsePermissions(text[at+1:])
	if err != nil {
		return nil, fmt.Errorf("mode %q: %w", text, err)
	}
	return func(old uint32, dir bool) uint32 {
		b := p.of(old, dir) & (who | 0o1000)
		switch text[at] {
		case '+':
			return old | b
		case '-':
			return old &^ b
		}
		return old&^(who&0o777) | b
	}, nil
}

// parseWho reads the letters before the operator: the bits that a clause may change.
func parseWho(text string, umask uint32) (who uint32, err error) {
	for _, w := range text {
		switch w {
		case 'u':
			who |= 0o4700
		case 'g':
			who |= 0o2070
		case 'o':
			who |= 0o1007
		case 'a':
			who |= 0o7777
		default:
			return 0, fmt.Errorf("%q is not one of u, g, o, a", w)
		}
	}
	if text == "" {
		who = 0o7777 &^ umask
	}
	return who, nil
}

// permissions are the letters behind the operator.
type permissions struct {
	bits uint32
	from uint32 // whose rights are taken, as g=u does
	dirX bool   // X: x for folders, and for what has one already
}

func parsePermissions(text string) (out permissions, err error) {
	for _, p := range text {
		switch p {
		case 'r':
			out.bits |= 0o444
		case 'w':
			out.bits |= 0o222
		case 'x':
			out.bits |= 0o111
		case 's':
			out.bits |= 0o6000
		case 't':
			out.bits |= 0o1000
		case 'X':
			out.dirX = true
		case 'u':
			out.from |= 0o700
		case 'g':
			out.from |= 0o070
		case 'o':
			out.from |= 0o007
		default:
			return permissions{}, fmt.Errorf("%q is not one of r, w, x, X, s, t, u, g, o", p)
		}
	}
	return out, nil
}

// of are the bits that the permissions mean for a file that has old ones.
func (p permissions) of(old uint32, dir bool) uint32 {
	b := p.bits
	if p.dirX && (dir || old&0o111 != 0) {
		b |= 0o111
	}
	for _, shift := range []int{0, 3, 6} {
		b |= (old & p.from >> shift & 7) * 0o111
	}
	return b
}

// specialBits are the bits that Go numbers otherwise than the kernel.
func specialBits() map[fs.FileMode]uint32 {
	return map[fs.FileMode]uint32{fs.ModeSetuid: 0o4000, fs.ModeSetgid: 0o2000, fs.ModeSticky: 0o1000}
}

// bits are the permission bits of a mode as the kernel numbers them.
func bits(m fs.FileMode) uint32 {
	n := uint32(m.Perm())
	for bit, v := range specialBits() {
		if m&bit != 0 {
			n |= v
		}
	}
	return n
}

// mode is the opposite of bits.
func mode(n uint32) fs.FileMode {
	m := fs.FileMode(n & 0o777)
	for bit, v := range specialBits() {
		if n&v != 0 {
			m |= bit
		}
	}
	return m
}

// links says which links to folders a recursive command follows.
type links int

const (
	noLinks       links = iota
	argumentLinks       // those that are arguments
	allLinks
)

// below calls f for a path and, if recursive, all below it; failures are reported.
func below(c *applet.Call, path string, recursive bool, follow links, f func(path string, info fs.FileInfo) error) {
	look := os.Lstat
	if recursive && follow != noLinks {
		look = os.Stat
	}
	info, err := look(path)
	if err == nil {
		err = f(path, info)
	}
	if err != nil {
		c.Warn(err)
		return
	}
	if !recursive || !info.IsDir() {
		return
	}
	list, err := os.ReadDir(path)
	if err != nil {
		c.Warn(err)
	}
	if follow == argumentLinks {
		follow = noLinks
	}
	for _, e := range list {
		if follow == allLinks && e.Type()&fs.ModeSymlink != 0 {
			if to, err := os.Stat(filepath.Join(path, e.Name())); err != nil || to.IsDir() && above(path, to) {
				continue // it points nowhere, or in a circle
			}
		}
		below(c, filepath.Join(path, e.Name()), true, follow, f)
	}
}

// above tells whether a folder is one of those above a path.
func above(path string, dir fs.FileInfo) bool {
	for {
		if info, err := os.Stat(path); err == nil && os.SameFile(info, dir) {
			return true
		}
		next := filepath.Dir(path)
		if next == path || next == "." {
			return false
		}
		path = next
	}
}

func chmod(c *applet.Call) error {
	recursive := c.Bool("R,recursive", "go into folders")
	verbose := c.Bool("v,verbose", "say which mode each file has now")
	changes := c.Bool("c,changes", "as -v, where it was another one")
	quiet := c.Bool("f,silent", "say nothing of failures")
	// A mode such as -x looks like flags.
	var early string
	if len(c.Args) > 0 && len(c.Args[0]) > 1 && c.Args[0][0] == '-' && strings.Trim(c.Args[0][1:], "rwxXst") == "" {
		early, c.Args = c.Args[0], c.Args[1:]
	}
	if err := c.Parse(1, -1); err != nil {
		return err
	}
	if early == "" {
		if len(c.Args) < 2 {
			return applet.Usage("missing mode or file")
		}
		early, c.Args = c.Args[0], c.Args[1:]
	}
	change, err := ParseMode(early, currentUmask())
	if err != nil {
		return applet.Usage("%v", err)
	}
	if *quiet {
		c.Err = io.Discard
	}
	for _, path := range c.Args {
		below(c, path, *recursive, argumentLinks, func(p string, info fs.FileInfo) error {
			if info.Mode()&fs.ModeSymlink != 0 {
				if *recursive {
					return nil
				}
				if info, err = os.Stat(p); err != nil {
					return err
				}
			}
			old := bits(info.Mode())
			now := change(old, info.IsDir())
			if err := os.Chmod(p, mode(now)); err != nil {
				return err
			}
			switch words := func(m uint32) string { return fmt.Sprintf("%04o (%s)", m, Mode(mode(m))[1:]) }; {
			case old != now && (*verbose || *changes):
				c.Printf("mode of '%s' changed from %s to %s\n", p, words(old), words(now))
			case old == now && *verbose:
				c.Printf("mode of '%s' retained as %s\n", p, words(old))
			}
			return nil
		})
	}
	return nil
}

func chown(c *applet.Call) error {
	return own(c, func(n *accounts.Names, who string) (int, int, error) { return n.Owner(who) })
}

func chgrp(c *applet.Call) error {
	return own(c, func(n *accounts.Names, who string) (int, int, error) {
		gid, err := n.FindGroup(who)
		return -1, gid, err
	})
}

func own(c *applet.Call, parse func(*accounts.Names, string) (int, int, error)) error {
	recursive := c.Bool("R,recursive", "go into folders")
	link := c.Bool("h,no-dereference", "change links, not what they point to")
	follow := noLinks
	c.Do("P", "with -R: follow no links (the default)", func() { follow = noLinks })
	c.Do("H", "with -R: follow links that are arguments", func() { follow = argumentLinks })
	c.Do("L", "with -R: follow all links", func() { follow = allLinks })
	quiet := c.Bool("f,silent", "say nothing of failures")
	if err := c.Parse(2, -1); err != nil {
		return err
	}
	if *quiet {
		c.Err = io.Discard
	}
	var names accounts.Names
	uid, gid, err := parse(&names, c.Args[0])
	if err != nil {
		return err
	}
	change := os.Chown
	if *link || *recursive && follow == noLinks {
		change = os.Lchown
	}
	for _, path := range c.Args[1:] {
		below(c, path, *recursive, follow, func(p string, _ fs.FileInfo) error { return change(p, uid, gid) })
	}
	return nil
}
