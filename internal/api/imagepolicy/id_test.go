// SPDX-License-Identifier: Apache-2.0

package imagepolicy

import (
	"strings"
	"testing"
)

// TestJudgeID proves RS-12 EC-21: an image that is called by its id is judged by every name that it has.
func TestJudgeID(t *testing.T) {
	const id = "sha256:5905453c494f"
	digest := "@sha256:" + strings.Repeat("a", 64)
	both := func(name string) []string { return []string{name + ":1", name + digest} }
	ours := ImagePolicySpec{Allow: []string{"registry.example/**"}}
	for _, row := range []struct {
		name   string
		policy ImagePolicySpec
		names  []string
		want   string // part of what is said; "" = nothing
	}{
		{"allowed by all names", ours, both("registry.example/app"), ""},
		{"not allowed", ours, both("evil.test/evil"), `image id "sha256:5905453c494f" stands for image "evil.test/evil:1" is not allowed; allowed are registry.example/**`},
		{"one name of two", ours, append(both("registry.example/app"), both("evil.test/evil")...), "evil.test/evil:1"},
		{"only the tag is allowed", ImagePolicySpec{Allow: []string{"registry.example/app:1"}}, both("registry.example/app"), "registry.example/app@sha256:"},
		{"no name", ours, nil, "no node knows a name"},
		{"Docker's images are allowed, ids are not among them", ImagePolicySpec{Allow: []string{"docker.io/**"}}, both("evil.test/evil"), "evil.test/evil:1"},
		{"denied", ImagePolicySpec{Deny: []string{"evil.test/**"}}, both("evil.test/evil"), "is denied by evil.test/**"},
		{"denied by one name of two", ImagePolicySpec{Deny: []string{"evil.test/**"}}, append(both("a.example/b"), "evil.test/evil:1"), "is denied by"},
		{"not denied", ImagePolicySpec{Deny: []string{"evil.test/**"}}, both("a.example/b"), ""},
		{"no name, and something is denied", ImagePolicySpec{Deny: []string{"evil.test/**"}}, nil, "no node knows a name"},
		{"a digest is required, and an id is as good", ImagePolicySpec{RequireDigest: true}, nil, ""},
		{"also beside a list", ImagePolicySpec{RequireDigest: true, Allow: []string{"registry.example/**"}}, both("registry.example/app"), ""},
		{"nothing is asked", ImagePolicySpec{}, nil, ""},
		{"a name that is none", ours, []string{"<none>:<none>"}, "cannot check image"},
	} {
		if got := row.policy.JudgeID(id, row.names); (got == "") != (row.want == "") || !strings.Contains(got, row.want) {
			t.Errorf("%s: %q, want %q", row.name, got, row.want)
		}
	}
}
