// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// storm keeps others from resolving paths below link within this container's root: the kernel gives up a walk through
// ".." whenever something is renamed at the same time, and this one is long. It works on the container's own files
// only.
func storm(args []string) error {
	if len(args) != 1 || !filepath.IsAbs(args[0]) {
		return errors.New("storm LINK")
	}
	const links, longest = 38, 4000 // the kernel follows 40, and a link has at most 4095 bytes
	link := args[0]
	to := link + ".d"
	if err := os.Rename(link, to); err != nil {
		return err
	}
	round := strings.TrimPrefix(to, "/") + "/../"
	dots := strings.Repeat(round, longest/len(round))
	next := strings.TrimPrefix(to, "/")
	for i := range links {
		name := fmt.Sprintf("%s.%d", link, i)
		if i == links-1 {
			name = link
		}
		if err := os.Symlink(dots+next, name); err != nil {
			return err
		}
		next = strings.TrimPrefix(name, "/")
	}
	a, b := link+".a", link+".b"
	if err := os.WriteFile(a, nil, 0o644); err != nil {
		return err
	}
	fmt.Println("storm")
	for {
		if err := errors.Join(syscall.Rename(a, b), syscall.Rename(b, a)); err != nil {
			return err
		}
	}
}
