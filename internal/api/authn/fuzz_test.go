// SPDX-License-Identifier: Apache-2.0

package authn

import (
	"bytes"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	bootstrapapi "k8s.io/cluster-bootstrap/token/api"
	bootstraputil "k8s.io/cluster-bootstrap/token/util"
	"sigs.k8s.io/yaml"
)

// FuzzAuthenticationConfig: whatever the file of --authentication-config holds, it is taken as it stands or refused
// with its name; a flag that it contradicts is never silently overruled.
func FuzzAuthenticationConfig(f *testing.F) {
	const head = "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthenticationConfiguration\n"
	for _, seed := range []string{
		head + "anonymous:\n  enabled: true\n  conditions:\n  - path: /livez\n", head + "anonymous: {enabled: false}\n",
		head, "", "{", "null", "apiVersion: v1\nkind: Pod\n", "a: &a [*a]",
		head +
			"jwt:\n- issuer: {url: https://id.example, audiences: [wherry]}\n  claimMappings: {username: {claim: sub, prefix: \"\"}}\n", head +
			"jwt:\n- issuer: {url: https://id.example, audiences: [a, b], audienceMatchPolicy: MatchAny, certificateAuthority: x}\n  claimMappings: {username: {expression: claims.sub}}\n  claimValidationRules: [{claim: hd, requiredValue: x}]\n", strings.Replace(head, "/v1", "/v1beta1", 1) + "jwt: [null]\n",
	} {
		f.Add([]byte(seed), true)
		f.Add([]byte(seed), false)
	}
	f.Fuzz(func(t *testing.T, file []byte, flag bool) {
		const path = "/etc/wherry/authentication.yaml"
		s := Completed{Options: Options{ConfigFile: path, Anonymous: flag}}
		if err := s.parseConfig(file); err != nil {
			if !strings.Contains(err.Error(), path) {
				t.Errorf("not said in which file: %v", err)
			}
			return
		}
		if s.anonymous != nil && !s.anonymous.Enabled {
			t.Error("anonymous requests are turned off and on")
		}
		text, err := yaml.YAMLToJSON(file)
		if err != nil {
			t.Fatalf("it is taken and no YAML: %v", err)
		}
		again := Completed{Options: s.Options}
		if err := again.parseConfig(text); err != nil || !reflect.DeepEqual(again, s) {
			t.Errorf("in JSON it is %+v, %v; it was %+v", again, err, s)
		}
	})
}

// FuzzBootstrapToken: whatever a token is and a Secret holds, its bearer is nobody but a node that may join, and only
// with the whole secret, in time. No refusal tells the secret.
func FuzzBootstrapToken(f *testing.F) {
	now := time.Date(2026, 11, 23, 6, 0, 0, 0, time.UTC)
	const good = "abcdef.0123456789abcdef"
	f.Add(good, "abcdef", "0123456789abcdef", "true", "2026-11-23T07:00:00Z",
		"system:bootstrappers:rack,system:bootstrappers:rack", false)
	f.Add(good, "abcdef", "0123456789abcdef", "true", "", "", false)
	f.Add(good, "abcdef", "0123456789abcdef", "true", "2026-11-23T06:00:00Z", ",", false)
	f.Add(good, "abcdeg", "0123456789abcdef", "false", "noon", "system:masters", true)
	f.Add(good, "abcdef", "", "true", "9999-12-31T23:59:60Z", "system:bootstrappers:", false)
	f.Add("", "", "", "", "", "", false)
	f.Fuzz(func(t *testing.T, token, id, secret, usage, end, groups string, typed bool) {
		tokenID, tokenSecret, _ := strings.Cut(token, ".")
		if !bootstraputil.IsValidBootstrapToken(token) {
			return // never asked about
		}
		s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: bootstraputil.BootstrapTokenSecretName(tokenID)},
			Type: bootstrapapi.SecretTypeBootstrapToken, Data: map[string][]byte{
				bootstrapapi.BootstrapTokenIDKey: []byte(id), bootstrapapi.BootstrapTokenSecretKey: []byte(secret),
				bootstrapapi.BootstrapTokenUsageAuthentication: []byte(usage),
				bootstrapapi.BootstrapTokenExpirationKey:       []byte(end),
				bootstrapapi.BootstrapTokenExtraGroupsKey:      []byte(groups)}}
		if typed {
			s.Type = corev1.SecretTypeOpaque
		}
		who, err := bootstrapUser(s, tokenID, tokenSecret, now)
		if err != nil {
			others := id + usage + end + groups + tokenID
			if len(secret) > 3 && !strings.Contains(others, secret) && strings.Contains(err.Error(), secret) ||
				!strings.Contains(others, tokenSecret) && strings.Contains(err.Error(), tokenSecret) {
				t.Errorf("the secret is told: %v", err)
			}
			return
		}
		if typed || !bytes.Equal([]byte(secret), []byte(tokenSecret)) || id != tokenID || usage != "true" {
			t.Errorf("%q is taken with id %q, secret %q, usage %q", token, id, secret, usage)
		}
		if at, err := time.Parse(time.RFC3339, end); end != "" && (err != nil || !at.After(now)) {
			t.Errorf("taken after its end, %q", end)
		}
		checkBootstrapper(t, who)
	})
}

func checkBootstrapper(t *testing.T, who user.Info) {
	t.Helper()
	err := errors.New("no group")
	for _, group := range who.GetGroups() {
		if err = nil; group != bootstrapapi.BootstrapDefaultGroup {
			err = bootstraputil.ValidateBootstrapGroupName(group)
		}
		if err != nil {
			break
		}
	}
	if err != nil || !strings.HasPrefix(who.GetName(), bootstrapapi.BootstrapUserPrefix) {
		t.Errorf("its bearer is %s of %q: %v", who.GetName(), who.GetGroups(), err)
	}
}
