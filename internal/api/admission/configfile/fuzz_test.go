// SPDX-License-Identifier: Apache-2.0

package configfile

import (
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// FuzzAdmissionConfig: whatever the file of --admission-control-config-file and a file that it names hold, they are
// taken as they stand or refused with the file's name. What is taken means the same in JSON, and no file is read that
// the configuration does not name.
func FuzzAdmissionConfig(f *testing.F) {
	const head = "apiVersion: apiserver.config.k8s.io/v1\nkind: AdmissionConfiguration\nplugins:\n"
	const podSecurity = `{apiVersion: pod-security.admission.config.k8s.io/v1, kind: PodSecurityConfiguration, defaults: {enforce: baseline, enforce-version: latest}, exemptions: {namespaces: [kube-system]}}`
	const images = "apiVersion: policy.wherry.dev/v1\nkind: ImagePolicy\nmetadata: {name: a}\nspec: {allow: [\"registry.example/**\"], action: Warn, namespaceSelector: {matchLabels: {a: b}}}\n"
	for _, seed := range [][2]string{
		{head + "- name: PodSecurity\n  configuration: " + podSecurity + "\n", ""},
		{head + "- name: ImagePolicy\n  path: images.yaml\n- name: PodSecurity\n  path: /etc/wherry/pods.yaml\n",
			images},
		{head + "- name: ImagePolicy\n  path: images.yaml\n",
			"apiVersion: policy.wherry.dev/v1\nkind: ImagePolicyList\nitems: [{metadata: {name: a}, spec: {deny: [\"[\"]}}, null]\n"},
		{head +
			"- {name: MutatingAdmissionWebhook, configuration: {apiVersion: apiserver.config.k8s.io/v1, kind: WebhookAdmissionConfiguration}}\n", ""},
		{head + "- {name: PodSecurity}\n- {name: PodSecurity}\n", ""}, {head + "- {name: AlwaysAdmit}\n", ""},
		{head + "- {name: PodSecurity, configuration: null, path: \"\"}\n", ""},
		{"{}", ""}, {"", ""}, {"null", ""}, {"a: &a [*a]", ""}, {"apiVersion: v1\nkind: Pod\n", ""}, {"plugins: [", ""},
		{head + "- null\n", "\x00"},
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
		config, err := parse(path, file, read)
		if err != nil {
			if !strings.Contains(err.Error(), path) {
				t.Errorf("not said in which file: %v", err)
			}
			return
		}
		known := []string{PodSecurityPlugin, imagePolicyPlugin, mutatingWebhookPlugin, validatingWebhookPlugin}
		for name := range config {
			if !slices.Contains(known, name) {
				t.Errorf("a configuration of %q is taken and never used", name)
			}
		}
		if text, err := yaml.YAMLToJSON(file); err != nil {
			t.Errorf("it is taken and no YAML: %v", err)
		} else if again, err := parse(path, text, read); err != nil ||
			!reflect.DeepEqual(again, config) {
			t.Errorf("in JSON it is %v, %v; it was %v", again, err, config)
		}
		if _, err := config.PodSecurity(); err != nil && !strings.Contains(err.Error(), PodSecurityPlugin) {
			t.Errorf("not said which plug-in: %v", err)
		}
		policies, err := config.ImagePolicies()
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
