// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"go/scanner"
	"go/token"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"text/tabwriter"
)

// program is a part linked into the main program, and what its runs gave.
type program struct {
	part
	file     string
	lines    int
	packages int
	size     int64
	cpu      []float64 // ms, user and system, of one start
	memory   []float64 // MB, the largest resident set of one start
	init     []float64 // ms, of all packages
	heap     []float64 // KB allocated by them
}

// initialized is what GODEBUG=inittrace=1 says of one package.
var initialized = regexp.MustCompile(`(?m)^init \S+ @\S+ ms, (\S+) ms clock, (\d+) bytes, \d+ allocs$`)

// start runs the program once as users do, and once with the trace of its initialization, which costs time itself.
func (p *program) start() error {
	cmd := exec.Command(p.file, "debug", "--help")
	cmd.Stdout = io.Discard
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s debug --help: %w", p.file, err)
	}
	state := cmd.ProcessState
	p.cpu = append(p.cpu, float64(state.UserTime()+state.SystemTime())/1e6)
	p.memory = append(p.memory, float64(state.SysUsage().(*syscall.Rusage).Maxrss)/1024)

	cmd = exec.Command(p.file, "debug", "--help")
	cmd.Env = append(os.Environ(), "GODEBUG=inittrace=1")
	var trace strings.Builder
	cmd.Stderr = &trace
	if err := cmd.Run(); err != nil {
		return err
	}
	var ms, bytes float64
	for _, m := range initialized.FindAllStringSubmatch(trace.String(), -1) {
		clock, _ := strconv.ParseFloat(m[1], 64)
		size, _ := strconv.ParseFloat(m[2], 64)
		ms, bytes = ms+clock, bytes+size
	}
	p.init, p.heap = append(p.init, ms), append(p.heap, bytes/1024)
	return nil
}

// write makes the table: the first program's figures, then by how much the others are above them.
func write(w io.Writer, programs []*program) {
	out := tabwriter.NewWriter(w, 0, 8, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(out, "part\tlines\tpackages\tMB\tinit ms\t(least)\tinit KB\tcpu ms\t(least)\tresident MB\t")
	for i, p := range programs {
		base := &program{}
		if i > 0 {
			base = programs[0]
		}
		fmt.Fprintf(out, "%s\t%d\t%+d\t%+.2f\t%+.2f\t%+.2f\t%+.0f\t%+.1f\t%+.1f\t%+.1f\t\n", p.name, p.lines,
			p.packages-base.packages, float64(p.size-base.size)/1e6, more(p.init, base.init, median),
			more(p.init, base.init, slices.Min), more(p.heap, base.heap, median), more(p.cpu, base.cpu, median),
			more(p.cpu, base.cpu, slices.Min), more(p.memory, base.memory, median))
	}
	_ = out.Flush()
}

func more(a, b []float64, of func([]float64) float64) float64 {
	if len(b) == 0 {
		return of(a)
	}
	return of(a) - of(b)
}

func median(list []float64) float64 {
	sorted := slices.Sorted(slices.Values(list))
	return sorted[len(sorted)/2]
}

// codeLines counts the lines with code, without tests and what is generated.
func codeLines(root string, names []string) (sum int, err error) {
	for _, name := range names {
		err := filepath.WalkDir(filepath.Join(root, name), func(file string, _ fs.DirEntry, err error) error {
			base := filepath.Base(file)
			if err != nil || !strings.HasSuffix(base, ".go") || strings.HasSuffix(base, "_test.go") ||
				strings.HasPrefix(base, "zz_generated") {
				return err
			}
			text, err := os.ReadFile(file)
			sum += linesWithCode(text)
			return err
		})
		if err != nil {
			return 0, err
		}
	}
	return sum, nil
}

func linesWithCode(text []byte) int {
	files := token.NewFileSet()
	f := files.AddFile("", files.Base(), len(text))
	var s scanner.Scanner
	s.Init(f, text, nil, 0)
	lines := map[int]bool{}
	for {
		pos, tok, lit := s.Scan()
		if tok == token.EOF {
			return len(lines)
		}
		if tok == token.SEMICOLON && lit == "\n" {
			continue
		}
		for i := range 1 + strings.Count(lit, "\n") {
			lines[f.Line(pos)+i] = true
		}
	}
}
