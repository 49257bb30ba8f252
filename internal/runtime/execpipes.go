// SPDX-License-Identifier: Apache-2.0

package runtime

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"sync"

	"github.com/containerd/containerd/v2/pkg/cio"
	"golang.org/x/sys/unix"
	"k8s.io/cri-streaming/pkg/streaming/remotecommand"

	"github.com/wherryproject/wherry/internal/streams"
)

// execPipes are the named pipes between this process and the shim that a command runs in: one descriptor each. Their
// names go as soon as the shim has opened them.
type execPipes struct {
	config                cio.Config
	dir                   string
	stdin, stdout, stderr *os.File // nil: there is none
	// writers keep the ends that are read from here from being at their end before the shim writes.
	writers []*os.File
	closing sync.Once
}

func newExecPipes(run, id string, tty, stdin bool) (p *execPipes, err error) {
	base := filepath.Join(run, "exec")
	if err := os.MkdirAll(base, 0o700); err != nil {
		return nil, err
	}
	p = &execPipes{dir: filepath.Join(base, id)}
	if err := os.Mkdir(p.dir, 0o700); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			p.close()
		}
	}()
	p.config = cio.Config{Terminal: tty, Stdout: filepath.Join(p.dir, "stdout")}
	if p.stdout, err = p.reader(p.config.Stdout); err != nil {
		return nil, err
	}
	if !tty {
		p.config.Stderr = filepath.Join(p.dir, "stderr")
		if p.stderr, err = p.reader(p.config.Stderr); err != nil {
			return nil, err
		}
	}
	if stdin {
		p.config.Stdin = filepath.Join(p.dir, "stdin")
		// For both ways: whoever opens a pipe to write waits for a reader, and the shim opens it later.
		p.stdin, err = openPipe(p.config.Stdin, os.O_RDWR)
	}
	return p, err
}

// reader makes a pipe that is read here.
func (p *execPipes) reader(path string) (*os.File, error) {
	r, err := openPipe(path, os.O_RDONLY)
	if err != nil {
		return nil, err
	}
	w, err := os.OpenFile(path, os.O_WRONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, errors.Join(err, r.Close())
	}
	p.writers = append(p.writers, w)
	return r, nil
}

func openPipe(path string, flag int) (*os.File, error) {
	if err := unix.Mkfifo(path, 0o600); err != nil {
		return nil, &os.PathError{Op: "mkfifo", Path: path, Err: err}
	}
	return os.OpenFile(path, flag|unix.O_NONBLOCK, 0)
}

// opened is to be called when the shim has opened the pipes.
func (p *execPipes) opened() {
	for _, w := range p.writers {
		_ = w.Close()
	}
	_ = os.RemoveAll(p.dir)
}

// join copies between the pipes and a client's streams, until the returned channel is closed: then all output is
// written, or lost with the client.
func (p *execPipes) join(ctx context.Context, o ExecOptions, closeStdin func() error,
	resize func(remotecommand.TerminalSize) error) <-chan struct{} {
	p.opened()
	if p.stdin != nil {
		go func() {
			_, _ = io.Copy(p.stdin, o.Stdin)
			if !o.TTY { // a terminal has no end
				_ = p.stdin.Close()
				_ = closeStdin()
			}
		}()
	}
	if o.Resize != nil {
		go func() {
			for {
				select {
				case size, more := <-o.Resize:
					if !more {
						return
					}
					if size.Height > 0 && size.Width > 0 {
						_ = resize(size)
					}
				case <-ctx.Done():
					return
				}
			}
		}()
	}
	var outputs sync.WaitGroup
	output := func(from *os.File, to io.Writer) {
		if from == nil {
			return
		}
		if to == nil {
			to = io.Discard
		}
		outputs.Go(func() { _ = streams.Pass(to, from) })
	}
	output(p.stdout, o.Stdout)
	output(p.stderr, o.Stderr)
	done := make(chan struct{})
	go func() { outputs.Wait(); close(done) }()
	return done
}

// close gives all descriptors back. It may be called more than once.
func (p *execPipes) close() {
	p.closing.Do(func() {
		p.opened()
		for _, f := range []*os.File{p.stdin, p.stdout, p.stderr} {
			if f != nil {
				_ = f.Close()
			}
		}
	})
}

// Config is part of cio.IO.
func (p *execPipes) Config() cio.Config { return p.config }

// Cancel, Wait and Close are part of cio.IO: containerd's client is not to care for the pipes.
func (*execPipes) Cancel()      {}
func (*execPipes) Wait()        {}
func (*execPipes) Close() error { return nil }
