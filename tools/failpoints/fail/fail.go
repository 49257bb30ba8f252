// SPDX-License-Identifier: Apache-2.0

package fail

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"

	gofail "go.etcd.io/gofail/runtime"
)

// ErrInjected is in every error that a failpoint makes.
var ErrInjected = errors.New("failpoint")

// points are the places that were passed so far. A test build may have a global: rewritten code has nowhere else to
// look.
var points = struct {
	sync.Mutex
	known map[string]*gofail.Failpoint
}{known: map[string]*gofail.Failpoint{}}

// dir is the folder in which is kept what has happened.
func dir() string { return os.Getenv("FAILPOINTS_DIR") }

// Environment is what a program needs in its environment to have the failpoints of the one that starts it.
func Environment() []string {
	var out []string
	for _, name := range []string{"FAILPOINTS_DIR", "GOFAIL_FAILPOINTS"} {
		if value, set := os.LookupEnv(name); set {
			out = append(out, name+"="+value)
		}
	}
	return out
}

// pass passes a place and says what is to happen there.
func pass(place string) string {
	if dir() == "" {
		return ""
	}
	if strings.HasPrefix(place, bolt) || strings.HasPrefix(place, containerOS) {
		place += "@" + caller()
	}
	points.Lock()
	p := points.known[place]
	if p == nil {
		p = gofail.NewFailpoint(place)
		points.known[place] = p
	}
	points.Unlock()
	if f, err := os.OpenFile(filepath.Join(dir(), "passed"), os.O_WRONLY|os.O_APPEND, 0); err == nil {
		fmt.Fprintln(f, place)
		f.Close()
	}
	v, err := p.Acquire()
	what, _ := v.(string)
	if err != nil || what == "" || !claim(place, what) {
		return ""
	}
	return what
}

// claim tells whether it is the first time, of all processes, that this happens at this place.
func claim(place, what string) bool {
	f, err := os.OpenFile(filepath.Join(dir(), "done", strings.ReplaceAll(place, "/", "|")+"="+what),
		os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		return false
	}
	return f.Close() == nil
}

func die() {
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {}
}

func failure(place string) error {
	return fmt.Errorf("%w %s: %w", ErrInjected, place, syscall.EIO)
}

// Do makes a change that returns an error or nothing.
func Do(place string, change func() error) error {
	_, err := Get(place, func() (struct{}, error) { return struct{}{}, change() })
	return err
}

// Get makes a change that returns something.
func Get[T any](place string, change func() (T, error)) (T, error) {
	var none T
	switch pass(place) {
	case "before":
		die()
	case "error":
		return none, failure(place)
	case "lost":
		v, err := change()
		if f, ok := any(v).(*os.File); ok && err == nil {
			f.Close()
		}
		return none, errors.Join(err, failure(place))
	case "die", "torn":
		_, _ = change()
		die()
	}
	return change()
}

// WriteFile is os.WriteFile, which it is given.
func WriteFile(place string, write func(string, []byte, os.FileMode) error) func(string, []byte, os.FileMode) error {
	return func(name string, data []byte, perm os.FileMode) error {
		what := pass(place)
		switch what {
		case "before":
			die()
		case "error":
			return failure(place)
		case "torn":
			data = data[:len(data)/2]
		}
		err := write(name, data, perm)
		switch what {
		case "die", "torn":
			die()
		case "lost":
			return errors.Join(err, failure(place))
		}
		return err
	}
}

// Here is a place at which nothing but dying is possible.
func Here(place string) {
	switch pass(place) {
	case "die", "before", "torn":
		die()
	}
}

// Packages that write for others: a place in them is named after who passes it, too.
const (
	bolt        = "bbolt."
	containerOS = "containerd/pkg/os."
)

// caller is the function that had such a package write.
func caller() string {
	pc := make([]uintptr, 32)
	frames := runtime.CallersFrames(pc[:runtime.Callers(3, pc)])
	for {
		f, more := frames.Next()
		if by := short(f.Function); by != "" {
			return by
		}
		if !more {
			return ""
		}
	}
}

// short is the short name of a function that can have a place named after it.
func short(function string) string {
	for _, not := range []string{"go.etcd.io/bbolt.", "containerd/v2/pkg/os.", "tools/failpoints/fail.",
		"withTransactionCallback", ".func"} {
		if strings.Contains(function, not) {
			return ""
		}
	}
	return strings.NewReplacer("github.com/containerd/containerd/v2/", "containerd/", "go.etcd.io/", "", "(*", "", ")",
		"", "/v3", "", "github.com/wherryproject/wherry/internal/", "").Replace(function)
}
