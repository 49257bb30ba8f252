// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"errors"
	"strings"
	"testing"
)

// SC-18: --feature-gates of server and agent: Wherry's own gates are taken out of it, unknown ones are refused with the known
// ones, and --help tells what there is.
func TestFeatureGates(t *testing.T) {
	own, err := setGates(map[string]bool{"SidecarContainers": false, "AllAlpha": false})
	if err != nil || len(own) != 2 || own["SidecarContainers"] {
		t.Errorf("%v, %v", own, err)
	}
	_, err = setGates(map[string]bool{"SidecarContainer": false})
	var exit *Exit
	if !errors.As(err, &exit) || exit.Code != exitUsage {
		t.Fatalf("unknown gate: %v", err)
	}
	for _, want := range []string{"unknown feature gate SidecarContainer\n", "SidecarContainers", "PodShareProcessNamespace", "WatchList"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q does not tell %q", err, want)
		}
	}
	for _, command := range []string{"server", "agent"} {
		var out bytes.Buffer
		if code := run(Terminal{In: strings.NewReader(""), Out: &out, Err: &out}, []string{command, "--help"}); code != 0 {
			t.Errorf("%s --help: exit code %d", command, code)
		}
		for _, want := range []string{"--feature-gates", "SidecarContainers=true|false (default true)"} {
			if !strings.Contains(out.String(), want) {
				t.Errorf("%s --help does not tell %s", command, want)
			}
		}
		out.Reset()
		if code := run(Terminal{In: strings.NewReader(""), Out: &out, Err: &out}, []string{command, "--feature-gates", "Sidecars"}); code != exitUsage || !strings.Contains(out.String(), "Name=true") {
			t.Errorf("%s: exit code %d: %s", command, code, out.String())
		}
	}
}
