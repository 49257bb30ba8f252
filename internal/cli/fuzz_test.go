// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"maps"
	"strings"
	"testing"
	"time"

	bootstraputil "k8s.io/cluster-bootstrap/token/util"
)

// FuzzGates: what --feature-gates takes it prints in a form that it takes as the same; what it refuses it names.
func FuzzGates(f *testing.F) {
	for _, text := range []string{"AllAlpha=true", "A=true,B=false", " A=true , A=false", "A", "A=yes", "=true", ",", "", "A=true,", "A==true"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var gates map[string]bool
		v := &gatesValue{&gates}
		if err := v.Set(text); err != nil {
			if !strings.Contains(err.Error(), "Name=true") {
				t.Errorf("%q: not said what is wanted: %v", text, err)
			}
			return
		}
		if len(gates) > strings.Count(text, ",")+1 {
			t.Errorf("%q is %v", text, gates)
		}
		for name := range gates {
			if name == "" || name != strings.TrimSpace(name) || strings.ContainsAny(name, "=,") {
				t.Errorf("%q has a gate called %q", text, name)
			}
		}
		var again map[string]bool
		if err := (&gatesValue{&again}).Set(v.String()); err != nil || !maps.Equal(gates, again) {
			t.Errorf("%q is %v, printed as %q, which is %v: %v", text, gates, v.String(), again, err)
		}
	})
}

// FuzzSeconds: a number of seconds is taken as printed, or refused with its text; none is negative.
func FuzzSeconds(f *testing.F) {
	for _, text := range []string{"300", "0", "-1", "+5", "", "5s", "99999999999", "1e3", "0x5", "007", "1_000"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var d *time.Duration
		s := seconds{&d}
		if err := s.Set(text); err != nil {
			if d != nil || !strings.Contains(err.Error(), "number of seconds") {
				t.Errorf("%q: %v, %v", text, d, err)
			}
			return
		}
		var again *time.Duration
		if err := (seconds{&again}).Set(s.String()); err != nil || *d < 0 || *again != *d {
			t.Errorf("%q is %v, printed as %q: %v", text, *d, s.String(), err)
		}
	})
}

// FuzzToken: what wherry token create is given it takes whole or refuses; a refusal never tells a token, and a token that is made is one.
func FuzzToken(f *testing.F) {
	f.Add("abcdef.0123456789abcdef", "system:bootstrappers:rack", int64(time.Hour), "", true)
	f.Add("abcdef.0123456789abcde", "system:masters", int64(-1), "https://x", false)
	f.Add("", "", int64(0), "x", false)
	f.Add("ABCDEF.0123456789abcdef", "system:bootstrappers:", int64(1), "", true)
	f.Fuzz(func(t *testing.T, token, group string, ttl int64, server string, join bool) {
		flags := &tokenFlags{ttl: time.Duration(ttl), server: server, join: join}
		if group != "" {
			flags.groups = []string{group}
		}
		var args []string
		if token != "" {
			args = []string{token}
		}
		got, err := flags.check(args)
		var exit *Exit
		switch {
		case err != nil && !errors.As(err, &exit):
			t.Errorf("no wrong command line: %v", err)
		case err != nil && (exit.Code != exitUsage || got != ""):
			t.Errorf("exit code %d, %q: %v", exit.Code, got, err)
		case err != nil && len(token) > 20 && !strings.Contains(group, token) && strings.Contains(err.Error(), token):
			t.Errorf("the token is told: %v", err)
		case err != nil:
		case !bootstraputil.IsValidBootstrapToken(got) || token != "" && got != token || ttl < 0 || server != "" && !join:
			t.Errorf("%q is taken as %q, with ttl %d", token, got, ttl)
		case group != "" && bootstraputil.ValidateBootstrapGroupName(group) != nil:
			t.Errorf("the group %q is taken", group)
		}
	})
}
