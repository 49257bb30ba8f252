// SPDX-License-Identifier: Apache-2.0

package deps

import (
	"debug/elf"
	"debug/gosym"
	"fmt"
	"strings"
)

// Sizes fills in each module's Code from a binary. It reads the table of functions that the Go runtime itself needs, so
// it works on stripped binaries too.
func Sizes(binary string, list []Module) error {
	f, err := elf.Open(binary)
	if err != nil {
		return err
	}
	defer f.Close()
	text, pcln := f.Section(".text"), f.Section(".gopclntab")
	if text == nil || pcln == nil {
		return fmt.Errorf("%s: not a Go program for Linux", binary)
	}
	data, err := pcln.Data()
	if err != nil {
		return err
	}
	table, err := gosym.NewTable(nil, gosym.NewLineTable(data, text.Addr))
	if err != nil {
		return err
	}
	owner := map[string]int{}
	for i, m := range list {
		for _, p := range m.Packages {
			owner[p] = i
		}
	}
	for _, fn := range table.Funcs {
		if i, ok := owner[packageOf(fn.Name)]; ok {
			list[i].Code += int64(fn.End - fn.Entry)
		}
	}
	return nil
}

// packageOf is the import path in a function's name: all up to the first dot after the last slash. Type parameters may
// hold slashes, and dots in the last element are escaped.
func packageOf(name string) string {
	if i := strings.IndexByte(name, '['); i >= 0 {
		name = name[:i]
	}
	slash := strings.LastIndexByte(name, '/') + 1
	if dot := strings.IndexByte(name[slash:], '.'); dot >= 0 {
		name = name[:slash+dot]
	}
	return strings.ReplaceAll(name, "%2e", ".")
}
