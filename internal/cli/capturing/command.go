// SPDX-License-Identifier: Apache-2.0

package capturing

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/wherryproject/wherry/internal/capture"
	"github.com/wherryproject/wherry/internal/cli/cmdline"
	"github.com/wherryproject/wherry/internal/cli/onhost"
	"github.com/wherryproject/wherry/internal/cli/plain"
	"github.com/wherryproject/wherry/internal/cli/reach"
	"github.com/wherryproject/wherry/internal/cli/session"
	"github.com/wherryproject/wherry/internal/hostdebug/target"
	"github.com/wherryproject/wherry/internal/quantities"
	"github.com/wherryproject/wherry/internal/release"
)

// flags are the flags of wherry capture.
type flags struct {
	reach.Flags
	host      onhost.Flags
	output    string
	files     []string
	secrets   bool
	quiet     bool
	size      string
	timeLimit time.Duration
}

// New returns wherry capture.
func New(t cmdline.Terminal) *cobra.Command {
	f := &flags{}
	cmd := &cobra.Command{
		Use:   "capture POD",
		Short: "Save what is needed to look into a pod or container later and elsewhere, as one file",
		Long: `Save what is needed to look into a pod, or a container of this machine (docker:NAME and so on, see wherry debug --help), later and
elsewhere, as one file: specification, status, events, owners, logs (of the previous run too), timeline, and what the kernel knows of each
process: memory map, open files, threads and where they wait, limits, mounts, sockets. With --file, files of the containers too.
Containers that have ended are captured without their processes.

Nothing in the pod is changed, except for a mark that somebody has looked into it. Values of environment variables (and so what comes from
Secrets) and of the headers of probes are left out unless --secrets is given; logs, arguments, annotations and files are taken as they are.
If something cannot be captured, because you lack the permission or it does not exist, the bundle says so and has everything else.

The bundle is a tar archive compressed with zstd: tar --zstd -xf unpacks it; wherry capture show shows what is in it, without a cluster.

Exit codes: 1 failure, 2 wrong command line, 130 interrupted.`,
		Example: `  wherry capture web
  wherry capture web -n shop -o web.tar.zst --file main:/etc/app/app.conf --file '/var/log/*.log'
  sudo wherry capture docker:web -o web.tar.zst         # without a server
  wherry capture show web.tar.zst
  wherry capture show web.tar.zst containers/main/proc/1/maps`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
			defer stop()
			return f.run(ctx, t, args[0])
		},
		ValidArgsFunction: f.host.Complete(f.CompletePods),
	}
	f.AddTo(cmd)
	fl := cmd.Flags()
	f.host.AddAddress(fl)
	fl.StringVarP(&f.output, "output", "o", "",
		"file to write; - for standard output; default: wherry-capture-NAME-TIME.tar.zst in the current folder")
	fl.StringArrayVar(&f.files, "file", nil,
		"also save a file or folder, `[CONTAINER:]PATH`, by default of each container that has it; the last part may be a pattern; may be given more than once")
	fl.BoolVar(&f.secrets, "secrets", false,
		"also save the values of environment variables and of the headers of probes")
	fl.StringVar(&f.size, "max-size", "128Mi", "maximum size of what is saved, before compression")
	fl.DurationVar(&f.timeLimit, "time-limit", time.Minute,
		"maximum time to take; what has not arrived by then is left out")
	fl.BoolVarP(&f.quiet, "quiet", "q", false, "do not show progress")
	cmd.AddCommand(newShow(t))
	return cmd
}

// run makes a bundle.
func (f *flags) run(ctx context.Context, t cmdline.Terminal, of string) error {
	most, err := f.limits()
	if err != nil {
		return cmdline.ExitWith(cmdline.ExitUsage, err)
	}
	to, onHost, err := target.Parse(of)
	if err != nil {
		return cmdline.ExitWith(cmdline.ExitUsage, err)
	}
	var from source
	if onHost {
		from, err = f.onMachine(ctx, to)
	} else if err = f.host.Given(); err == nil {
		from, err = f.ofPod(ctx, reach.PodName(of))
	}
	if err != nil {
		return err
	}
	if f.output == "-" {
		if plain.IsTerminal(t.Out) {
			return cmdline.ExitWith(cmdline.ExitUsage,
				errors.New("a bundle cannot be written to a terminal: redirect it to a file, or name one with -o"))
		}
		_, err := f.bundle(ctx, t, from, t.Out, most)
		return f.interrupted(ctx, err)
	}
	return f.interrupted(ctx, f.toFile(ctx, t, from, most))
}

// limits reads the flags that bound a capture.
func (f *flags) limits() (most int64, err error) {
	q, err := quantities.Parse(f.size)
	if err != nil || q.Value() <= 0 {
		return 0, fmt.Errorf("--max-size: %q is not a size: write it like 128Mi", f.size)
	}
	if f.timeLimit <= 0 {
		return 0, fmt.Errorf("--time-limit: %s is not a valid time limit: write it like 1m", f.timeLimit)
	}
	slices.Sort(f.files)
	f.files = slices.Compact(f.files)
	for _, file := range f.files {
		if _, path := splitFile(file); path == "" {
			return 0, fmt.Errorf("--file %q: write it like /var/log/app.log or CONTAINER:/var/log/app.log", file)
		}
	}
	return q.Value(), nil
}

// splitFile takes [CONTAINER:]PATH apart.
func splitFile(file string) (container, path string) {
	if name, path, found := strings.Cut(file, ":"); found && !strings.Contains(name, "/") {
		return name, path
	}
	return "", file
}

func (f *flags) interrupted(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return cmdline.ExitWith(session.ExitInterrupted, errors.New("interrupted: no bundle was written"))
	}
	return err
}

// toFile makes a bundle in its file, which is there when it is whole.
func (f *flags) toFile(ctx context.Context, t cmdline.Terminal, from source, most int64) (err error) {
	name := f.output
	if name == "" {
		name = fmt.Sprintf("wherry-capture-%s-%s.tar.zst", from.name(), time.Now().Format("20060102-150405"))
	}
	file, err := cmdline.Beside(name)
	if err != nil {
		return err
	}
	defer func() {
		if cerr := file.Close(); err == nil {
			err = cerr
		}
		if err == nil {
			err = os.Rename(file.Name(), name)
		}
		if err != nil {
			os.Remove(file.Name())
		}
		if at, ok := errors.AsType[*os.PathError](err); ok && at.Path == file.Name() { // which nobody has typed
			err = fmt.Errorf("%s: %w", name, at.Err)
		}
	}()
	m, err := f.bundle(ctx, t, from, file, most)
	if err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	size, err := file.Seek(0, io.SeekCurrent)
	if err != nil {
		return err
	}
	fmt.Fprintf(t.Out, "%s: %s, %d files, %d bytes; wherry capture show %s looks into it\n", plain.Text(name),
		plain.Text(m.Target), len(m.Parts), size, plain.Text(name))
	if len(m.Missing) > 0 && !f.quiet {
		fmt.Fprintln(t.Err, "not in it:")
		for _, miss := range m.Missing {
			fmt.Fprintf(t.Err, "  %s\n", plain.Text(miss.What+": "+miss.Why))
		}
	}
	return nil
}

// source is what is captured.
type source interface {
	// name is that of the file.
	name() string
	// describe fills in who is captured.
	describe(m *capture.Manifest)
	// parts are what there is to take, in this order.
	parts(f *flags) []part
}

// part is something to take. An error of it is one of what is written to: what cannot be had is missed.
type part struct {
	what string
	take func(ctx context.Context, w *capture.Writer) error
}

// bundle takes all parts.
func (f *flags) bundle(ctx context.Context, t cmdline.Terminal, from source, to io.Writer,
	most int64) (capture.Manifest, error) {
	m := capture.Manifest{Version: release.Version(), Secrets: f.secrets}
	from.describe(&m)
	w, err := capture.NewWriter(to, m, most, time.Now)
	if err != nil {
		return m, err
	}
	limited, cancel := context.WithTimeoutCause(ctx, f.timeLimit,
		fmt.Errorf("there was no time for it (--time-limit %s)", f.timeLimit))
	defer cancel()
	for _, p := range from.parts(f) {
		if limited.Err() != nil {
			w.Miss(p.what, context.Cause(limited))
			continue
		}
		if !f.quiet && cmdline.IsTerminal(t.Err) {
			fmt.Fprintf(t.Err, "taking %s\n", plain.Text(p.what))
		}
		if err := p.take(limited, w); err != nil {
			_, _ = w.Close() // it says the same once more
			return m, err
		}
	}
	return w.Close()
}
