// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// policyFile writes an audit policy.
func policyFile(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "audit.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// TestAuditPolicyFile: a policy of one's own takes the place of the built-in one, from the levels of its rules to the
// stages that it leaves out, with the same protection of Secrets.
func TestAuditPolicyFile(t *testing.T) {
	t.Parallel()
	s := inDefault(t, own(t, ServerOptions{NoImages: true, Args: []string{"--audit-policy-file", policyFile(t, `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: None
  verbs: [list]
- level: RequestResponse
  resources: [{group: "", resources: [configmaps, secrets]}]
- level: Metadata
`)}}))
	s.Kubectl("create", "configmap", "colours", "--from-literal=sky=azure")
	s.Kubectl("create", "secret", "generic", "keys", "--from-literal=door=crimson")
	s.Kubectl("get", "services")
	s.Kubectl("get", "service", "kubernetes")

	s.audit("configmap/colours", "-o", "json").Has(`"level":"RequestResponse"`, `"sky":"azure"`,
		`"stage":"ResponseComplete"`).HasNot("RequestReceived")
	s.audit("secret/keys", "-o", "json").Has(`"verb":"create"`).HasNot("crimson", "Y3JpbXNvbg")
	s.audit("-o", "json").Has(`"level":"Metadata"`).HasNot(`"verb":"list"`)
}

// TestAuditPolicyFileWrong: a server whose policy is wrong does not start, says where it is wrong, and has changed
// nothing.
func TestAuditPolicyFileWrong(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ text, want string }{
		"field": {"apiVersion: audit.k8s.io/v1\nkind: Policy\nrules:\n- levle: None\n",
			`unknown field "rules[0].levle"`},
		"level": {"apiVersion: audit.k8s.io/v1\nkind: Policy\nrules:\n- level: Everything\n", "rules[0].level"},
		"empty": {"", "the file is empty"},
	} {
		t.Run(name, func(t *testing.T) {
			file, data := policyFile(t, c.text), filepath.Join(t.TempDir(), "data")
			ctx, cancel := context.WithTimeout(t.Context(), Timeout)
			defer cancel()
			cmd := exec.CommandContext(ctx, world(t).Wherry, "server", "--data-dir", data, "--audit-policy-file", file)
			out, err := cmd.CombinedOutput()
			if err == nil || strings.Count(string(out), "--audit-policy-file "+file) != 1 ||
				!strings.Contains(string(out), c.want) {
				t.Errorf("%v:\n%s", err, out)
			}
			if _, err := os.Stat(data); !os.IsNotExist(err) {
				t.Errorf("the data folder: %v", err)
			}
		})
	}
}
