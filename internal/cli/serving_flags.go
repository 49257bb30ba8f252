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
	f.DurationVar(&o.RequestTimeout, "request-timeout", o.RequestTimeout,
		"maximum duration of a request, except watches, logs and streams")
	f.DurationVar(&o.MinRequestTimeout, "min-request-timeout", o.MinRequestTimeout,
		"minimum duration of a watch, unless its client requests less")
	f.IntVar(&o.MaxRequestsInFlight, "max-requests-inflight", o.MaxRequestsInFlight,
		"maximum number of concurrent read requests; with priority and fairness, this and the next flag are added up and distributed")
	f.IntVar(&o.MaxMutatingRequestsInFlight, "max-mutating-requests-inflight", o.MaxMutatingRequestsInFlight,
		"maximum number of concurrent write requests")
	f.BoolVar(&o.PriorityAndFairness, "enable-priority-and-fairness", o.PriorityAndFairness,
		"distribute concurrent requests by flow schemas and priority levels (flowcontrol.apiserver.k8s.io)")
	f.IntVar(&o.MaxRequestsInFlightPerUser, "max-requests-inflight-per-user", o.MaxRequestsInFlightPerUser,
		"maximum number of concurrent requests of a user, or of all service accounts of a namespace; "+
			"more wait; only with priority and fairness; 0 for no limit")
	f.IntVar(&o.MaxSessionsPerUser, "max-sessions-per-user", o.MaxSessionsPerUser,
		"maximum number of open sessions per user (exec, attach, port-forward, debugging, logs, proxies); 0 for no limit")
	f.IntVar(&o.MaxSessionsPerNamespace, "max-sessions-per-namespace", o.MaxSessionsPerNamespace,
		"maximum number of open sessions per namespace; 0 for no limit")
	f.IntVar(&o.MaxWatchesPerUser, "max-watches-per-user", o.MaxWatchesPerUser,
		"maximum number of open watches per user; 0 for no limit")
	f.IntVar(&o.HTTP2MaxStreams, "http2-max-streams-per-connection", o.HTTP2MaxStreams,
		"maximum number of concurrent requests on one HTTP/2 connection")
	f.Float64Var(&o.GoawayChance, "goaway-chance", o.GoawayChance,
		"probability that an HTTP/2 client is told to reconnect, 0 to 0.02; for servers behind a load balancer")
	f.StringSliceVar(&o.HSTS, "strict-transport-security-directives", nil,
		"HSTS directives for browsers: max-age=SECONDS,includeSubDomains,preload")
	f.BoolVar(&o.Profiling, "profiling", o.Profiling, "serve /debug/pprof and /debug/flags to authorised users")
}

// tlsFlags are about the API and the node's own API alike.
func tlsFlags(cmd *cobra.Command, o *api.Serving) {
	f := cmd.Flags()
	f.StringVar(&o.TLSMinVersion, "tls-min-version", o.TLSMinVersion,
		"minimum TLS version: VersionTLS12 or VersionTLS13")
	f.StringSliceVar(&o.TLSCipherSuites, "tls-cipher-suites", nil,
		"cipher suites for TLS 1.2, if it is allowed; default: Go's")
	for name, values := range map[string][]string{"tls-min-version": {"VersionTLS12", "VersionTLS13"},
		"tls-cipher-suites": flag.PreferredTLSCipherNames()} {
		// fails only for a flag that is not there
		_ = cmd.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
	}
}
