// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/wherryproject/wherry/internal/audit"
)

// auditFlags are those of kube-apiserver about audit, with its names.
func auditFlags(cmd *cobra.Command, t Terminal, o *audit.Options) {
	o.Log.Out = t.Out
	f := cmd.Flags()
	f.StringVar(&o.PolicyFile, "audit-policy-file", "",
		"audit policy (audit.k8s.io/v1); default: a built-in one, see docs/guides/audit.md")
	f.StringVar(&o.Log.Path, "audit-log-path", "",
		"audit log file; - for standard output, none to disable; default: <data-dir>/audit/audit.log")
	f.IntVar(&o.Log.MaxSize, "audit-log-maxsize", o.Log.MaxSize, "size in MiB at which the log is rotated")
	f.IntVar(&o.Log.MaxBackups, "audit-log-maxbackup", o.Log.MaxBackups, "number of rotated files to keep; 0 for all")
	f.IntVar(&o.Log.MaxAge, "audit-log-maxage", o.Log.MaxAge, "days to keep rotated files; 0 for no limit by age")
	f.BoolVar(&o.Log.Compress, "audit-log-compress", o.Log.Compress, "compress rotated files")
	f.StringVar(&o.Log.Format, "audit-log-format", o.Log.Format,
		strings.Join(audit.Formats(), " or ")+"; wherry audit reads json")
	f.StringVar(&o.Webhook.ConfigFile, "audit-webhook-config-file", "",
		"kubeconfig of a server to send the events to as well")
	f.DurationVar(&o.Webhook.InitialBackoff, "audit-webhook-initial-backoff", o.Webhook.InitialBackoff,
		"delay before a failed request is retried")
	sendingFlags(f, "log", &o.Log.Sending)
	sendingFlags(f, "webhook", &o.Webhook.Sending)
	for name, values := range map[string][]string{"audit-log-format": audit.Formats(), "audit-log-mode": audit.Modes(),
		"audit-webhook-mode": audit.Modes()} {
		// fails only for a flag that is not there
		_ = cmd.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
	}
}

// sendingFlags are those that log and webhook both have.
func sendingFlags(f *pflag.FlagSet, backend string, s *audit.Sending) {
	name := func(n string) string { return "audit-" + backend + "-" + n }
	f.StringVar(&s.Mode, name("mode"), s.Mode,
		"blocking: requests wait until they are recorded; blocking-strict: they also fail if they cannot be; batch: they do not wait")
	f.IntVar(&s.Batch.BufferSize, name("batch-buffer-size"), s.Batch.BufferSize,
		"events buffered in batch mode before some are lost")
	f.IntVar(&s.Batch.MaxBatchSize, name("batch-max-size"), s.Batch.MaxBatchSize, "maximum number of events in a batch")
	f.DurationVar(&s.Batch.MaxBatchWait, name("batch-max-wait"), s.Batch.MaxBatchWait,
		"time after which a batch is sent even if it is not full")
	f.BoolVar(&s.Batch.ThrottleEnable, name("batch-throttle-enable"), s.Batch.ThrottleEnable,
		"limit the rate at which batches are sent")
	f.Float32Var(&s.Batch.ThrottleQPS, name("batch-throttle-qps"), s.Batch.ThrottleQPS,
		"average number of batches per second")
	f.IntVar(&s.Batch.ThrottleBurst, name("batch-throttle-burst"), s.Batch.ThrottleBurst,
		"maximum number of batches at once")
	f.BoolVar(&s.Truncate, name("truncate-enabled"), s.Truncate, "remove the bodies of events that are too large")
	f.Int64Var(&s.Limits.MaxEventSize, name("truncate-max-event-size"), s.Limits.MaxEventSize,
		"size in bytes above which an event is too large")
	f.Int64Var(&s.Limits.MaxBatchSize, name("truncate-max-batch-size"), s.Limits.MaxBatchSize,
		"size in bytes above which a batch is split")
}
