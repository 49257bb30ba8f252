// SPDX-License-Identifier: Apache-2.0

package files

import (
	"cmp"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/wherryproject/wherry/toolbox/internal/applet"
)

func (l *lister) sort(list []entry) {
	slices.SortFunc(list, func(a, b entry) int {
		by := 0
		switch {
		case *l.byTime:
			by = l.time(b.info).Compare(l.time(a.info))
		case *l.bySize:
			by = cmp.Compare(b.info.Size(), a.info.Size())
		case l.order == 'X':
			by = cmp.Compare(filepath.Ext(a.name), filepath.Ext(b.name))
		case l.order == 'v':
			by = byVersion(a.name, b.name)
		}
		by = cmp.Or(by, cmp.Compare(a.name, b.name))
		if *l.reverse {
			return -by
		}
		return by
	})
}

// byVersion compares names of which numbers are parts: a9 is in front of a10.
func byVersion(a, b string) int {
	digits := func(s string) string {
		return s[:len(s)-len(strings.TrimLeft(s, "0123456789"))]
	}
	for a != "" && b != "" {
		x, y := digits(a), digits(b)
		if x != "" && y != "" {
			a, b = a[len(x):], b[len(y):]
			x, y = strings.TrimLeft(x, "0"), strings.TrimLeft(y, "0")
			if by := cmp.Or(cmp.Compare(len(x), len(y)), cmp.Compare(x, y)); by != 0 {
				return by
			}
			continue
		}
		if by := cmp.Compare(a[0], b[0]); by != 0 {
			return by
		}
		a, b = a[1:], b[1:]
	}
	return cmp.Compare(len(a), len(b))
}

// time is the one of a file's times that counts.
func (l *lister) time(info fs.FileInfo) time.Time {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		switch l.age {
		case 'u':
			return time.Unix(st.Atim.Sec, st.Atim.Nsec)
		case 'c':
			return time.Unix(st.Ctim.Sec, st.Ctim.Nsec)
		}
	}
	return info.ModTime()
}

// total prints what the files of a folder take on the disk.
func (l *lister) total(list []entry) {
	var sum int64
	for _, e := range list {
		sum += blocks(e.info)
	}
	if *l.human {
		l.Printf("total %s\n", applet.Human(sum*512))
		return
	}
	l.Printf("total %d\n", sum/2)
}

// spaces word what files take on the disk, in front of their names.
func (l *lister) spaces(list []entry) []string {
	out, width := make([]string, len(list)), 0
	for i, e := range list {
		if out[i] = fmt.Sprint(blocks(e.info) / 2); *l.human {
			out[i] = applet.Human(blocks(e.info) * 512)
		}
		width = max(width, len(out[i]))
	}
	for i := range out {
		out[i] = fmt.Sprintf("%*s ", width, out[i])
	}
	return out
}

// blocks is what a file takes on the disk, in units of 512 bytes.
func blocks(info fs.FileInfo) int64 {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return st.Blocks
	}
	return 0
}
