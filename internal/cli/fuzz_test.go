// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"errors"
	"maps"
	"strings"
	"testing"
	"time"

	bootstraputil "k8s.io/cluster-bootstrap/token/util"
)

// FuzzPlace: whatever stands for one side of a copy, it is a path here or one in a pod, never something between, and a path here stays
// as it was given.
func FuzzPlace(f *testing.F) {
	for _, text := range []string{"web:/etc/nginx", "shop/web:data/*.log", "./a:b", "../x:y", "~/a:b", "/a:b", ":x", "a/b/c:x", "/:x", "web:", "-", "", "a:b:c", "C:\\x", "a/:x", "/a/b:", "web:\x00"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		p, err := parsePlace(text)
		switch {
		case err != nil && (!strings.Contains(err.Error(), "POD:PATH") && !strings.Contains(err.Error(), "path in the pod")):
			t.Errorf("%q: not said what is wrong: %v", text, err)
		case err != nil:
		case p.pod == "" && (p.namespace != "" || p.path != text):
			t.Errorf("%q is %+v", text, p)
		case p.pod == "": // a path on this machine
		case p.path == "" || strings.ContainsAny(p.pod+p.namespace, "/:"):
			t.Errorf("%q is %+v", text, p)
		case p.namespace == "" && p.pod+":"+p.path != text && "/"+p.pod+":"+p.path != text:
			t.Errorf("%q is %+v", text, p)
		case p.namespace != "" && p.namespace+"/"+p.pod+":"+p.path != text:
			t.Errorf("%q is %+v", text, p)
		}
	})
}

// FuzzRelay: whatever the other side of a copy says, in whatever pieces, the user reads the same whole lines, each of which says whose it
// is, and notes about other containers only where they matter.
func FuzzRelay(f *testing.F) {
	f.Add("total 512\ncp-pack: /x: permission denied\nwherry: container web is gone\nwherry: container db cannot run\n", uint8(7), true)
	f.Add("cp-unpack: no such folder", uint8(1), true)
	f.Add("total -1\ntotal 99999999999999999999\ntotal\n\n\nwherry: ", uint8(0), false)
	f.Fuzz(func(t *testing.T, said string, piece uint8, failed bool) {
		var cause error
		if failed {
			cause = errors.New("failed")
		}
		hear := func(size int) (string, int64) {
			var out bytes.Buffer
			m := &meter{}
			r := newRelay(&out, "web", "shop", m)
			for rest := []byte(said); len(rest) > 0; {
				n := min(size, len(rest))
				if wrote, err := r.Write(rest[:n]); wrote != n || err != nil {
					t.Fatalf("%d of %d bytes: %v", wrote, n, err)
				}
				rest = rest[n:]
			}
			if err := r.end(cause); !errors.Is(err, cause) {
				t.Fatalf("it ended with %v", err)
			}
			return out.String(), m.total.Load()
		}
		whole, total := hear(len(said) + 1)
		if parts, again := hear(1 + int(piece)); parts != whole || again != total {
			t.Errorf("in pieces of %d: %q, %d; at once: %q, %d", 1+int(piece), parts, again, whole, total)
		}
		for line := range strings.Lines(whole) {
			if !strings.HasSuffix(line, "\n") || !failed && !strings.HasPrefix(line, "container web of pod shop: ") {
				t.Errorf("the user reads %q", line)
			}
		}
	})
}

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
