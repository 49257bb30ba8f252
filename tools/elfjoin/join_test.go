// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"debug/buildinfo"
	"debug/elf"
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// entryC chooses the second program if there is an argument.
const entryC = `
extern const unsigned long programs[2];
__asm__(".section .rodata\n.globl programs\n.type programs, %object\n.size programs, 16\nprograms: .quad 0, 0\n.text\n");
__attribute__((used)) unsigned long choose(const long *stack) { return programs[stack[0] > 1]; }
#if defined(__x86_64__)
__asm__(".globl _start\n_start:\n\tmov %rsp, %rdi\n\tcall choose\n\tjmp *%rax\n");
#else
__asm__(".globl _start\n_start:\n\tmov x0, sp\n\tbl choose\n\tbr x0\n");
#endif
`

// goProgram prints what it is given, and proves that its runtime, its collector and what it keeps in .data and .bss work.
const goProgram = `package main

import (
	"fmt"
	"os"
	"runtime"
)

var name = "NAME"
var much [1 << 20]byte
var many = map[string]int{"a": 1}

func main() {
	for _, b := range much {
		if b != 0 {
			panic("memory that is not empty")
		}
	}
	done := make(chan int)
	go func() { runtime.GC(); much[len(much)-1] = 1; done <- many["a"] }()
	fmt.Println(name, <-done, len(os.Args), os.Getenv("JOINED"))
}
`

// builder makes programs in a folder.
type builder struct {
	t   *testing.T
	dir string
}

func newBuilder(t *testing.T) builder {
	t.Helper()
	if runtime.GOOS != "linux" || runtime.GOARCH != "amd64" && runtime.GOARCH != "arm64" {
		t.Skipf("there is no entry for %s/%s", runtime.GOOS, runtime.GOARCH)
	}
	return builder{t, t.TempDir()}
}

func (b builder) write(name, text string) string {
	b.t.Helper()
	path := filepath.Join(b.dir, name)
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		b.t.Fatal(err)
	}
	return path
}

func (b builder) run(name string, args ...string) string {
	b.t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir = b.dir
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "JOINED=yes") // Go's flags stay: what is compiled is shared
	out, err := cmd.CombinedOutput()
	if err != nil {
		b.t.Fatalf("%s %v: %v\n%s", name, args, err, out)
	}
	return string(out)
}

// goProgram is one that says its name.
func (b builder) goProgram(name, ldflags string) string {
	b.t.Helper()
	source := b.write(name+".go", strings.ReplaceAll(goProgram, "NAME", name))
	out := filepath.Join(b.dir, name)
	b.run("go", "build", "-ldflags", "-s -w "+ldflags, "-o", out, source)
	return out
}

// foreign is a program that says it is for another machine: to compile one takes all of the standard library.
func (b builder) foreign(program string) string {
	b.t.Helper()
	data, err := os.ReadFile(program)
	if err != nil {
		b.t.Fatal(err)
	}
	const machine = 18 // where the header names it
	binary.LittleEndian.PutUint16(data[machine:], uint16(elf.EM_RISCV))
	out := filepath.Join(b.dir, "foreign")
	if err := os.WriteFile(out, data, 0o755); err != nil {
		b.t.Fatal(err)
	}
	return out
}

func (b builder) entry(text string, more ...string) string {
	b.t.Helper()
	out := filepath.Join(b.dir, "entry")
	b.run("gcc", append([]string{"-Os", "-ffreestanding", "-fno-stack-protector", "-fno-pic", "-no-pie", "-static", "-nostdlib",
		"-Wl,--build-id=none,-z,noseparate-code,-Ttext-segment=0x3ff00000", "-o", out, b.write("entry.c", text)}, more...)...)
	return out
}

func TestJoin(t *testing.T) {
	b := newBuilder(t)
	main, short, entry := b.goProgram("main", ""), b.goProgram("short", "-T 0x40001000"), b.entry(entryC)
	joined := filepath.Join(b.dir, "joined")
	if err := run([]string{"-o", joined, "-entry", entry, main, short}); err != nil {
		t.Fatal(err)
	}
	// What writes the file anew keeps both.
	stripped := filepath.Join(b.dir, "stripped")
	b.run("strip", "-o", stripped, joined)
	for _, program := range []string{joined, stripped} {
		if out := b.run(program); out != "main 1 1 yes\n" {
			t.Errorf("%s: %q", program, out)
		}
		if out := b.run(program, "x"); out != "short 1 2 yes\n" {
			t.Errorf("%s: %q", program, out)
		}
	}
	// What it is made of can still be read from it.
	want, err := buildinfo.ReadFile(main)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := buildinfo.ReadFile(joined); err != nil || got.String() != want.String() {
		t.Errorf("%v, %v", got, err)
	}
	was, err := os.ReadFile(main)
	if err != nil {
		t.Fatal(err)
	}
	is, err := os.ReadFile(joined)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(was[4096:], is[4096:len(was)]) { // behind the headers
		t.Error("main has changed")
	}
	whole, err := parse(is)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(whole.loads()); n != len(loadsOf(t, main))+len(loadsOf(t, short))+len(loadsOf(t, entry)) {
		t.Errorf("%d segments", n)
	}
}

func loadsOf(t *testing.T, path string) []any {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	p, err := parse(data)
	if err != nil {
		t.Fatal(err)
	}
	return make([]any, len(p.loads()))
}

func TestRefused(t *testing.T) {
	b := newBuilder(t)
	main, short := b.goProgram("main", ""), b.goProgram("short", "-T 0x40001000")
	beside := b.goProgram("beside", "")
	foreign := b.foreign(short)
	wandering := filepath.Join(b.dir, "wandering")
	b.run("gcc", "-shared", "-nostdlib", "-o", wandering, b.write("wandering.c", "int x;"))
	ignorant := filepath.Join(b.dir, "ignorant")
	if err := os.Rename(b.entry(strings.ReplaceAll(entryC, "programs", "elsewhere")), ignorant); err != nil {
		t.Fatal(err)
	}
	entry := b.entry(entryC)
	for _, c := range []struct {
		entry, main, short, says string
	}{
		{entry, main, beside, "overlap"},
		{entry, main, foreign, "cannot be joined"},
		{entry, main, wandering, "at fixed addresses"},
		{entry, wandering, short, "at fixed addresses"},
		{ignorant, main, short, `"programs"`},
		{entry, main, b.write("text", "no program"), "text: "},
		{entry, main, filepath.Join(b.dir, "missing"), "no such file"},
	} {
		out := filepath.Join(b.dir, "out")
		err := run([]string{"-o", out, "-entry", c.entry, c.main, c.short})
		if err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s with %s: %v, want %q", c.main, c.short, err, c.says)
		}
		if _, err := os.Stat(out); err == nil {
			t.Errorf("%s with %s: a file was written", c.main, c.short)
		}
	}
	for _, args := range [][]string{nil, {"-o", "x", main, short}, {"-o", "x", "-entry", entry, main}, {"-x"}} {
		if err := run(args); err == nil {
			t.Errorf("%v was taken", args)
		}
	}
}
