// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/wherryproject/wherry/internal/cli/cmdline"
	"github.com/wherryproject/wherry/internal/cli/plain"
	"github.com/wherryproject/wherry/internal/cli/podrun"
	"github.com/wherryproject/wherry/internal/cli/pulling"
	"github.com/wherryproject/wherry/internal/manifest"
	"github.com/wherryproject/wherry/internal/podtime"
	"github.com/wherryproject/wherry/internal/timeline"
)

// runFlags are the flags of `wherry run`.
type runFlags struct {
	files      []string
	kubeconfig string
	dataDir    string
	output     string
	options    podrun.Options
	prefix     bool
	oneOff     podrun.OneOff // its image is empty where a manifest is run
	logs       cmdline.LogFlags

	dataDirGiven bool // by its flag: it counts for more than KUBECONFIG
}

const runLong = `Run what is in a manifest in the foreground: create it, report what happens, show the pods' output, wait until they end, and
exit with the pod's exit code (that of the first container that failed). Or run one container from an image, with docker's flags and
less commentary.

A manifest is a file, a folder (its *.yaml, *.yml and *.json files), a URL, or - for standard input. It may hold pods, objects that create
pods (Deployments, StatefulSets, DaemonSets, ReplicaSets, Jobs, CronJobs), and what they use: ConfigMaps, Secrets, Services,
PersistentVolumeClaims and more. A Job's exit code is 0 when it is complete, otherwise that of the pod that failed last. Deployments
and the like run until they are stopped. Jobs and pods that already exist are refused; other existing objects are updated, and stay.

What a container writes to its standard output goes to standard output, everything else to standard error. If several containers
write, each line starts with the container's name. With -o, only the pods and the objects that create them are printed to standard output.

Ctrl-C deletes what was created and waits for the pods; a second Ctrl-C kills them. So does closing the terminal, or the end of the
program that reads the output. A run that gives up (--timeout, --fail-fast) leaves everything in place for debugging, unless --rm is given.

If no server is running on this machine, one is started for the duration, with the same data folder.

Exit codes other than the pod's: 124 timeout, 125 the run itself failed, 128 and the signal's number (130 for Ctrl-C), 2 wrong
command line.`

const runExample = `  sudo wherry run -f pod.yaml
  sudo wherry run --rm -f pod.yaml -f config.yaml --timeout 10m     # in a CI job
  sudo wherry run --detach -f pod.yaml                              # return when ready
  sudo wherry run -f deployment.yaml -f service.yaml                # until Ctrl-C
  kustomize build . | sudo wherry run -f -
  sudo wherry run --rm -it busybox:1.37                             # a shell in a container of its own
  sudo wherry run --rm -v .:/src -w /src golang:1.26 -- go test ./...
  sudo wherry run -d -p 8080:80 --name web nginx:1.29               # on the server that is running`

func newRun(t Terminal) *cobra.Command {
	f := &runFlags{}
	cmd := &cobra.Command{
		Use:     "run {-f FILE | IMAGE [-- COMMAND [ARG...]]}",
		Short:   "Run pods in the foreground, from a manifest or an image",
		Long:    runLong,
		Example: runExample,
	}
	fl := cmd.Flags()
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := f.takeImage(cmd, args); err != nil {
			return err
		}
		if fl.Changed("prefix") {
			f.options.Prefix = &f.prefix
		}
		f.dataDirGiven = fl.Changed("data-dir")
		return f.run(cmd.Context(), t)
	}
	fl.StringSliceVarP(&f.files, "filename", "f", nil,
		"manifest to run: a file, a folder, a URL, or - for standard input; may be given more than once")
	fl.StringVarP(&f.options.Namespace, "namespace", "n", metav1.NamespaceDefault,
		"namespace for objects that do not specify one")
	fl.BoolVar(&f.options.Remove, "rm", false, "when the pods have ended, delete everything that was created")
	fl.BoolVarP(&f.options.Detach, "detach", "d", false, "return when the pods are ready and leave them running")
	fl.BoolVar(&f.options.FailFast, "fail-fast", false,
		"give up as soon as a container cannot start or crashes, even if waiting might help")
	fl.DurationVar(&f.options.Timeout, "timeout", 0, "give up after this time, for example 10m; default: never")
	fl.BoolVarP(&f.options.Quiet, "quiet", "q", false, "do not show progress, only the containers' output and problems")
	fl.BoolVar(&f.prefix, "prefix", false,
		"start each line of output with the container's name; default: if several containers write")
	fl.StringVarP(&f.output, "output", "o", "",
		"print what ran at the end: json, yaml or name; the containers' output then goes to standard error")
	fl.StringVar(&f.kubeconfig, "kubeconfig", "",
		"kubeconfig of the server to use; default: that of --data-dir, $KUBECONFIG, or this machine's server")
	cmdline.DataDirFlag(cmd, &f.dataDir)
	addOneOffFlags(fl, &f.oneOff)
	f.logs = cmdline.LogFlags{Level: "info", Format: "text"}
	fl.StringVar(&f.logs.Level, "log-level", f.logs.Level,
		"log level of a server that this command starts; its log is <data-dir>/server.log")
	return cmd
}

func (f *runFlags) run(ctx context.Context, t Terminal) error {
	objects, err := f.read(ctx, t)
	if err != nil {
		return err
	}
	cmdline.SilenceLibraries()
	start := time.Now()
	interrupts, release := catch()
	defer release()
	screen := f.screen(t, start)
	screen.Lost = func() { offer(interrupts, syscall.SIGPIPE) }
	server, err := f.connect(ctx, screen, interrupts)
	if err != nil {
		return cmdline.ExitWith(podrun.ExitFailure, err)
	}
	runner := &podrun.Runner{Client: server.client, Screen: screen, Options: f.options, Interrupts: interrupts,
		ServerEnds: server.own, Start: f.startCommand(), Timeline: podtime.Source{Client: server.client}.Of,
		Attach: f.attach(t, server), Transfers: server.transfers}
	result, err := runner.Run(ctx, objects)
	if perr := f.print(t, result.Objects); err == nil {
		err = perr
	}
	if serr := server.close(); err == nil {
		err = serr
	}
	if out, ok := t.Out.(*plain.Watched); ok && err == nil && result.Code == 0 {
		err = unwritten(out.Err())
	}
	if err == nil && result.Code == 0 {
		return nil
	}
	if result.Code == 0 {
		result.Code = podrun.ExitFailure
	}
	return cmdline.ExitWith(result.Code, err)
}

// catch takes the signals that end a run. SIGPIPE is only kept from ending the program: that nobody reads is reported
// by the write that failed, as sockets break too. A SIGHUP that is ignored (nohup) stays so. The channel holds one of
// each.
func catch() (interrupts chan os.Signal, release func()) {
	interrupts, pipes := make(chan os.Signal, 4), make(chan os.Signal, 1)
	ends := []os.Signal{syscall.SIGINT, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) {
		ends = append(ends, syscall.SIGHUP)
	}
	signal.Notify(interrupts, ends...)
	signal.Notify(pipes, syscall.SIGPIPE)
	return interrupts, func() { signal.Stop(interrupts); signal.Stop(pipes) }
}

// offer sends a signal unless so many wait that it makes no difference.
func offer(to chan<- os.Signal, s os.Signal) {
	select {
	case to <- s:
	default:
	}
}

// screen is where the run writes.
func (f *runFlags) screen(t Terminal, start time.Time) *podrun.Screen {
	both := cmdline.IsTerminal(t.Err) && cmdline.IsTerminal(t.Out)
	s := &podrun.Screen{Out: t.Out, Err: t.Err, Colour: both, Quiet: f.options.Quiet, Brief: f.oneOff.Image != "",
		Start: start}
	if f.output != "" {
		s.Out = t.Err
	}
	if width, height := cmdline.Size(t.Err); height > 0 {
		_, out := cmdline.Size(s.Out)
		s.OneLine = out > 0
		s.Rows = timeline.Options{Width: width, Colour: cmdline.IsTerminal(t.Err), ASCII: asciiOnly(os.Getenv),
			Zone: time.Local}
	}
	return s
}

// read decodes all manifests before anything else happens, and checks what the flags say about one another.
func (f *runFlags) read(ctx context.Context, t Terminal) ([]manifest.Object, error) {
	switch {
	case len(f.files) == 0 && f.oneOff.Image == "":
		return nil,
			cmdline.ExitWith(exitUsage,
				errors.New("what to run? name a manifest with -f pod.yaml (-f - for standard input), or an image"))

	case f.options.Remove && f.options.Detach:
		return nil,
			cmdline.ExitWith(exitUsage, errors.New("--rm waits for the pods' end and --detach does not; choose one"))
	case f.options.Timeout < 0:
		return nil, cmdline.ExitWith(exitUsage, errors.New("--timeout must not be negative"))
	case f.output != "" && f.output != "json" && f.output != "yaml" && f.output != "name":
		return nil, cmdline.ExitWith(exitUsage, fmt.Errorf("-o %s: use json, yaml or name", f.output))
	}
	if f.oneOff.Image != "" {
		o, err := f.object(t)
		if f.options.Detach && f.output == "" {
			f.output = "name" // by which it is found again
		}
		return []manifest.Object{o}, err
	}
	objects, err := podrun.Sources{Stdin: t.In}.Read(ctx, f.files)
	if err != nil {
		return nil, cmdline.ExitWith(podrun.ExitFailure, err)
	}
	return objects, nil
}

func (f *runFlags) print(t Terminal, objects []runtime.Object) error {
	for i, obj := range objects {
		if obj == nil || f.output == "" {
			continue
		}
		if f.output == "name" {
			m, err := meta.Accessor(obj)
			if err != nil {
				return err
			}
			gvk := obj.GetObjectKind().GroupVersionKind()
			kind := schema.GroupKind{Group: gvk.Group, Kind: strings.ToLower(gvk.Kind)}
			fmt.Fprintln(t.Out, kind.String()+"/"+m.GetName())
			continue
		}
		if f.output == "yaml" && i > 0 {
			fmt.Fprintln(t.Out, "---")
		}
		if err := cmdline.PrintAs(t, f.output, obj); err != nil {
			return err
		}
	}
	return nil
}

// connection is the server that a run uses.
type connection struct {
	client kubernetes.Interface
	config *rest.Config
	// transfers are what the node fetches; nil where the server is another machine's.
	transfers pulling.Ask
	own       bool         // the server was brought up for the run
	close     func() error // ends it
}
