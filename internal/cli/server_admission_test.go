// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"os"
	"path/filepath"
	"strings"
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

// What is wrong with a file that a flag names is told in words that help, under the flag's name, once.
func TestFlagFiles(t *testing.T) {
	empty := manifestFile(t, "")
	folder := filepath.Join(t.TempDir(), "none")
	for _, c := range []struct{ flag, value, want string }{
		{"--admission-control-config-file", empty, "it must start with apiVersion: apiserver.config.k8s.io/v1 and kind: AdmissionConfiguration"},
		{"--authentication-config", empty, "it must start with apiVersion: apiserver.config.k8s.io/v1 and kind: AuthenticationConfiguration"},
		{"--audit-policy-file", empty, "the file is empty"},
		{"--audit-webhook-config-file", empty, "it names no cluster: it must be a kubeconfig with the webhook's address"},
		{"--config", empty, "it must be a KubeletConfiguration of kubelet.config.k8s.io/v1beta1"},
		{"--config-dir", folder, "no such file"},
	} {
		t.Run(c.flag, func(t *testing.T) {
			data := filepath.Join(t.TempDir(), "data")
			code, _, errs := call(t, "", "server", "--data-dir", data, c.flag, c.value)
			if code != exitUsage || strings.Count(errs, c.flag) != 1 || !strings.Contains(errs, c.value) || !strings.Contains(errs, c.want) {
				t.Errorf("%d %s", code, errs)
			}
			if _, err := os.Stat(data); !os.IsNotExist(err) {
				t.Errorf("the data folder: %v", err)
			}
		})
	}
}
