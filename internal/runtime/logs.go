// SPDX-License-Identifier: Apache-2.0

package runtime

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	goruntime "runtime"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/containerd/log"
	"github.com/sirupsen/logrus"
)

// newLogger makes the logger containerd writes to: warnings and errors go to to, unless muted. When containerd finds
// itself unable to go on it calls Fatal, which ends a process; here it calls fatal and ends the goroutine.
func newLogger(to *slog.Logger, mute *atomic.Bool, fatal func(error)) *log.Entry {
	l := logrus.New()
	l.SetOutput(io.Discard)
	l.SetLevel(logrus.WarnLevel)
	l.AddHook(hook{to, mute, fatal})
	l.ExitFunc = func(int) { goruntime.Goexit() }
	return logrus.NewEntry(l)
}

// harmless are warnings about what is no fault and nobody can or need do anything about.
var harmless = []string{
	"failed check for fsverity support",
	// no pod network wanted
	"failed to load cni during init, please check CRI plugin status before setting up network for pods",
	"using async mode for boltdb", // asked for by NoSync
	// at every container; pods cannot ask for huge pages
	"hugetlb cgroup controller is absent. skipping huge pages limits",
}

// isFailedPull recognizes the record of a failed pull. Whoever asked for it has the error, knows for what the image was
// wanted, and says so.
func isFailedPull(message string) bool {
	return strings.HasPrefix(message, "PullImage ") && strings.HasSuffix(message, " failed")
}

type hook struct {
	to    *slog.Logger
	mute  *atomic.Bool
	fatal func(error)
}

func (hook) Levels() []logrus.Level {
	return []logrus.Level{logrus.PanicLevel, logrus.FatalLevel, logrus.ErrorLevel, logrus.WarnLevel}
}

// Fire passes one record on.
func (h hook) Fire(e *logrus.Entry) error {
	if h.mute.Load() {
		return nil
	}
	level := slog.LevelError
	switch {
	case slices.Contains(harmless, e.Message), isFailedPull(e.Message):
		level = slog.LevelDebug
	case e.Level == logrus.WarnLevel:
		level = slog.LevelWarn
	}
	attrs := []any{"text", e.Message}
	keys := make([]string, 0, len(e.Data))
	for k := range e.Data {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	for _, k := range keys {
		name := k
		if k == logrus.ErrorKey {
			name = "err"
		}
		attrs = append(attrs, name, e.Data[k])
	}
	h.to.Log(context.Background(), level, "containerd", attrs...)
	if e.Level == logrus.FatalLevel {
		err, ok := e.Data[logrus.ErrorKey].(error)
		if !ok {
			h.fatal(fmt.Errorf("containerd failed: %s", e.Message))
		} else {
			h.fatal(fmt.Errorf("containerd failed: %s: %w", e.Message, err))
		}
	}
	return nil
}
