// SPDX-License-Identifier: Apache-2.0

package api

import (
	"errors"
	"strings"
	"testing"
)

// TestServingValidate proves that wrong flags are named.
func TestServingValidate(t *testing.T) {
	for want, change := range map[string]func(*Serving){
		"--tls-min-version: \"VersionTLS9\"": func(s *Serving) {
			s.TLSMinVersion = "VersionTLS9"
		},
		"--tls-min-version: VersionTLS10 is not": func(s *Serving) {
			s.TLSMinVersion = "VersionTLS10"
		},
		"--tls-cipher-suites: TLS 1.3 cipher suites cannot be configured": func(s *Serving) {
			s.TLSCipherSuites = []string{"TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"}
		},
		"--tls-cipher-suites: TLS_RSA_WITH_RC4_128_SH": func(s *Serving) {
			s.TLSMinVersion, s.TLSCipherSuites = "VersionTLS12", []string{"TLS_RSA_WITH_RC4_128_SHA"}
		},
		"--tls-cipher-suites: HTTP/2 needs": func(s *Serving) {
			s.TLSMinVersion, s.TLSCipherSuites = "VersionTLS12", []string{"TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384"}
		},
		"--tls-cipher-suites: Cipher suite NONE not": func(s *Serving) {
			s.TLSMinVersion, s.TLSCipherSuites = "VersionTLS12", []string{"NONE"}
		},
		"--http2-max-streams-per-connection":     func(s *Serving) { s.HTTP2MaxStreams = 0 },
		"--max-requests-inflight":                func(s *Serving) { s.MaxRequestsInFlight = 0 },
		"--max-mutating-requests-inflight":       func(s *Serving) { s.MaxMutatingRequestsInFlight = -1 },
		"--max-requests-inflight-per-user":       func(s *Serving) { s.MaxRequestsInFlightPerUser = -1 },
		"--max-sessions-per-user":                func(s *Serving) { s.MaxSessionsPerUser = -1 },
		"--max-sessions-per-namespace":           func(s *Serving) { s.MaxSessionsPerNamespace = -1 },
		"--max-watches-per-user":                 func(s *Serving) { s.MaxWatchesPerUser = -1 },
		"--goaway-chance":                        func(s *Serving) { s.GoawayChance = 0.5 },
		"--request-timeout":                      func(s *Serving) { s.RequestTimeout = 0 },
		"--min-request-timeout":                  func(s *Serving) { s.MinRequestTimeout = 0 },
		"--strict-transport-security-directives": func(s *Serving) { s.HSTS = []string{"always"} },
	} {
		s := DefaultServing()
		change(&s)
		if err := s.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v\nwant %s", err, want)
		}
	}
	s := DefaultServing()
	s.TLSMinVersion, s.TLSCipherSuites, s.HSTS = "VersionTLS12", []string{"TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"},
		[]string{"max-age=31536000", "includeSubDomains"}
	if err := errors.Join(s.Validate(), DefaultServing().Validate()); err != nil {
		t.Error(err)
	}
}
