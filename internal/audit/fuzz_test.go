// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"net/url"
	"strings"
	"testing"
)

// FuzzPolicy reads policy files.
func FuzzPolicy(f *testing.F) {
	for _, text := range []string{
		"apiVersion: audit.k8s.io/v1\nkind: Policy\nrules:\n- level: Metadata\n  resources: [{group: '', resources: [pods]}]\n",
		"apiVersion: audit.k8s.io/v1\nkind: Policy\nrules:\n- levle: Metadata\n- level: x\n",
		"apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: &a [*a]\n",
		"apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: None}]\n'rules[-1].level': x\n'rules.-1': x\n",
		"", "null", "[]", "a: &a [*a]",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if p, err := decodePolicy(text); err == nil && len(p.Rules) == 0 {
			t.Error("a policy without rules is taken")
		}
	})
}

// FuzzRedact takes secrets out of addresses: no value of a parameter with a telling name is left, by whatever spelling.
func FuzzRedact(f *testing.F) {
	for _, uri := range []string{"/a?token=x&b=c", "/a?to%6ben=x", "/a?b=token=x", "/a?%zz", "/a?x;token=1", "?PASSWORD=1&", "/a?api-key=1?b=2"} {
		f.Add(uri)
	}
	f.Fuzz(func(t *testing.T, uri string) {
		out := redactURI(uri)
		if again := redactURI(out); again != out {
			t.Errorf("%q becomes %q, and then %q", uri, out, again)
		}
		_, query, _ := strings.Cut(out, "?")
		values, _ := url.ParseQuery(query)
		for name, all := range values {
			for _, value := range all {
				if secretive(name) && value != redacted && value != "" {
					t.Errorf("%q becomes %q, with the value of %q", uri, out, name)
				}
			}
		}
	})
}
