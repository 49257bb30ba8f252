// SPDX-License-Identifier: Apache-2.0

package api

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/component-base/cli/flag"

	"github.com/wherryproject/wherry/internal/api/filters"
)

// Serving is how carefully the server serves; the names of kube-apiserver's flags stand at its fields. DefaultServing
// makes one.
type Serving struct {
	TLSMinVersion   string   // --tls-min-version
	TLSCipherSuites []string // --tls-cipher-suites; those of TLS 1.2, none: Go's. TLS 1.3 has no choice.
	HTTP2MaxStreams int      // --http2-max-streams-per-connection
	HSTS            []string // --strict-transport-security-directives
	GoawayChance    float64  // --goaway-chance

	RequestTimeout    time.Duration // --request-timeout: of all requests but watches and streams
	MinRequestTimeout time.Duration // --min-request-timeout: how long a watch may last at least
	StallTimeout      time.Duration // how long a client of a watch may take nothing before it is cut off

	MaxRequestsInFlight         int  // --max-requests-inflight
	MaxMutatingRequestsInFlight int  // --max-mutating-requests-inflight
	PriorityAndFairness         bool // --enable-priority-and-fairness
	MaxRequestsInFlightPerUser  int  // 0: any number; only with PriorityAndFairness
	MaxWatchesPerUser           int  // 0: any number
	MaxSessionsPerUser          int  // 0: any number
	MaxSessionsPerNamespace     int  // 0: any number

	Profiling bool // --profiling
}

// DefaultServing are kube-apiserver's defaults, but for TLS 1.3, no profiling, and limits that kube-apiserver does not
// have.
func DefaultServing() Serving {
	return Serving{
		TLSMinVersion: "VersionTLS13", HTTP2MaxStreams: 100,
		RequestTimeout: time.Minute, MinRequestTimeout: minWatchSeconds * time.Second, StallTimeout: time.Minute,
		MaxRequestsInFlight: 400, MaxMutatingRequestsInFlight: 200, PriorityAndFairness: true,
		MaxRequestsInFlightPerUser: 16, MaxWatchesPerUser: 1000, MaxSessionsPerUser: 256, MaxSessionsPerNamespace: 512,
	}
}

// Validate checks the values. Its errors name the flags.
func (s Serving) Validate() error {
	var errs []error
	fail := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if _, _, err := s.TLS(); err != nil {
		errs = append(errs, err)
	}
	for _, n := range []struct {
		flag         string
		value, least int
	}{
		{"--http2-max-streams-per-connection", s.HTTP2MaxStreams, 1},
		{"--max-requests-inflight", s.MaxRequestsInFlight, 1},
		{"--max-mutating-requests-inflight", s.MaxMutatingRequestsInFlight, 1},
		{"--max-requests-inflight-per-user", s.MaxRequestsInFlightPerUser, 0},
		{"--max-watches-per-user", s.MaxWatchesPerUser, 0},
		{"--max-sessions-per-user", s.MaxSessionsPerUser, 0},
		{"--max-sessions-per-namespace", s.MaxSessionsPerNamespace, 0},
	} {
		if n.value < n.least {
			fail("%s: must be %d or more, not %d", n.flag, n.least, n.value)
		}
	}
	if s.GoawayChance < 0 || s.GoawayChance > 0.02 {
		fail("--goaway-chance: must be between 0 and 0.02, not %v", s.GoawayChance)
	}
	if s.RequestTimeout < time.Second {
		fail("--request-timeout: must be a second or more, not %v", s.RequestTimeout)
	}
	if s.MinRequestTimeout < time.Second {
		fail("--min-request-timeout: must be a second or more, not %v", s.MinRequestTimeout)
	}
	if s.StallTimeout < 0 {
		fail("stall timeout: must not be negative")
	}
	for _, d := range s.HSTS {
		if name, _, _ := strings.Cut(d, "="); !slices.Contains([]string{"max-age", "includeSubDomains", "preload"},
			name) {
			fail("--strict-transport-security-directives: %q is not one of max-age=SECONDS, includeSubDomains, preload",
				d)
		}
	}
	return errors.Join(errs...)
}

// TLS returns the lowest version that is spoken, and the cipher suites for TLS 1.2.
func (s Serving) TLS() (version uint16, suites []uint16, err error) {
	version, err = flag.TLSVersion(s.TLSMinVersion)
	if err != nil {
		return 0, nil, fmt.Errorf("--tls-min-version: %q is neither VersionTLS12 nor VersionTLS13", s.TLSMinVersion)
	}
	if version < tls.VersionTLS12 {
		return 0, nil, fmt.Errorf("--tls-min-version: %s is not secure; use VersionTLS12 or VersionTLS13",
			s.TLSMinVersion)
	}
	if len(s.TLSCipherSuites) == 0 {
		return version, nil, nil
	}
	if version >= tls.VersionTLS13 {
		return 0, nil,
			errors.New("--tls-cipher-suites: TLS 1.3 cipher suites cannot be configured; add --tls-min-version=VersionTLS12, or leave the flag out")
	}
	insecure := flag.InsecureTLSCipherNames()
	for _, name := range s.TLSCipherSuites {
		if slices.Contains(insecure, name) {
			return 0, nil, fmt.Errorf("--tls-cipher-suites: %s is not secure", name)
		}
	}
	if suites, err = flag.TLSCipherSuites(s.TLSCipherSuites); err != nil {
		return 0, nil, fmt.Errorf("--tls-cipher-suites: %w; choose from %s", err,
			strings.Join(flag.PreferredTLSCipherNames(), ", "))
	}
	if !slices.ContainsFunc(suites, func(s uint16) bool {
		return s == tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256 || s == tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256
	}) {
		return 0, nil,
			errors.New("--tls-cipher-suites: HTTP/2 needs TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256 (or, with an RSA key, " +
				"TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256); add it (RFC 9113, 9.2.2)")
	}
	return version, suites, nil
}

// harden gives the library the limits.
func (s *Server) harden(c *genericapiserver.Config) (err error) {
	o := s.cfg.Serving
	if c.SecureServing.MinTLSVersion, c.SecureServing.CipherSuites, err = o.TLS(); err != nil {
		return err
	}
	c.SecureServing.HTTP2MaxStreamsPerConnection = o.HTTP2MaxStreams
	c.HSTSDirectives, c.GoawayChance = o.HSTS, o.GoawayChance
	c.RequestTimeout, c.MinRequestTimeout = o.RequestTimeout, int(o.MinRequestTimeout.Seconds())
	c.MaxRequestsInFlight, c.MaxMutatingRequestsInFlight = o.MaxRequestsInFlight, o.MaxMutatingRequestsInFlight
	c.EnableProfiling = o.Profiling
	chain := filters.Chain(filters.Options{
		MaxWatchesPerUser: o.MaxWatchesPerUser, MaxSessionsPerUser: o.MaxSessionsPerUser,
		MaxSessionsPerNamespace: o.MaxSessionsPerNamespace, StallTimeout: o.StallTimeout, Codecs: s.data.schemes.Codecs,
		Await: func(next http.Handler) http.Handler { return s.served.custom.Await(next) }, Conns: s.cfg.Conns,
		Short: s.cfg.Short, Page: s.page(),
	})
	c.BuildHandlerChainFunc = func(api http.Handler, c *genericapiserver.Config) http.Handler {
		return chain(s.served.aggregation.Handler(api), c)
	}
	if o.PriorityAndFairness {
		s.served.flow, err = filters.NewFlowControl(c, s.ways.loopback.config, o.MaxRequestsInFlightPerUser,
			s.data.stores, s.data.schemes, s.log)
	}
	return err
}
