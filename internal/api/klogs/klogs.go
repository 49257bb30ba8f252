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

// Route sends what the Kubernetes libraries log to logger, from warnings upwards: they say much at Info that means
// nothing to a person. What they call an error though it is only that a client has gone, or that a controller tries
// again what somebody else has changed meanwhile, is sent as debugging. It acts on the whole process, since klog is
// global.
//
// What an autoscaler says of the same target every few seconds is told once.
func Route(logger *slog.Logger) {
	klog.SetSlogLogger(slog.New(newAtLeast(logger.Handler(), slog.LevelWarn)))
}

// atLeast is a slog.Handler that drops what is below a level, and lowers what is about clients that have gone, about
// second tries, and what was told a moment ago.
type atLeast struct {
	slog.Handler
	level slog.Level
	told  *told
}

func newAtLeast(inner slog.Handler, level slog.Level) atLeast {
	return atLeast{inner, level, newTold()}
}

// Enabled implements slog.Handler.
func (h atLeast) Enabled(ctx context.Context, l slog.Level) bool {
	return l >= h.level && h.Handler.Enabled(ctx, l)
}

// Handle implements slog.Handler.
func (h atLeast) Handle(ctx context.Context, r slog.Record) error {
	if r.Level > slog.LevelDebug && (ofGoneClient(r) || ofSecondTry(r) || h.told.again(r)) {
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
	return atLeast{h.Handler.WithAttrs(attrs), h.level, h.told}
}

// WithGroup implements slog.Handler.
func (h atLeast) WithGroup(name string) slog.Handler {
	return atLeast{h.Handler.WithGroup(name), h.level, h.told}
}

// ofGoneClient decides whether a record only says that a stream's client has closed its connection, as each does in the
// end. (Pure.)
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

// optimisticLock is what the API server says when somebody else was quicker: OptimisticLockErrorMsg of its generic
// registry, which a command would link for these words alone. A test holds the two together.
const optimisticLock = "the object has been modified; please apply your changes to the latest version and try again"

// ofSecondTry decides whether a record only says that a controller of Kubernetes' tries again in a moment: its cache is
// behind what it has written itself, or somebody was quicker; or that it was told to stop before it had begun. The
// libraries put such errors into others' texts. (Pure.)
func ofSecondTry(r slog.Record) (again bool) {
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
			// it is told of more kinds
			strings.Contains(err.Error(), "timed out waiting for dependency graph builder sync"))
		return !again
	})
	return again
}

func isGone(err error) bool {
	for _, is := range []error{net.ErrClosed, io.EOF, io.ErrUnexpectedEOF, io.ErrClosedPipe, syscall.ECONNRESET,
		syscall.EPIPE, context.Canceled} {
		// The libraries put errors into others' texts.
		if errors.Is(err, is) || strings.HasSuffix(err.Error(), ": "+is.Error()) {
			return true
		}
	}
	return false
}
