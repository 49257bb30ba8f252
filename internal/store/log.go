// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"

	"go.uber.org/zap/zapcore"
)

// core writes etcd's log lines to a slog.Logger. Etcd logs much at Info that means nothing to a person; only warnings
// and errors pass.
type core struct {
	logger *slog.Logger
	fields []zapcore.Field
	muted  *atomic.Bool
}

func newCore(logger *slog.Logger) *core {
	if logger == nil {
		logger = slog.New(slog.DiscardHandler)
	}
	return &core{logger: logger.With(component, "etcd"), muted: new(atomic.Bool)}
}

// component is the key by which the server's parts are distinguished in the log.
const component = "component"

// mute drops everything from now on.
func (c *core) mute() { c.muted.Store(true) }

// harmless recognizes warnings that every start of a single, embedded member gives.
func harmless(message string) bool {
	switch message {
	// one socket, one client
	case "Running http and grpc server on single port. This is not recommended for production.",
		"simple token is not cryptographically signed",                        // etcd's own authentication is off
		"Failed to detect schema version", "failed to update storage version": // a new store has no entries yet
		return true
	}
	// Its election was asked for before it had applied what its log says of members, and is asked for again.
	return strings.HasSuffix(message, "is unpromotable and can not campaign") ||
		strings.HasSuffix(message, "since there are still pending configuration changes to apply")
}

func (c *core) Enabled(l zapcore.Level) bool { return l >= zapcore.WarnLevel }

func (c *core) With(fields []zapcore.Field) zapcore.Core {
	return &core{logger: c.logger, muted: c.muted, fields: append(append([]zapcore.Field(nil), c.fields...), fields...)}
}

func (c *core) Check(e zapcore.Entry, checked *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if c.Enabled(e.Level) && !c.muted.Load() && !harmless(e.Message) {
		return checked.AddCore(e, c)
	}
	return checked
}

func (c *core) Write(e zapcore.Entry, fields []zapcore.Field) error {
	enc := zapcore.NewMapObjectEncoder()
	for _, f := range c.fields {
		f.AddTo(enc)
	}
	for _, f := range fields {
		f.AddTo(enc)
	}
	attrs := make([]slog.Attr, 0, len(enc.Fields))
	for k, v := range enc.Fields {
		if k == component {
			k = "part" // of etcd: the logger has the word already
		}
		attrs = append(attrs, slog.Any(k, v))
	}
	level := slog.LevelWarn
	if e.Level >= zapcore.ErrorLevel {
		level = slog.LevelError
	}
	c.logger.LogAttrs(context.Background(), level, e.Message, attrs...)
	return nil
}

func (c *core) Sync() error { return nil }

// verdict is the error that etcd logged when it gave up. It means to end the process then, with no more than a log
// line; here the part of the process that needs it is notified, and etcd's goroutine waits for the end.
type verdict struct {
	once sync.Once
	dead chan struct{} // closed once err is set
	err  error
	fail func(error)
	then func() // what etcd's goroutine does next; nil: it waits for the end
	// missed is called with each snapshot that had no room on the disk. Etcd goes on without it when missed returns.
	missed func(path string)
}

// OnWrite implements zapcore.CheckWriteHook. Without then it does not return: etcd must not go on with what it could
// not do, a snapshot excepted.
func (v *verdict) OnWrite(e *zapcore.CheckedEntry, fields []zapcore.Field) {
	var why error
	for _, f := range fields {
		if err, ok := f.Interface.(error); ok && f.Type == zapcore.ErrorType {
			why = err
		}
	}
	if path := unsaved(e.Message, why); path != "" {
		v.missed(path)
		return
	}
	if why != nil {
		v.give(fmt.Errorf("etcd gave up: %s: %w", e.Message, why))
	} else {
		v.give(errors.New("etcd gave up: " + e.Message))
	}
	if v.then != nil {
		v.then()
		return
	}
	select {}
}

// give says why etcd cannot go on. Only the first reason counts.
func (v *verdict) give(err error) {
	v.once.Do(func() {
		v.err = err
		close(v.dead)
		v.fail(err)
	})
}

// unsaved names the file of the snapshot that etcd gives up for, if that is all: the disk had no room for it. A
// snapshot only shortens the next start: it is written before the log knows of it, so nothing refers to one that is not
// there. An error of the log is another matter.
func unsaved(message string, err error) string {
	var where *fs.PathError
	if message == "failed to save snapshot" && errors.Is(err, syscall.ENOSPC) && errors.As(err, &where) &&
		filepath.Ext(where.Path) == ".snap" {
		return where.Path
	}
	return ""
}
