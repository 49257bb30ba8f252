// SPDX-License-Identifier: Apache-2.0

package files

import (
	"debug/elf"
	"fmt"
	"os"
)

// elfWord tells what kind of program a file is, and above all whether it needs a dynamic linker that may be missing.
func elfWord(f *os.File) (string, error) {
	e, err := elf.NewFile(f)
	if err != nil {
		return "broken ELF file", nil
	}
	word := fmt.Sprintf("%s %s, %s", e.Class, e.Type, e.Machine)
	for _, p := range e.Progs {
		if p.Type != elf.PT_INTERP || p.Filesz > 4096 {
			continue
		}
		name := make([]byte, p.Filesz)
		if _, err := p.ReadAt(name, 0); err == nil && len(name) > 1 {
			return word + ", dynamically linked, interpreter " + string(name[:len(name)-1]), nil
		}
	}
	return word + ", statically linked", nil
}
