// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"github.com/spf13/cobra"
	"k8s.io/component-base/cli/flag"

	"github.com/wherryproject/wherry/internal/api"
)

// servingFlags are those of kube-apiserver about limits, with its names where it has the flag.
func servingFlags(cmd *cobra.Command, o *api.Serving) {
	f := cmd.Flags()
	f.DurationVar(&o.RequestTimeout, "request-timeout", o.RequestTimeout, "time that a request may take, but for watches, logs and streams")
	f.DurationVar(&o.MinRequestTimeout, "min-request-timeout", o.MinRequestTimeout, "time that a watch lasts at least, unless its client wants less")
	f.IntVar(&o.MaxRequestsInFlight, "max-requests-inflight", o.MaxRequestsInFlight, "requests that only read served at the same time; with priority and fairness this and the next are added up and shared out")
	f.IntVar(&o.MaxMutatingRequestsInFlight, "max-mutating-requests-inflight", o.MaxMutatingRequestsInFlight, "requests that change something served at the same time")
	f.BoolVar(&o.PriorityAndFairness, "enable-priority-and-fairness", o.PriorityAndFairness, "share out what can be served by flow schemas and priority levels (flowcontrol.apiserver.k8s.io)")
	f.IntVar(&o.MaxWatchesPerUser, "max-watches-per-user", o.MaxWatchesPerUser, "watches one user may have open; 0 for any number")
	f.IntVar(&o.HTTP2MaxStreams, "http2-max-streams-per-connection", o.HTTP2MaxStreams, "requests at the same time on one HTTP/2 connection")
	f.Float64Var(&o.GoawayChance, "goaway-chance", o.GoawayChance, "chance that a client of HTTP/2 is told to connect anew, 0 to 0.02; for servers behind a load balancer")
	f.StringSliceVar(&o.HSTS, "strict-transport-security-directives", nil, "what browsers are told by HSTS: max-age=SECONDS,includeSubDomains,preload")
	f.BoolVar(&o.Profiling, "profiling", o.Profiling, "serve /debug/pprof and /debug/flags to those allowed")
}

// tlsFlags are about the API and the node's own API alike.
func tlsFlags(cmd *cobra.Command, o *api.Serving) {
	f := cmd.Flags()
	f.StringVar(&o.TLSMinVersion, "tls-min-version", o.TLSMinVersion, "lowest version of TLS that is spoken: VersionTLS12 or VersionTLS13")
	f.StringSliceVar(&o.TLSCipherSuites, "tls-cipher-suites", nil, "cipher suites for TLS 1.2, where that is allowed; default: Go's")
	for name, values := range map[string][]string{"tls-min-version": {"VersionTLS12", "VersionTLS13"}, "tls-cipher-suites": flag.PreferredTLSCipherNames()} {
		_ = cmd.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp)) // fails only for a flag that is not there
	}
}
