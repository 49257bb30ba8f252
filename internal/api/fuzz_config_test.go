// SPDX-License-Identifier: Apache-2.0

package api

import (
	"bytes"
	"errors"
	"path/filepath"
	"reflect"
	"slices"
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

// FuzzAdmissionConfig: whatever the file of --admission-control-config-file and a file that it names hold, they are taken as they stand
// or refused with the file's name. What is taken means the same in JSON, and no file is read that the configuration does not name.
func FuzzAdmissionConfig(f *testing.F) {
	const head = "apiVersion: apiserver.config.k8s.io/v1\nkind: AdmissionConfiguration\nplugins:\n"
	const podSecurity = `{apiVersion: pod-security.admission.config.k8s.io/v1, kind: PodSecurityConfiguration, defaults: {enforce: baseline, enforce-version: latest}, exemptions: {namespaces: [kube-system]}}`
	const images = "apiVersion: policy.wherry.dev/v1\nkind: ImagePolicy\nmetadata: {name: a}\nspec: {allow: [\"registry.example/**\"], action: Warn, namespaceSelector: {matchLabels: {a: b}}}\n"
	for _, seed := range [][2]string{
		{head + "- name: PodSecurity\n  configuration: " + podSecurity + "\n", ""},
		{head + "- name: ImagePolicy\n  path: images.yaml\n- name: PodSecurity\n  path: /etc/wherry/pods.yaml\n", images},
		{head + "- name: ImagePolicy\n  path: images.yaml\n", "apiVersion: policy.wherry.dev/v1\nkind: ImagePolicyList\nitems: [{metadata: {name: a}, spec: {deny: [\"[\"]}}, null]\n"},
		{head + "- {name: MutatingAdmissionWebhook, configuration: {apiVersion: apiserver.config.k8s.io/v1, kind: WebhookAdmissionConfiguration}}\n", ""},
		{head + "- {name: PodSecurity}\n- {name: PodSecurity}\n", ""}, {head + "- {name: AlwaysAdmit}\n", ""}, {head + "- {name: PodSecurity, configuration: null, path: \"\"}\n", ""},
		{"{}", ""}, {"", ""}, {"null", ""}, {"a: &a [*a]", ""}, {"apiVersion: v1\nkind: Pod\n", ""}, {"plugins: [", ""}, {head + "- null\n", "\x00"},
	} {
		f.Add([]byte(seed[0]), []byte(seed[1]))
	}
	f.Fuzz(func(t *testing.T, file, other []byte) {
		const path = "/etc/wherry/admission.yaml"
		read := func(name string) ([]byte, error) {
			if !filepath.IsAbs(name) {
				t.Errorf("%q is read", name)
			}
			return other, nil
		}
		config, err := parseAdmissionConfig(path, file, read)
		if err != nil {
			if !strings.Contains(err.Error(), path) {
				t.Errorf("not said in which file: %v", err)
			}
			return
		}
		known := []string{podSecurityPlugin, imagePolicyPlugin, mutatingWebhookPlugin, validatingWebhookPlugin}
		for name := range config {
			if !slices.Contains(known, name) {
				t.Errorf("a configuration of %q is taken and never used", name)
			}
		}
		if text, err := yaml.YAMLToJSON(file); err != nil {
			t.Errorf("it is taken and no YAML: %v", err)
		} else if again, err := parseAdmissionConfig(path, text, read); err != nil || !reflect.DeepEqual(again, config) {
			t.Errorf("in JSON it is %v, %v; it was %v", again, err, config)
		}
		if _, err := config.podSecurity(); err != nil && !strings.Contains(err.Error(), podSecurityPlugin) {
			t.Errorf("not said which plug-in: %v", err)
		}
		policies, err := config.imagePolicies()
		if err != nil && !strings.Contains(err.Error(), imagePolicyPlugin) {
			t.Errorf("not said which plug-in: %v", err)
		}
		for _, p := range policies {
			if p.Name == "" || p.Spec.Action == "" {
				t.Errorf("a policy without a name or an action is taken: %+v", p)
			}
		}
	})
}

// FuzzAuthenticationConfig: whatever the file of --authentication-config holds, it is taken as it stands or refused with its name; a flag
// that it contradicts is never silently overruled.
func FuzzAuthenticationConfig(f *testing.F) {
	const head = "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthenticationConfiguration\n"
	for _, seed := range []string{
		head + "anonymous:\n  enabled: true\n  conditions:\n  - path: /livez\n", head + "anonymous: {enabled: false}\n", head, "", "{", "null", "apiVersion: v1\nkind: Pod\n", "a: &a [*a]",
		head + "jwt:\n- issuer: {url: https://id.example, audiences: [wherry]}\n  claimMappings: {username: {claim: sub, prefix: \"\"}}\n",
		head + "jwt:\n- issuer: {url: https://id.example, audiences: [a, b], audienceMatchPolicy: MatchAny, certificateAuthority: x}\n  claimMappings: {username: {expression: claims.sub}}\n  claimValidationRules: [{claim: hd, requiredValue: x}]\n",
		strings.Replace(head, "/v1", "/v1beta1", 1) + "jwt: [null]\n",
	} {
		f.Add([]byte(seed), true)
		f.Add([]byte(seed), false)
	}
	f.Fuzz(func(t *testing.T, file []byte, flag bool) {
		const path = "/etc/wherry/authentication.yaml"
		s := settledAuthentication{Authentication: Authentication{ConfigFile: path, Anonymous: flag}}
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
		again := settledAuthentication{Authentication: s.Authentication}
		if err := again.parseConfig(text); err != nil || !reflect.DeepEqual(again, s) {
			t.Errorf("in JSON it is %+v, %v; it was %+v", again, err, s)
		}
	})
}

// FuzzBootstrapToken: whatever a token is and a Secret holds, its bearer is nobody but a node that may join, and only with the whole
// secret, in time. No refusal tells the secret.
func FuzzBootstrapToken(f *testing.F) {
	now := time.Date(2026, 11, 23, 6, 0, 0, 0, time.UTC)
	const good = "abcdef.0123456789abcdef"
	f.Add(good, "abcdef", "0123456789abcdef", "true", "2026-11-23T07:00:00Z", "system:bootstrappers:rack,system:bootstrappers:rack", false)
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
		s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: bootstraputil.BootstrapTokenSecretName(tokenID)}, Type: bootstrapapi.SecretTypeBootstrapToken, Data: map[string][]byte{
			bootstrapapi.BootstrapTokenIDKey: []byte(id), bootstrapapi.BootstrapTokenSecretKey: []byte(secret), bootstrapapi.BootstrapTokenUsageAuthentication: []byte(usage),
			bootstrapapi.BootstrapTokenExpirationKey: []byte(end), bootstrapapi.BootstrapTokenExtraGroupsKey: []byte(groups)}}
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
