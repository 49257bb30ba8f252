// SPDX-License-Identifier: Apache-2.0

package klogs

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"slices"
	"strings"
	"syscall"

	"k8s.io/klog/v2"
)

// Route sends what the Kubernetes libraries log to logger, from warnings upwards: most of what they log at Info means
// nothing to users. What they log as an error although only a client has disconnected, or a controller retries after a
// conflict, is sent at level Debug. Route affects the whole process, since klog is global.
//
// What an autoscaler logs about the same target every few seconds is logged once.
func Route(logger *slog.Logger) {
	klog.SetSlogLogger(slog.New(newAtLeast(logger.Handler(), slog.LevelWarn)))
}

// atLeast is a slog.Handler that drops records below a level, and lowers records about disconnected clients, about
// retries, and those that were logged a moment ago, to Debug.
type atLeast struct {
	slog.Handler
	level   slog.Level
	repeats *repeats
}

func newAtLeast(inner slog.Handler, level slog.Level) atLeast {
	return atLeast{inner, level, newRepeats()}
}

// Enabled implements slog.Handler.
func (h atLeast) Enabled(ctx context.Context, l slog.Level) bool {
	return l >= h.level && h.Handler.Enabled(ctx, l)
}

// Handle implements slog.Handler.
func (h atLeast) Handle(ctx context.Context, r slog.Record) error {
	if r.Level > slog.LevelDebug && (ofGoneClient(r) || ofRetry(r) || h.repeats.has(r)) {
		if !h.Handler.Enabled(ctx, slog.LevelDebug) {
			return nil
		}
		r = r.Clone()
		r.Level = slog.LevelDebug
	}
	return h.Handler.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (h atLeast) WithAttrs(attrs []slog.Attr) slog.Handler {
	return atLeast{h.Handler.WithAttrs(attrs), h.level, h.repeats}
}

// WithGroup implements slog.Handler.
func (h atLeast) WithGroup(name string) slog.Handler {
	return atLeast{h.Handler.WithGroup(name), h.level, h.repeats}
}

// ofGoneClient reports whether a record only says that the client of a stream has closed its connection, as each does
// in the end. (Pure.)
func ofGoneClient(r slog.Record) (gone bool) {
	// What the libraries for streams say; other components' lost connections are worth a line.
	if !slices.Contains([]string{"Error on socket receive", "Unable to write frame", "Unhandled Error",
		"Error proxying data from backend to client", "Error proxying data from client to backend"}, r.Message) {
		return false
	}
	r.Attrs(func(a slog.Attr) bool {
		err, ok := a.Value.Any().(error)
		gone = a.Key == "err" && ok && isGone(err)
		return !gone
	})
	return gone
}

// optimisticLock is the API server's message for a conflict: OptimisticLockErrorMsg of its generic registry, which a
// command would link for this text alone. A test compares the two.
const optimisticLock = "the object has been modified; please apply your changes to the latest version and try again"

// ofRetry reports whether a record only says that one of Kubernetes' controllers will retry in a moment, because its
// cache is behind its own writes or because of a conflict; or that it was stopped before it had started. The libraries
// wrap such errors as text. (Pure.)
func ofRetry(r slog.Record) (again bool) {
	if r.Message == "Unable to sync caches" {
		return true
	}
	if r.Message != "Unhandled Error" && !strings.HasSuffix(r.Message, ", requeuing") {
		return false
	}
	r.Attrs(func(a slog.Attr) bool {
		err, ok := a.Value.Any().(error)
		again = a.Key == "err" && ok && (strings.Contains(err.Error(), "is not as new as written version") ||
			strings.Contains(err.Error(), optimisticLock) ||
			// the garbage collector starts again with more kinds
			strings.Contains(err.Error(), "timed out waiting for dependency graph builder sync"))
		return !again
	})
	return again
}

func isGone(err error) bool {
	for _, is := range []error{net.ErrClosed, io.EOF, io.ErrUnexpectedEOF, io.ErrClosedPipe, syscall.ECONNRESET,
		syscall.EPIPE, context.Canceled} {
		// The libraries wrap errors as text.
		if errors.Is(err, is) || strings.HasSuffix(err.Error(), ": "+is.Error()) {
			return true
		}
	}
	return false
}
