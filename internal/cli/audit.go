// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/wherryproject/wherry/internal/audit"
	"github.com/wherryproject/wherry/internal/audit/trail"
	"github.com/wherryproject/wherry/internal/cli/cmdline"
	"github.com/wherryproject/wherry/internal/cli/reach"
)

// auditCommand holds the flags and arguments of `wherry audit`.
type auditCommand struct {
	reach.Flags
	file      string
	all       bool
	users     []string
	verbs     []string
	since     time.Duration
	sinceTime string
	refused   bool
	failed    bool
	tail      int
	output    string
	follow    bool
	utc       bool
}

func newAudit(t Terminal) *cobra.Command {
	f := &auditCommand{}
	cmd := &cobra.Command{
		Use:   "audit [POD | TYPE/NAME | TYPE [NAME]]",
		Short: "Show who did what: to a pod, to any object, or overall",
		Long: `Read the audit log of this machine's server: who did what to which object, when, from where, and with what result. For debug
containers, commands run in pods and commands run from images, it shows the image, command and container.

Without arguments it shows all recorded requests, in all namespaces unless -n names one. The log is a file in the server's data folder
that only root can read; rotated files are read too. The server's audit policy defines what is recorded: by default every request that
changes something, reads secrets or reaches into a pod, and every request that was refused.

Exit codes: 1 the log cannot be read, 2 incorrect usage.`,
		Example: `  sudo wherry audit web                        # what was done to the pod web
  sudo wherry audit -n shop web --since 1h -o wide
  sudo wherry audit secret/db                  # who read or changed a secret
  sudo wherry audit --user jane --verb create,delete
  sudo wherry audit --refused -f               # follow refused requests
  sudo wherry audit web -o json | jq .user.username`,
		Args:              cobra.MaximumNArgs(2),
		RunE:              func(cmd *cobra.Command, args []string) error { return f.run(cmd.Context(), t, args) },
		ValidArgsFunction: f.CompletePods,
	}
	f.AddTo(cmd)
	fl := cmd.Flags()
	fl.StringVar(&f.file, "audit-log-path", "",
		"the audit log, if the server was started with a different one; default: <data-dir>/audit/audit.log")
	fl.BoolVarP(&f.all, "all-namespaces", "A", false, "in all namespaces")
	fl.StringSliceVar(&f.users, "user", nil, "only requests by these users, including those who impersonated them")
	fl.StringSliceVar(&f.verbs, "verb", nil,
		"only these verbs: create, update, patch, delete, deletecollection, get, list, watch")
	fl.DurationVar(&f.since, "since", 0, "only requests newer than this, for example 30m")
	fl.StringVar(&f.sinceTime, "since-time", "", "only requests after this time (RFC3339)")
	fl.BoolVar(&f.refused, "refused", false, "only refused requests (401, 403)")
	fl.BoolVar(&f.failed, "failed", false, "only failed requests, for whatever reason")
	fl.IntVar(&f.tail, "tail", -1, "only this many of the most recent requests; -1 for all")
	fl.StringVarP(&f.output, "output", "o", "", "wide, json or yaml (the events as in the log, one document each)")
	fl.BoolVarP(&f.follow, "follow", "f", false, "follow new requests")
	fl.BoolVar(&f.utc, "utc", false, "show times in UTC instead of local time")
	for name, values := range map[string][]string{
		"output": {"wide", "json", "yaml"},
		"verb":   {"create", "update", "patch", "delete", "deletecollection", "get", "list", "watch"},
	} {
		_ = cmd.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
	}
	return cmd
}

// filter makes the filter of flags and arguments.
func (f *auditCommand) filter(args []string, now time.Time) (trail.Filter, error) {
	out := trail.Filter{Users: f.users, Verbs: f.verbs, Refused: f.refused, Failed: f.failed}
	wrong := func(format string, a ...any) (trail.Filter, error) {
		return out, cmdline.ExitWith(exitUsage, fmt.Errorf(format, a...))
	}
	switch {
	case f.output != "" && f.output != "wide" && f.output != "json" && f.output != "yaml":
		return wrong("-o %s: use wide, json or yaml", f.output)
	case f.tail < -1:
		return wrong("--tail %d: give a number of requests, or -1 for all", f.tail)
	case f.tail >= 0 && (f.output == "json" || f.output == "yaml"):
		return wrong("--tail only works with the table; with -o %s use the end of the output", f.output)
	case f.since != 0 && f.sinceTime != "":
		return wrong("--since and --since-time exclude each other; give one of them")
	case f.since < 0:
		return wrong("--since %s: give a duration above zero", f.since)
	case f.all && f.Namespace != "":
		return wrong("-n and -A exclude each other; give one of them")
	}
	if f.since > 0 {
		out.Since = now.Add(-f.since)
	}
	if f.sinceTime != "" {
		at, err := time.Parse(time.RFC3339, f.sinceTime)
		if err != nil {
			return wrong("--since-time %q is not a time such as 2026-01-31T15:04:05Z", f.sinceTime)
		}
		out.Since = at
	}
	var err error
	if out.Resource, out.Name, err = objectArgument(args); err != nil {
		return out, cmdline.ExitWith(exitUsage, err)
	}
	if out.Namespace = f.Namespace; out.Namespace == "" && out.Name != "" && !f.all && !clusterWide(out.Resource) {
		out.Namespace = f.usual()
	}
	return out, nil
}

// usual is the namespace of kubectl's context, as far as it can be had: the log can be read without a server.
func (f *auditCommand) usual() string {
	g := f.Flags
	if _, err := g.Connect(); err != nil || g.Namespace == "" {
		return "default"
	}
	return g.Namespace
}

// objectArgument reads POD, TYPE, TYPE/NAME or TYPE NAME.
func objectArgument(args []string) (resource, name string, err error) {
	switch len(args) {
	case 0:
		return "", "", nil
	case 2:
		if strings.Contains(args[0], "/") {
			return "", "", fmt.Errorf("%s %s: give TYPE/NAME or TYPE NAME", args[0], args[1])
		}
		return plural(args[0]), args[1], nil
	}
	kind, name, both := strings.Cut(args[0], "/")
	switch {
	case both && (kind == "" || name == "" || strings.Contains(name, "/")):
		return "", "", fmt.Errorf("%q: give POD or TYPE/NAME", args[0])
	case both:
		return plural(kind), name, nil
	case args[0] == plural(args[0]) && knownPlural(args[0]):
		return args[0], "", nil // wherry audit secrets
	}
	return "pods", args[0], nil
}

// kindNames are other names of resources, as kubectl takes them.
func kindNames() map[string]string {
	return map[string]string{
		"po": "pods", "pod": "pods", "ns": "namespaces", "no": "nodes", "cm": "configmaps", "sa": "serviceaccounts",
		"svc": "services", "ep": "endpoints", "ev": "events", "limits": "limitranges", "quota": "resourcequotas",
		"csr": "certificatesigningrequests", "crd": "customresourcedefinitions", "pc": "priorityclasses",
		"priorityclass": "priorityclasses", "runtimeclass": "runtimeclasses",
		"validatingadmissionpolicy": "validatingadmissionpolicies",
		"mutatingadmissionpolicy":   "mutatingadmissionpolicies",
	}
}

// plural is a resource's name as the log has it. The log is read without a server, so kinds of others are only put into
// the plural.
func plural(kind string) string {
	kind, _, _ = strings.Cut(strings.ToLower(kind), ".")
	if full, ok := kindNames()[kind]; ok {
		return full
	}
	if strings.HasSuffix(kind, "s") {
		return kind
	}
	return kind + "s"
}

// knownPlural distinguishes resources from pods' names.
func knownPlural(name string) bool {
	return slices.Contains([]string{"pods", "podtemplates", "namespaces", "nodes", "configmaps", "secrets",
		"serviceaccounts", "services", "endpoints", "events", "limitranges", "resourcequotas", "leases",
		"endpointslices", "roles", "rolebindings", "clusterroles", "clusterrolebindings", "debugruns",
		"certificatesigningrequests", "customresourcedefinitions", "priorityclasses", "runtimeclasses", "tokenreviews"},
		name)
}

func clusterWide(resource string) bool {
	return slices.Contains([]string{"namespaces", "nodes", "clusterroles", "clusterrolebindings",
		"certificatesigningrequests", "customresourcedefinitions", "priorityclasses", "runtimeclasses", "tokenreviews"},
		resource)
}

func (f *auditCommand) path() string {
	if f.file != "" {
		return f.file
	}
	return audit.DefaultPath(f.DataDir)
}

func (f *auditCommand) run(ctx context.Context, t Terminal, args []string) error {
	filter, err := f.filter(args, time.Now())
	if err != nil {
		return err
	}
	files, err := f.files()
	if err != nil {
		return f.explain(err)
	}
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	out := f.printer(t)
	if f.follow {
		return f.explain(f.followLog(ctx, files, filter, out))
	}
	unreadable, err := trail.Read(files, filter, func(e trail.Event) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		return out.event(e)
	})
	if errors.Is(err, context.Canceled) {
		return nil
	}
	if err != nil {
		return f.explain(err)
	}
	if unreadable > 0 {
		fmt.Fprintf(t.Err, "skipped %d lines of the log that cannot be read (truncated, or not in JSON format)\n",
			unreadable)
	}
	return out.end()
}

// logs are the logs to read: the first is the one there always is. What clients without an identity were refused is
// only shown when somebody asks for what was refused.
func (f *auditCommand) logs() []string {
	logs := append([]string{f.path()}, trail.Busy(f.path())...)
	if f.refused {
		logs = append(logs, trail.Refused(f.path()))
	}
	return logs
}

// files are those of all logs.
func (f *auditCommand) files() ([]string, error) {
	var all []string
	for i, log := range f.logs() {
		files, err := trail.Files(log)
		if err == nil && i == 0 && len(files) == 0 {
			err = fs.ErrNotExist
		}
		if err != nil {
			return nil, err
		}
		all = append(all, files...)
	}
	return all, nil
}

// followLog prints what the rotated files have, then the logs as they grow.
func (f *auditCommand) followLog(ctx context.Context, files []string, filter trail.Filter, out *auditPrinter) error {
	logs := f.logs()
	old := slices.DeleteFunc(files, func(file string) bool { return slices.Contains(logs, file) })
	if _, err := trail.Read(old, filter, out.event); err != nil {
		return err
	}
	var one sync.Mutex // what is printed comes from one log at a time
	ready := len(logs)
	follow, ctx := errgroup.WithContext(ctx)
	for _, log := range logs {
		follow.Go(func() error {
			return trail.Follow(ctx, log, filter, func(e trail.Event) error {
				one.Lock()
				defer one.Unlock()
				return out.event(e)
			}, func() {
				one.Lock()
				defer one.Unlock()
				if ready--; ready == 0 {
					out.live()
				}
			})
		})
	}
	return follow.Wait()
}

// explain says what to do about a log that cannot be read.
func (f *auditCommand) explain(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("only root can read the audit log %s: run it with sudo", f.path())
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("audit log %s does not exist: is %s the server's data folder (--data-dir), is it running with a different --audit-log-path, "+
			"or without a log?", f.path(), filepath.Dir(filepath.Dir(f.path())))
	case errors.Is(err, syscall.EPIPE):
		return nil
	}
	return err
}
