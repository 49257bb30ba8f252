// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"k8s.io/client-go/tools/remotecommand"

	"github.com/wherryproject/wherry/internal/runtime/tap"
)

// keeper is an Attacher for the container debug; the streams of its clients are the test's.
type keeper struct {
	id     string
	attach func(context.Context, tap.Options) error
}

func (k *keeper) KeepsOutput(_ context.Context, id string) (bool, error) { return id == k.id, nil }

func (k *keeper) Attach(ctx context.Context, _ string, o tap.Options) error { return k.attach(ctx, o) }

func keeperWorld(t *testing.T, attach func(context.Context, tap.Options) error) *world {
	t.Helper()
	k := &keeper{attach: attach}
	w := newWorld(t, func(c *Config) { c.Attach = k })
	k.id = w.host.containers["debug"]
	return w
}

// EC-14, EC-15: streams and the window's size reach a container whose output is kept, by both protocols, and the end of the input
// does; streams that were not asked for are not there.
func TestAttachKept(t *testing.T) {
	for how := range executors {
		t.Run(how, func(t *testing.T) {
			w := keeperWorld(t, func(_ context.Context, o tap.Options) error {
				if o.TTY {
					size := <-o.Resize
					_, err := fmt.Fprintf(o.Stdout, "%dx%d", size.Width, size.Height)
					return errors.Join(err, notThere(o.Stdin, o.Stderr))
				}
				in, err := io.ReadAll(o.Stdin)
				_, outErr := fmt.Fprintf(o.Stdout, "out %s", in)
				_, errErr := fmt.Fprintf(o.Stderr, "err %s", in)
				return errors.Join(err, outErr, errErr)
			})
			var out, errOut bytes.Buffer
			err := w.executor(how, "/attach/default/web/debug?input=1&output=1&error=1").StreamWithContext(t.Context(),
				remotecommand.StreamOptions{Stdin: strings.NewReader("input"), Stdout: &out, Stderr: &errOut})
			if err != nil || out.String() != "out input" || errOut.String() != "err input" {
				t.Errorf("%q %q %v", out.String(), errOut.String(), err)
			}
			queue := make(sizes, 1)
			queue <- remotecommand.TerminalSize{Width: 120, Height: 40}
			defer close(queue)
			out.Reset()
			err = w.executor(how, "/attach/default/web/debug?output=1&tty=1").StreamWithContext(t.Context(),
				remotecommand.StreamOptions{Stdout: &out, Tty: true, TerminalSizeQueue: queue})
			if err != nil || out.String() != "120x40" {
				t.Errorf("with a terminal: %q %v", out.String(), err)
			}
		})
	}
}

func notThere(in io.Reader, errOut io.Writer) error {
	if in != nil || errOut != nil {
		return errors.New("streams that nobody asked for")
	}
	return nil
}

// EC-15: a client that is gone is noticed, though nothing comes and nobody writes; and an error reaches one that is there.
func TestAttachKeptEnds(t *testing.T) {
	for how := range executors {
		t.Run(how, func(t *testing.T) {
			attached, gone := make(chan struct{}), make(chan struct{})
			w := keeperWorld(t, func(ctx context.Context, _ tap.Options) error {
				close(attached)
				<-ctx.Done()
				close(gone)
				return ctx.Err()
			})
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan error, 1)
			go func() {
				done <- w.executor(how, "/attach/default/web/debug?output=1").StreamWithContext(ctx, remotecommand.StreamOptions{Stdout: io.Discard})
			}()
			<-attached
			cancel()
			<-gone
			<-done

			w = keeperWorld(t, func(context.Context, tap.Options) error { return errors.New("no such luck") })
			err := w.executor(how, "/attach/default/web/debug?output=1").StreamWithContext(t.Context(), remotecommand.StreamOptions{Stdout: io.Discard})
			if err == nil || !strings.Contains(err.Error(), "no such luck") {
				t.Errorf("the client reads %v", err)
			}
		})
	}
}
