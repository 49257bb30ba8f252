// SPDX-License-Identifier: Apache-2.0

package main

import (
	"debug/buildinfo"
	"debug/elf"
	"errors"
	"fmt"
	"strings"
)

// knownGo is the version of Go whose runtime was read.
const knownGo = "go1.26"

// read reads what has to be written into a program's memory, and refuses a program that is not of the kind that is
// known.
func read(program string) ([]write, error) {
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		return nil, fmt.Errorf("it is not a Go program: %w", err)
	}
	if info.GoVersion != knownGo && !strings.HasPrefix(info.GoVersion, knownGo+".") {
		return nil, fmt.Errorf("it was built by %s, and only the runtime of %s is known: see whether what "+
			"tools/alike/doc.go says is still so, then change knownGo", info.GoVersion, knownGo)
	}
	f, err := elf.Open(program)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text := f.Section(".text")
	switch {
	case f.Machine != elf.EM_X86_64 || text == nil:
		return nil, errElsewhere
	case f.Type != elf.ET_EXEC:
		return nil, errors.New("it can be loaded at any address: build it with -buildmode=exe")
	}
	symbols, err := f.Symbols()
	if err != nil {
		return nil, fmt.Errorf("it is to be built without -ldflags=-s: %w", err)
	}
	return patches(func(name string) (function, error) {
		for _, s := range symbols {
			if s.Name != name {
				continue
			}
			if s.Value < text.Addr || s.Size > text.Size {
				return function{}, fmt.Errorf("function %s is not in section .text", name)
			}
			code := make([]byte, s.Size)
			if _, err := text.ReadAt(code, int64(s.Value-text.Addr)); err != nil {
				return function{}, fmt.Errorf("function %s: %w", name, err)
			}
			return function{name, s.Value, code}, nil
		}
		return function{}, fmt.Errorf("it has no function %s", name)
	})
}
