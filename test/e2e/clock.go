// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// Clock is what programs that were built by [SteppedBuild] take for the time of day: the machine's, put forward or
// back. Time that passes (what timers and time.Since go by) is the machine's. A machine's own clock is nothing for a
// test to change.
type Clock struct {
	path string
	file *os.File
}

// clockEnv names the file of 8 bytes that says by how many seconds the clock is off, in the machine's byte order. Shims
// inherit it.
const clockEnv = "WHERRY_TEST_CLOCK"

// NewClock makes a clock that is right, in folder dir.
func NewClock(dir string) (*Clock, error) {
	path := filepath.Join(dir, "clock")
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR|os.O_TRUNC, 0o644)
	if err != nil {
		return nil, err
	}
	c := &Clock{path: path, file: f}
	return c, c.Set(0)
}

// Env tells a program of this clock.
func (c *Clock) Env() string { return clockEnv + "=" + c.path }

// Set puts the clock of all programs that go by it.
func (c *Clock) Set(off time.Duration) error {
	_, err := c.file.WriteAt(binary.NativeEndian.AppendUint64(nil, uint64(off/time.Second)), 0)
	return err
}

// Close gives the file back. Programs that go by it go on doing so.
func (c *Clock) Close() error { return c.file.Close() }

// stepSource is added to Go's package time: the file is mapped, so that a step is there at once and costs no call.
const stepSource = `package time

import (
	"sync/atomic"
	"syscall"
	"unsafe"
)

var steppedFile = mapSteps()

func mapSteps() *int64 {
	path, ok := syscall.Getenv("` + clockEnv + `")
	if !ok {
		return new(int64)
	}
	fd, err := syscall.Open(path, syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return new(int64)
	}
	defer syscall.Close(fd)
	page, err := syscall.Mmap(fd, 0, 8, syscall.PROT_READ, syscall.MAP_SHARED)
	if err != nil {
		return new(int64)
	}
	return (*int64)(unsafe.Pointer(&page[0]))
}

func stepped() int64 {
	if steppedFile == nil { // before the package's variables are there
		return 0
	}
	return atomic.LoadInt64(steppedFile)
}
`

// SteppedBuild builds wherry and its shim with a package time whose Now goes by a [Clock], and returns wherry's path
// below dir. What it is made of is Go's own source as it is installed. All that is built is built anew, so the first
// time takes minutes; the build cache keeps it.
func SteppedBuild(ctx context.Context, dir string) (string, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	replace, err := steppedTime(ctx, dir)
	if err != nil {
		return "", err
	}
	shim := filepath.Join(dir, "wherry-shim")
	if err := overlayBuild(ctx, dir, replace, shim, "github.com/wherryproject/wherry/cmd/wherry-shim",
		"-tags", "no_grpc"); err != nil {
		return "", err
	}
	bundle, err := filepath.Abs("../../internal/runtime/bundle/bin")
	if err != nil {
		return "", err
	}
	sums, err := sumsWith(bundle, shim)
	if err != nil {
		return "", err
	}
	packed := shim + ".zst"
	if out, err := exec.CommandContext(ctx, "go", "run", "../../tools/pack", "-o", packed,
		shim).CombinedOutput(); err != nil {
		return "", fmt.Errorf("packing the shim: %w: %s", err, out)
	}
	with := maps.Clone(replace)
	with[filepath.Join(bundle, filepath.Base(packed))], with[filepath.Join(bundle, sumsFile)] = packed, sums
	wherry := filepath.Join(dir, "wherry")
	return wherry, overlayBuild(ctx, dir, with, wherry, "github.com/wherryproject/wherry/cmd/wherry")
}

const sumsFile = "SHA256SUMS"

// sumsWith writes the list of the helper programs' checksums with that of another program of the same name, beside
// that.
func sumsWith(bundle, program string) (string, error) {
	text, err := os.ReadFile(filepath.Join(bundle, sumsFile))
	if err != nil {
		return "", err
	}
	data, err := os.ReadFile(program)
	if err != nil {
		return "", err
	}
	var out strings.Builder
	for line := range strings.Lines(string(text)) {
		if name := filepath.Base(program); strings.HasSuffix(strings.TrimSpace(line), " "+name) {
			line = fmt.Sprintf("%x  %s\n", sha256.Sum256(data), name)
		}
		out.WriteString(line)
	}
	path := filepath.Join(filepath.Dir(program), sumsFile)
	return path, os.WriteFile(path, []byte(out.String()), 0o644)
}

// steppedTime writes the changed files of package time, and says which files of Go's they stand for.
func steppedTime(ctx context.Context, dir string) (map[string]string, error) {
	root, err := exec.CommandContext(ctx, "go", "env", "GOROOT").Output()
	if err != nil {
		return nil, fmt.Errorf("find Go's source: %w", err)
	}
	source := filepath.Join(strings.TrimSpace(string(root)), "src", "time")
	text, err := os.ReadFile(filepath.Join(source, "time.go"))
	if err != nil {
		return nil, err
	}
	const reads = "func Now() Time {\n\tsec, nsec, mono := runtimeNow()\n"
	if strings.Count(string(text), reads) != 1 {
		return nil, fmt.Errorf("time.Now of this Go is another than expected: see %s", filepath.Join(source, "time.go"))
	}
	changed, added := filepath.Join(dir, "time.go"), filepath.Join(dir, "stepped.go")
	return map[string]string{filepath.Join(source, "time.go"): changed, filepath.Join(source, "stepped.go"): added},
		errors.Join(os.WriteFile(changed, []byte(strings.Replace(string(text), reads, reads+"\tsec += stepped()\n", 1)),
			0o644),
			os.WriteFile(added, []byte(stepSource), 0o644))
}

func overlayBuild(ctx context.Context, dir string, replace map[string]string, out, pkg string, flags ...string) error {
	text, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return err
	}
	overlay := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(overlay, text, 0o644); err != nil {
		return err
	}
	args := append([]string{"build", "-trimpath", "-overlay", overlay, "-ldflags", "-s -w", "-o", out}, flags...)
	cmd := exec.CommandContext(ctx, "go", append(args, pkg)...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if text, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build %s with a clock of ours: %w\n%s", pkg, err, text)
	}
	return nil
}
