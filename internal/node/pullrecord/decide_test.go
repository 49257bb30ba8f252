// SPDX-License-Identifier: Apache-2.0

package pullrecord

import (
	"fmt"
	"strings"
	"testing"

	"github.com/wherryproject/wherry/internal/imagename"
)

func ref(t *testing.T, name string) imagename.Reference {
	t.Helper()
	r, err := imagename.Parse(name)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestPolicy proves RS-12: whose credentials are verified under each of the kubelet's policies.
func TestPolicy(t *testing.T) {
	for _, row := range []struct {
		policy, allowlist string
		image             string
		pulled, want      bool
	}{
		{"", "", "r.example/a", true, true},
		{"", "", "r.example/a", false, false},
		{NeverVerify, "", "r.example/a", true, false},
		{NeverVerifyPreloadedImages, "", "r.example/a", true, true},
		{NeverVerifyPreloadedImages, "", "r.example/a", false, false},
		{AlwaysVerify, "", "r.example/a", false, true},
		{NeverVerifyAllowlistedImages, "r.example/team/*", "r.example/team/a:1", false, false},
		{NeverVerifyAllowlistedImages, "r.example/team/*", "r.example/team/a:1", true, false},
		{NeverVerifyAllowlistedImages, "r.example/team/*", "r.example/teams/a:1", false, true},
		{NeverVerifyAllowlistedImages, "r.example/team/*", "r.example.evil/team/a:1", false, true},
		{NeverVerifyAllowlistedImages, "r.example/a", "r.example/a:1", false, false},
		{NeverVerifyAllowlistedImages, "r.example/a", "r.example/ab:1", false, true},
		{NeverVerifyAllowlistedImages, "docker.io/library/busybox", "busybox", false, false},
		{NeverVerifyAllowlistedImages, "", "r.example/a", false, true},
	} {
		var list []string
		if row.allowlist != "" {
			list = strings.Split(row.allowlist, ",")
		}
		p, err := NewPolicy(row.policy, list)
		if err != nil {
			t.Fatal(err)
		}
		if got := p.verifies(ref(t, row.image), row.pulled); got != row.want {
			t.Errorf("%+v: %t", row, got)
		}
	}
	if !(Policy{}).verifies(ref(t, "a"), true) || (Policy{}).verifies(ref(t, "a"), false) {
		t.Error("the zero value is not the default policy")
	}
	for _, bad := range []struct{ policy, entry string }{
		{"Sometimes", ""}, {AlwaysVerify, "r.example/a"}, {NeverVerifyAllowlistedImages, "*"}, {NeverVerifyAllowlistedImages, "/*"}, {NeverVerifyAllowlistedImages, "r.example/a*"},
		{NeverVerifyAllowlistedImages, "r.example/*/a"}, {NeverVerifyAllowlistedImages, "r.example/a:1"}, {NeverVerifyAllowlistedImages, "busybox"}, {NeverVerifyAllowlistedImages, " r.example/a"},
	} {
		var list []string
		if bad.entry != "" {
			list = []string{bad.entry}
		}
		if _, err := NewPolicy(bad.policy, list); err == nil {
			t.Errorf("%+v is taken", bad)
		}
	}
}

// TestDecide proves RS-12: a pod uses an image that is there by credentials that its registry has taken before, or not at all.
func TestDecide(t *testing.T) {
	secret := func(ns, hash string) Secret { return Secret{UID: "uid-" + ns, Namespace: ns, Name: "pull", Hash: hash} }
	record := func(repository string, a Access) *Record {
		return &Record{ID: "sha256:1", Access: map[string]Access{repository: a}}
	}
	const app = "r.example/app"
	of := func(secrets ...Secret) *Record { return record(app, Access{Secrets: secrets}) }
	open := record(app, Access{Everyone: true})
	for _, row := range []struct {
		name    string
		facts   Facts
		image   string
		secrets []Secret
		want    string // granted, denied, or granted and learned of
	}{
		{"nobody pulled it: preloaded", Facts{}, app, nil, "granted"},
		{"a pull was cut off", Facts{Begun: true}, app, nil, "denied"},
		{"the records cannot be read", Facts{Unread: true}, app, nil, "denied"},
		{"it is known that it was pulled, not by whom", Facts{Record: of()}, app, []Secret{secret("a", "1")}, "denied"},
		{"open to everyone", Facts{Record: open}, app, nil, "granted"},
		{"pulled by the same secret", Facts{Record: of(secret("a", "1"))}, app, []Secret{secret("a", "1")}, "granted"},
		{"by one of another namespace", Facts{Record: of(secret("a", "1"))}, app, []Secret{secret("b", "2")}, "denied"},
		{"by one of another namespace, and none here", Facts{Record: of(secret("a", "1"))}, app, nil, "denied"},
		{"by one of another namespace with the same login", Facts{Record: of(secret("a", "1"))}, app, []Secret{secret("b", "1")}, "granted by b"},
		{"by the same secret, since renewed", Facts{Record: of(secret("a", "1"))}, app, []Secret{secret("a", "2")}, "granted by a"},
		{"by a secret of that name, since made anew", Facts{Record: of(secret("a", "1"))}, app, []Secret{{UID: "other", Namespace: "a", Name: "pull", Hash: "2"}}, "denied"},
		{"no hash is not the same hash", Facts{Record: of(secret("a", ""))}, app, []Secret{secret("b", "")}, "denied"},
		{"the second of two", Facts{Record: of(secret("a", "1"), secret("b", "2"))}, app, []Secret{secret("c", "3"), secret("b", "2")}, "granted"},
		{"under another name, of a repository that nobody was let in to", Facts{Record: open}, "r.example/other", nil, "denied"},
		{"under another registry's name", Facts{Record: of(secret("a", "1"))}, "mirror.example/app", []Secret{secret("a", "1")}, "denied"},
		{"by its id, open to everyone", Facts{Record: open, ByID: true}, "sha256:1", nil, "granted"},
		{"by its id, private", Facts{Record: of(secret("a", "1")), ByID: true}, "sha256:1", []Secret{secret("a", "1")}, "denied"},
		{"what is built in", Facts{Begun: true}, "wherry.dev/toolbox", nil, "granted"},
	} {
		row.facts.Image = ref(t, row.image)
		v := Decide(row.facts, func() []Secret { return row.secrets })
		got := "denied"
		if v.Granted {
			got = "granted"
		}
		if v.By != nil {
			got += " by " + v.By.Namespace
		}
		if got != row.want {
			t.Errorf("%s: %s, want %s", row.name, got, row.want)
		}
	}
	always, err := NewPolicy(AlwaysVerify, nil)
	if err != nil {
		t.Fatal(err)
	}
	for image, want := range map[string]bool{app: false, "wherry.dev/toolbox": true} {
		if got := Decide(Facts{Policy: always, Image: ref(t, image)}, nil).Granted; got != want {
			t.Errorf("always: %s: %t", image, got)
		}
	}
}

// TestAdd proves RS-12: a record keeps what it had, has each secret once as it is now, and does not grow without end.
func TestAdd(t *testing.T) {
	image := ref(t, "r.example/app")
	secret := func(i int, hash string) Access {
		return Access{Secrets: []Secret{{UID: fmt.Sprint(i), Namespace: "ns", Name: "pull", Hash: hash}}}
	}
	r := Record{ID: "x"}.add(image, secret(1, "old")).add(image, secret(1, "new")).add(ref(t, "r.example/other"), Access{Everyone: true})
	if a := r.Access["r.example/app"]; len(a.Secrets) != 1 || a.Secrets[0].Hash != "new" || a.Everyone || !r.Access["r.example/other"].Everyone {
		t.Errorf("%+v", r)
	}
	for i := range 3 * maxSecrets {
		r = r.add(image, secret(i, "h"))
	}
	if s := r.Access["r.example/app"].Secrets; len(s) != maxSecrets || s[maxSecrets-1].UID != fmt.Sprint(3*maxSecrets-1) {
		t.Errorf("%d secrets", len(s))
	}
}
