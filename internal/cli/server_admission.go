// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/wherryproject/wherry/internal/api/admission"
)

// admissionFlags are those of the server's admission, as kube-apiserver has them.
func admissionFlags(cmd *cobra.Command, o *admission.Options) {
	f := cmd.Flags()
	f.StringVar(&o.ConfigFile, "admission-control-config-file", "",
		"AdmissionConfiguration: defaults and exemptions of PodSecurity, policies of ImagePolicy, clients of webhooks")
	f.StringVar(&o.DefaultPodSecurity, "default-pod-security", "",
		"Pod Security level of namespaces without one, except kube-system: privileged, baseline or restricted (default privileged, as in Kubernetes)")
	f.Var(seconds{&o.NotReady}, "default-not-ready-toleration-seconds",
		"seconds that pods without such a toleration stay on a node that is not ready (default 300)")
	f.Var(seconds{&o.Unreachable}, "default-unreachable-toleration-seconds",
		"seconds that pods without such a toleration stay on an unreachable node (default 300)")
}

// seconds is a flag's value: a number of seconds, or nothing.
type seconds struct{ of **time.Duration }

// String implements pflag.Value.
func (s seconds) String() string {
	if s.of == nil || *s.of == nil {
		return ""
	}
	return strconv.FormatInt(int64(**s.of/time.Second), 10)
}

// Set implements pflag.Value.
func (s seconds) Set(text string) error {
	n, err := strconv.ParseInt(text, 10, 32)
	if err != nil || n < 0 {
		return fmt.Errorf("%q is not a number of seconds, 0 or more", text)
	}
	*s.of = new(time.Duration(n) * time.Second)
	return nil
}

// Type implements pflag.Value.
func (seconds) Type() string { return "int" }
