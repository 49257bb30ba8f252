// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/wherryproject/wherry/internal/audit"
)

// auditFlags are those of kube-apiserver about audit, with its names.
func auditFlags(cmd *cobra.Command, o *audit.Options) {
	o.Log.Out = os.Stdout
	f := cmd.Flags()
	f.StringVar(&o.PolicyFile, "audit-policy-file", "", "audit policy (audit.k8s.io/v1); default: a built-in one, see docs/guides/audit.md")
	f.StringVar(&o.Log.Path, "audit-log-path", "", "audit log; - for standard output, none for no log; default: <data-dir>/audit/audit.log")
	f.IntVar(&o.Log.MaxSize, "audit-log-maxsize", o.Log.MaxSize, "size of the log in MiB at which it is rotated")
	f.IntVar(&o.Log.MaxBackups, "audit-log-maxbackup", o.Log.MaxBackups, "rotated files to keep; 0 for all")
	f.IntVar(&o.Log.MaxAge, "audit-log-maxage", o.Log.MaxAge, "days to keep rotated files; 0 for as long as there is room by number")
	f.BoolVar(&o.Log.Compress, "audit-log-compress", o.Log.Compress, "compress rotated files")
	f.StringVar(&o.Log.Format, "audit-log-format", o.Log.Format, strings.Join(audit.Formats(), " or ")+"; wherry audit reads json")
	f.StringVar(&o.Webhook.ConfigFile, "audit-webhook-config-file", "", "kubeconfig of a server that is sent the events too")
	f.DurationVar(&o.Webhook.InitialBackoff, "audit-webhook-initial-backoff", o.Webhook.InitialBackoff, "time before a request that failed is sent again")
	sendingFlags(f, "log", &o.Log.Sending)
	sendingFlags(f, "webhook", &o.Webhook.Sending)
	for name, values := range map[string][]string{"audit-log-format": audit.Formats(), "audit-log-mode": audit.Modes(), "audit-webhook-mode": audit.Modes()} {
		_ = cmd.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp)) // fails only for a flag that is not there
	}
}

// sendingFlags are those that log and webhook both have.
func sendingFlags(f *pflag.FlagSet, backend string, s *audit.Sending) {
	name := func(n string) string { return "audit-" + backend + "-" + n }
	f.StringVar(&s.Mode, name("mode"), s.Mode, "blocking: a request waits until it is on record; blocking-strict: and fails if it cannot be; batch: it does not wait")
	f.IntVar(&s.Batch.BufferSize, name("batch-buffer-size"), s.Batch.BufferSize, "events kept in mode batch before some are lost")
	f.IntVar(&s.Batch.MaxBatchSize, name("batch-max-size"), s.Batch.MaxBatchSize, "events in one batch at most")
	f.DurationVar(&s.Batch.MaxBatchWait, name("batch-max-wait"), s.Batch.MaxBatchWait, "time after which a batch goes out though it is not full")
	f.BoolVar(&s.Batch.ThrottleEnable, name("batch-throttle-enable"), s.Batch.ThrottleEnable, "limit the rate of batches")
	f.Float32Var(&s.Batch.ThrottleQPS, name("batch-throttle-qps"), s.Batch.ThrottleQPS, "batches per second on average")
	f.IntVar(&s.Batch.ThrottleBurst, name("batch-throttle-burst"), s.Batch.ThrottleBurst, "batches at once")
	f.BoolVar(&s.Truncate, name("truncate-enabled"), s.Truncate, "take the bodies out of events that are too large")
	f.Int64Var(&s.Limits.MaxEventSize, name("truncate-max-event-size"), s.Limits.MaxEventSize, "bytes from which an event is too large")
	f.Int64Var(&s.Limits.MaxBatchSize, name("truncate-max-batch-size"), s.Limits.MaxBatchSize, "bytes from which a batch is split")
}
