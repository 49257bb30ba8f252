// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"strings"
	"testing"
)

// As a plug-in of kubectl the program says the name by which its user knows it, in help and in errors, and everything is
// where it is without.
func TestPluginOfKubectl(t *testing.T) {
	alone(t)
	as := func(args ...string) (int, string, string) {
		var out, errs strings.Builder
		code := runAs(pluginName, Terminal{In: strings.NewReader(""), Out: &out, Err: &errs}, args)
		return code, out.String(), errs.String()
	}
	if code, out, _ := as("debug", "--help"); code != 0 || !strings.Contains(out, "  kubectl wherry debug web -- ") ||
		!strings.Contains(out, "  kubectl wherry debug TARGET") {
		t.Errorf("help: %d, %s", code, out)
	}
	if code, _, errs := as("image", "lss"); code != 2 || !strings.Contains(errs, "see kubectl wherry image --help") {
		t.Errorf("an error: %d, %s", code, errs)
	}
	if code, out, _ := as("__complete", "clus"); code != 0 || !strings.HasPrefix(out, "cluster") {
		t.Errorf("completion: %d, %s", code, out)
	}
	if code, out, _ := call(t, "", "debug", "--help"); code != 0 || strings.Contains(out, "kubectl wherry debug") {
		t.Errorf("by its own name: %d, %s", code, out)
	}
}
