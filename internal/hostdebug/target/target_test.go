// SPDX-License-Identifier: Apache-2.0

package target

import (
	"strings"
	"testing"
)

// DA-13: one grammar for all commands; what it takes is written in the same way again, what it refuses says how.
func TestParse(t *testing.T) {
	for text, want := range map[string]Target{
		"docker:web":             {Docker, "", "web"},
		"docker:a1b2c3":          {Docker, "", "a1b2c3"},
		"podman:my_app.1":        {Podman, "", "my_app.1"},
		"containerd:k8s.io/abc":  {Containerd, "k8s.io", "abc"},
		"containerd:abc":         {Containerd, "", "abc"},
		"cri:abc":                {CRI, "", "abc"},
		"cri:web/app":            {CRI, "web", "app"},
		"pid:4711":               {PID, "", "4711"},
		"systemd:nginx":          {Systemd, "", "nginx.service"},
		"systemd:getty@tty1":     {Systemd, "", "getty@tty1.service"},
		"systemd:user@0.service": {Systemd, "", "user@0.service"},
	} {
		got, onHost, err := Parse(text)
		if err != nil || !onHost || got != want {
			t.Errorf("%s: %+v, %v, %v", text, got, onHost, err)
		}
	}
	for _, text := range []string{"web", "pod/web", "node/vm", "", "docker"} {
		if got, onHost, err := Parse(text); onHost || err != nil {
			t.Errorf("%s is taken for %v (%v)", text, got, err)
		}
	}
	for text, want := range map[string]string{
		"dokcer:web":         "docker:NAME",
		"docker:":            "write docker:NAME",
		"docker:a/b":         "write docker:NAME",
		"docker:../x":        "write docker:NAME",
		"docker:--all":       "write docker:NAME",
		"containerd:/x":      "write containerd:NAMESPACE/ID",
		"containerd:a/b/c":   "write containerd:NAMESPACE/ID",
		"pid:0":              "between 1 and",
		"pid:-1":             "write pid:NUMBER",
		"pid:99999999":       "between 1 and",
		"pid:one":            "between 1 and",
		"systemd:a b":        "write systemd:UNIT",
		"cri:" + longName():  "write cri:ID",
		"http://example.com": "docker:NAME",
	} {
		if got, onHost, err := Parse(text); err == nil || !onHost || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, %v, %v", text, got, onHost, err)
		}
	}
}

func longName() string { return strings.Repeat("x", maxName+1) }

// FuzzParse reads targets; what is read is written in the same way.
func FuzzParse(f *testing.F) {
	for _, text := range []string{"docker:web", "containerd:a/b", "pid:1", "systemd:x", "cri:a/b", ":", "docker:\x00"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, onHost, err := Parse(text)
		if err != nil || !onHost {
			return
		}
		again, onHost, err := Parse(got.String())
		if err != nil || !onHost || again != got {
			t.Errorf("%q: %+v, then %+v: %v", text, got, again, err)
		}
	})
}
