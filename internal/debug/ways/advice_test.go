// SPDX-License-Identifier: Apache-2.0

package ways

import (
	"strings"
	"testing"
)

// DC-14: a refusal of Pod Security names the profile that is not refused.
func TestSecurityAdvice(t *testing.T) {
	const restricted = `pods "web" is forbidden: violates PodSecurity "restricted:latest": allowPrivilegeEscalation != false (container "debug" must set …)`
	for name, c := range map[string]struct{ refusal, profile, want string }{
		"restricted":             {restricted, "", "wherry debug --profile restricted web"},
		"restricted, by general": {restricted, "general", "--profile restricted"},
		"baseline in restricted": {restricted, "baseline", "--profile restricted"},
		"by the pod itself":      {strings.Replace(restricted, `container "debug"`, `pod or containers "app", "debug", "s1"`, 2), "", "no profile helps, since the pod has containers that violate the level restricted themselves (app, s1)"},
		"another run, asked":     {`violates PodSecurity "baseline:latest": non-default capabilities (container "s1" must not include "SYS_PTRACE" …)`, "baseline", "no profile helps"},
		"restricted already":     {restricted, "restricted", ""},
		"baseline":               {`violates PodSecurity "baseline:v1.30": privileged (…)`, "sysadmin", "--profile baseline"},
		"stricter than asked":    {`violates PodSecurity "baseline:latest": host namespaces`, "restricted", ""},
		"something else":         {`pods "web" is forbidden: User "jane" cannot create resource`, "", ""},
		"an unknown level":       {`violates PodSecurity "mine:latest": x`, "", ""},
	} {
		if got := SecurityAdvice(c.refusal, c.profile, "web", "debug"); (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: %q", name, got)
		}
	}
}
