// SPDX-License-Identifier: Apache-2.0

package spare

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// span is a part of this process's memory.
type span struct{ from, to uintptr }

// giveProgram unmaps the program's own pages, of which those that are used come back: a few at a time, and not 2 MB as
// the kernel has it for a file that it keeps in large pieces. Go maps its program, code and constants, as a file that
// is never written to; what may be written is another part.
func giveProgram() error {
	program, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return err
	}
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		return err
	}
	var errs []error
	for _, s := range readOnly(maps, strings.TrimSuffix(program, " (deleted)")) {
		_ = s.advise(unix.MADV_NOHUGEPAGE) // not where the kernel knows of no large pieces
		errs = append(errs, s.advise(unix.MADV_DONTNEED))
	}
	return errors.Join(errs...)
}

func (s span) advise(what uintptr) error {
	if _, _, no := syscall.Syscall(syscall.SYS_MADVISE, s.from, s.to-s.from, what); no != 0 {
		return fmt.Errorf("madvise %x-%x: %w", s.from, s.to, no)
	}
	return nil
}

// readOnly finds the parts of a file that are mapped and cannot be written to, in what the kernel says of a process's
// mappings, one a line: FROM-TO MODE OFFSET DEVICE INODE PATH. (Pure.)
func readOnly(maps []byte, path string) (out []span) {
	for lines := bufio.NewScanner(bytes.NewReader(maps)); lines.Scan(); {
		line := lines.Text()
		f := strings.Fields(line)
		if len(f) < 6 || strings.Contains(f[1], "w") || !strings.Contains(f[1], "p") {
			continue
		}
		if name := line[strings.Index(line, f[4])+len(f[4]):]; strings.TrimSuffix(strings.TrimLeft(name, " "),
			" (deleted)") != path {
			continue
		}
		var s span
		if _, err := fmt.Sscanf(f[0], "%x-%x", &s.from, &s.to); err == nil && s.from < s.to {
			out = append(out, s)
		}
	}
	return out
}
