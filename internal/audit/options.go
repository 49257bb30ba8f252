// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"k8s.io/apiserver/plugin/pkg/audit/buffered"
	pluginlog "k8s.io/apiserver/plugin/pkg/audit/log"
	"k8s.io/apiserver/plugin/pkg/audit/truncate"
	"k8s.io/apiserver/plugin/pkg/audit/webhook"
	"k8s.io/client-go/tools/clientcmd"
)

// Values of LogOptions.Path that are no file.
const (
	Off    = "none" // no log
	Stdout = "-"
)

// The modes of a backend: whether a request waits until it is on record, and whether it fails if it cannot be.
const (
	Batch          = "batch"
	Blocking       = "blocking"
	BlockingStrict = "blocking-strict"
)

// Modes are the values of Sending.Mode.
func Modes() []string { return []string{Batch, Blocking, BlockingStrict} }

// Formats are the values of LogOptions.Format.
func Formats() []string { return slices.Clone(pluginlog.AllowedFormats) }

// Options are kube-apiserver's flags about audit; the flag's name stands at each. Defaults makes them.
// https://kubernetes.io/docs/tasks/debug/debug-cluster/audit/
type Options struct {
	PolicyFile string // --audit-policy-file; empty: the built-in policy
	Log        LogOptions
	Webhook    WebhookOptions
}

// LogOptions are about the log file.
type LogOptions struct {
	Path       string    // --audit-log-path; empty: DefaultPath
	Out        io.Writer // where the path Stdout leads
	MaxAge     int       // days
	MaxBackups int       // rotated files
	MaxSize    int       // MiB at which the file is rotated
	Compress   bool      // rotated files
	Format     string    // json or legacy
	Sending
}

// WebhookOptions are about a server that takes events.
type WebhookOptions struct {
	ConfigFile     string // a kubeconfig; empty: none
	InitialBackoff time.Duration
	Sending
}

// Sending is how events get to a backend.
type Sending struct {
	Mode     string
	Batch    buffered.BatchConfig // for mode batch
	Truncate bool
	Limits   truncate.Config // for Truncate
}

// Defaults are those of kube-apiserver but for the log's: it is on, and takes about 100 MiB at most as events compress
// (a good GiB if they do not at all).
func Defaults() Options {
	limits := truncate.Config{MaxEventSize: 100 << 10, MaxBatchSize: 10 << 20}
	return Options{
		Log: LogOptions{
			MaxBackups: 20, MaxSize: 50, Compress: true, Format: pluginlog.FormatJson,
			Sending: Sending{Mode: Blocking, Batch: buffered.BatchConfig{BufferSize: 10000, MaxBatchSize: 1},
				Limits: limits},
		},
		Webhook: WebhookOptions{
			InitialBackoff: webhook.DefaultInitialBackoffDelay,
			Sending: Sending{Mode: Batch, Limits: limits, Batch: buffered.BatchConfig{
				BufferSize: 10000, MaxBatchSize: 400, MaxBatchWait: 30 * time.Second, ThrottleEnable: true,
				ThrottleQPS: 10, ThrottleBurst: 15, AsyncDelegate: true,
			}},
		},
	}
}

// DefaultPath is the log of a data folder.
func DefaultPath(dataDir string) string { return filepath.Join(dataDir, "audit", "audit.log") }

// Validate checks the options, and the files that others wrote. Its errors name the flags.
func (o Options) Validate() error {
	var errs []error
	fail := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if !slices.Contains(Formats(), o.Log.Format) {
		fail("--audit-log-format: %q is not one of %s", o.Log.Format, strings.Join(Formats(), ", "))
	}
	for _, n := range []struct {
		flag  string
		value int
		least int
	}{{"--audit-log-maxage", o.Log.MaxAge, 0}, {"--audit-log-maxbackup", o.Log.MaxBackups, 0},
		{"--audit-log-maxsize", o.Log.MaxSize, 1}} {
		if n.value < n.least {
			fail("%s: must be %d or more, not %d", n.flag, n.least, n.value)
		}
	}
	if o.Log.Path != "" && o.Log.Path != Off && o.Log.Path != Stdout && !filepath.IsAbs(o.Log.Path) {
		fail("--audit-log-path: %q: give an absolute path, %q for standard output, or %q", o.Log.Path, Stdout, Off)
	}
	if o.Webhook.InitialBackoff <= 0 {
		fail("--audit-webhook-initial-backoff: must be more than zero")
	}
	if o.PolicyFile != "" {
		if _, err := readPolicy(o.PolicyFile); err != nil {
			fail("%w", err) // it names the flag
		}
	}
	if o.Webhook.ConfigFile != "" {
		switch c, err := clientcmd.LoadFromFile(o.Webhook.ConfigFile); {
		case err != nil:
			fail("--audit-webhook-config-file %s: %w", o.Webhook.ConfigFile, err)
		case len(c.Clusters) == 0:
			fail("--audit-webhook-config-file %s: it names no cluster: it must be a kubeconfig with the webhook's address",
				o.Webhook.ConfigFile)
		}
	}
	errs = append(errs, o.Log.validate("log"), o.Webhook.validate("webhook"))
	return errors.Join(errs...)
}

func (s Sending) validate(name string) error {
	var errs []error
	fail := func(flag, format string, args ...any) {
		errs = append(errs, fmt.Errorf("--audit-"+name+"-"+flag+": "+format, args...))
	}
	if !slices.Contains(Modes(), s.Mode) {
		fail("mode", "%q is not one of %s", s.Mode, strings.Join(Modes(), ", "))
	}
	for _, n := range []struct {
		flag  string
		value float64
	}{
		{"batch-buffer-size", float64(s.Batch.BufferSize)}, {"batch-max-size", float64(s.Batch.MaxBatchSize)},
		{"batch-throttle-qps", float64(s.Batch.ThrottleQPS)}, {"batch-throttle-burst", float64(s.Batch.ThrottleBurst)},
		{"truncate-max-event-size", float64(s.Limits.MaxEventSize)},
		{"truncate-max-batch-size", float64(s.Limits.MaxBatchSize)},
	} {
		if n.value < 0 {
			fail(n.flag, "must not be less than zero")
		}
	}
	if s.Batch.MaxBatchWait < 0 {
		fail("batch-max-wait", "must not be less than zero")
	}
	if s.Mode == Batch {
		if s.Batch.BufferSize <= 0 {
			fail("batch-buffer-size", "must be more than zero")
		}
		if s.Batch.MaxBatchSize <= 0 {
			fail("batch-max-size", "must be more than zero")
		}
		if s.Batch.ThrottleEnable && (s.Batch.ThrottleQPS <= 0 || s.Batch.ThrottleBurst <= 0) {
			fail("batch-throttle-qps", "this and --audit-%s-batch-throttle-burst must be more than zero", name)
		}
	}
	if s.Truncate && (s.Limits.MaxEventSize <= 0 || s.Limits.MaxBatchSize < s.Limits.MaxEventSize) {
		fail("truncate-max-event-size", "must be more than zero and no more than --audit-%s-truncate-max-batch-size",
			name)
	}
	return errors.Join(errs...)
}
