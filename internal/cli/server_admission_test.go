// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/wherryproject/wherry/internal/api/admission"
)

// TestAdmissionFlags proves EC-21: seconds are seconds, nothing is the default, and what is no number is refused.
func TestAdmissionFlags(t *testing.T) {
	parse := func(args ...string) (o admission.Options, err error) {
		cmd := &cobra.Command{}
		admissionFlags(cmd, &o)
		err = cmd.ParseFlags(args)
		return o, err
	}
	if o, err := parse(); err != nil || o.NotReady != nil || o.Unreachable != nil || o.ConfigFile != "" {
		t.Errorf("%+v, %v", o, err)
	}
	for _, args := range [][]string{{"--default-not-ready-toleration-seconds", "-1"}, {"--default-unreachable-toleration-seconds", "5m"}} {
		if _, err := parse(args...); err == nil {
			t.Errorf("%v is taken", args)
		}
	}
	o, err := parse("--admission-control-config-file", "a.yaml", "--default-not-ready-toleration-seconds=0", "--default-unreachable-toleration-seconds=60")
	if err != nil || o.ConfigFile != "a.yaml" || *o.NotReady != 0 || *o.Unreachable != time.Minute {
		t.Errorf("%+v, %v", o, err)
	}
}
